//! The file: read in pieces, unpacked if gzipped.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use wire::capture::{DamageKind, MAX_STEP_BYTES, Reader, Record, Step};

/// How a file ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Whole,
    /// In damage, described.
    Damaged(String),
}

/// Hands every packet of the file to `on_record`, in the order of the file.
///
/// # Errors
/// When the file cannot be opened or read, or is no capture. Damage behind the file's header is no error.
pub fn read(path: &Path, on_record: impl FnMut(&Record<'_>)) -> io::Result<Ending> {
    let mut file = File::open(path)?;
    let mut magic = [0; 2];
    let have = file.read(&mut magic)?;
    file.rewind()?;
    if have == 2 && magic == [0x1f, 0x8b] {
        read_packets(&mut Window::new(MultiGzDecoder::new(file)), on_record)
    } else {
        read_packets(&mut Window::new(file), on_record)
    }
}

fn read_packets(
    window: &mut Window<impl Read>,
    mut on_record: impl FnMut(&Record<'_>),
) -> io::Result<Ending> {
    let mut reader = Reader::new();
    loop {
        let damage = match reader.next(window.bytes()) {
            Step::Record { consumed, record } => {
                on_record(&record);
                window.discard(consumed);
                continue;
            }
            Step::Skip(bytes) => match window.skip(bytes) {
                Ok(0) => continue,
                Ok(missing) => reader.end_within_skip(missing),
                Err(error) => return window.broken(error),
            },
            Step::NeedMore(needed) => match window.fill(needed) {
                Ok(true) => continue,
                Ok(false) => reader.end(window.bytes().len(), needed),
                Err(error) => return window.broken(error),
            },
            Step::Damaged(damage) => Some(damage),
        };
        let Some(damage) = damage else { return Ok(Ending::Whole) };
        // Damage at the very start means that this is no capture.
        if damage.offset == 0 && !matches!(damage.kind, DamageKind::Cut { have: 1.., .. }) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, damage.to_string()));
        }
        return Ok(Ending::Damaged(damage.to_string()));
    }
}

/// The part of a stream that was read and not used yet, in one buffer of fixed size.
struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes came out of the source at least once.
    started: bool,
}

impl<R: Read> Window<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: vec![0; 2 * MAX_STEP_BYTES], start: 0, end: 0, started: false }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn discard(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Reads until `needed` bytes (at most half of the buffer) are at hand; `false` when the stream ends before.
    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        while self.end - self.start < needed {
            if self.buffer.len() - self.start < needed || self.end == self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(bytes) => {
                    self.end += bytes;
                    self.started = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Passes over bytes, also over such that were not read yet; gives how many the stream lacked.
    fn skip(&mut self, mut bytes: u64) -> io::Result<u64> {
        loop {
            let at_hand = (self.end - self.start) as u64;
            self.discard(usize::try_from(bytes).unwrap_or(usize::MAX));
            bytes -= bytes.min(at_hand);
            if bytes == 0 || !self.fill(1)? {
                return Ok(bytes);
            }
        }
    }

    /// A stream that cannot be unpacked any further is a damaged file; one that never could be read, an error.
    fn broken(&self, error: io::Error) -> io::Result<Ending> {
        if self.started { Ok(Ending::Damaged(format!("the stream breaks off: {error}"))) } else { Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// A stream that gives at most seven bytes at a time.
    struct Drops(Vec<u8>);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.len().min(7).min(buffer.len());
            for (to, from) in buffer.iter_mut().zip(self.0.drain(..bytes)) {
                *to = from;
            }
            Ok(bytes)
        }
    }

    fn capture(packets: usize) -> Vec<u8> {
        let mut file =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
        for packet in 0..packets {
            file.extend([[0; 4], [0; 4], [3, 0, 0, 0], [3, 0, 0, 0]].concat());
            file.extend([packet as u8, 1, 2]);
        }
        file
    }

    fn read_stream(stream: impl Read) -> (Vec<u8>, io::Result<Ending>) {
        let mut first_bytes = Vec::new();
        let ending = read_packets(&mut Window::new(stream), |record| first_bytes.push(record.bytes[0]));
        (first_bytes, ending)
    }

    #[test]
    fn a_trickling_stream_gives_every_packet_in_order() {
        let (packets, ending) = read_stream(Drops(capture(200)));
        assert_eq!(packets, (0..200).collect::<Vec<u8>>());
        assert_eq!(ending.unwrap(), Ending::Whole);
    }

    #[test]
    fn a_stream_larger_than_the_window_is_read_to_its_end() {
        let (packets, ending) = read_stream(&capture(200_000)[..]);
        assert_eq!(packets.len(), 200_000);
        assert!(packets.iter().enumerate().all(|(index, &byte)| byte == index as u8));
        assert_eq!(ending.unwrap(), Ending::Whole);
    }

    #[test]
    fn a_cut_gzip_stream_gives_the_packets_before_the_cut() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(&capture(200)).unwrap();
        let packed = encoder.finish().unwrap();
        let (packets, ending) = read_stream(MultiGzDecoder::new(&packed[..]));
        assert_eq!((packets.len(), ending.unwrap()), (200, Ending::Whole));
        let (packets, ending) = read_stream(MultiGzDecoder::new(&packed[..2_000]));
        assert!(packets.len() > 90 && packets.len() < 105, "{}", packets.len());
        assert!(matches!(ending.unwrap(), Ending::Damaged(_)));
    }

    #[test]
    fn a_block_that_is_skipped_may_exceed_the_window() {
        let mut file = vec![10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        file.extend([[0xff; 8], [28, 0, 0, 0, 0xad, 0x0b, 0, 0]].concat());
        let length = 5_000_000_u32;
        file.extend(length.to_le_bytes());
        file.resize(28 + length as usize, 0);
        let whole = read_stream(&file[..]).1;
        assert_eq!(whole.unwrap(), Ending::Whole);
        let (_, cut) = read_stream(&file[..4_000_000]);
        assert!(matches!(cut.unwrap(), Ending::Damaged(text) if text.starts_with("at byte 4000000")));
    }

    #[test]
    fn what_is_no_capture_is_an_error() {
        for bytes in [&b"hello world"[..], b""] {
            assert!(read_stream(bytes).1.is_err());
        }
        assert!(matches!(read_stream(&capture(0)[..20]).1, Ok(Ending::Damaged(_))));
    }
}
