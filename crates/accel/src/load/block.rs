//! The source's stream: blocks of payload, each headed by what the server's kernel has sent on this connection.
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | the server's monotonic time in ns |
//! | 8 | data segments sent so far, retransmissions included |
//! | 8 | retransmissions among them |
//! | rest of [`BLOCK_BYTES`] | payload |
//!
//! All u64 little endian. The time travels along, as in an upload's report: the head may wait in the very queue that
//! it tells of. Pure.

use super::series::{Sent, Series};
use super::transfer::BUFFER_BYTES;
use units::Timestamp;

/// Length of one block: at 1 Mbit/s one every 131 ms. The payload buffer holds whole blocks.
pub(super) const BLOCK_BYTES: usize = 16 * 1024;
const HEAD_BYTES: usize = 24;
const _: () = assert!(BUFFER_BYTES.is_multiple_of(BLOCK_BYTES));

/// The sender's side of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockWriter {
    /// Bytes sent so far, modulo the payload buffer.
    offset: usize,
    head: [u8; HEAD_BYTES],
}

impl BlockWriter {
    /// From the next block on, heads say this. Not in the middle of a head, whose rest must match its beginning.
    pub(super) fn set_head(&mut self, at: Timestamp, sent: Sent) {
        let within = self.offset % BLOCK_BYTES;
        if within == 0 || within >= HEAD_BYTES {
            let words = [at.as_nanos(), sent.segments, sent.retransmits];
            self.head.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
        }
    }

    /// What to send next, at most to the end of the buffer: `payload` with this stream's heads written into it.
    pub(super) fn next<'a>(&self, payload: &'a mut [u8]) -> &'a [u8] {
        for block in payload.chunks_exact_mut(BLOCK_BYTES) {
            block[..HEAD_BYTES].copy_from_slice(&self.head);
        }
        &payload[self.offset..]
    }

    /// So many bytes of it have been sent.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.offset = (self.offset + bytes) % BUFFER_BYTES;
    }
}

/// The receiver's side of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockReader {
    /// Position in the current block.
    position: usize,
    head: [u8; HEAD_BYTES],
    /// On the server's clock.
    series: Vec<(Timestamp, Sent)>,
    /// As in the upload's reports: smallest difference of arrival here and the server's time.
    offset_ns: Option<i128>,
}

/// Most heads kept of one stream; a run is far shorter.
const MAX_HEADS: usize = 36_000;

impl BlockReader {
    /// Takes what was read, in any pieces.
    pub(super) fn push(&mut self, now: Timestamp, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = if self.position < HEAD_BYTES { HEAD_BYTES } else { BLOCK_BYTES };
            let taken = bytes.len().min(end - self.position);
            if self.position < HEAD_BYTES {
                self.head[self.position..self.position + taken].copy_from_slice(&bytes[..taken]);
            }
            self.position += taken;
            bytes = &bytes[taken..];
            if self.position == HEAD_BYTES {
                self.on_head(now);
            }
            self.position %= BLOCK_BYTES;
        }
    }

    /// A head that goes backwards is not believed; one that repeats the last says nothing new.
    fn on_head(&mut self, now: Timestamp) {
        let mut words = self.head.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let (at, sent) = (Timestamp::from_nanos(next()), Sent { segments: next(), retransmits: next() });
        if self.series.last().is_some_and(|&(last, _)| at <= last) || self.series.len() == MAX_HEADS {
            return;
        }
        let difference = i128::from(now.as_nanos()) - i128::from(at.as_nanos());
        self.offset_ns = Some(self.offset_ns.map_or(difference, |offset| offset.min(difference)));
        self.series.push((at, sent));
    }

    /// What the server had sent, on this machine's clock (late by the shortest way from the server).
    pub(super) fn series(&self) -> Series {
        Series::of_sent(self.series.iter().copied()).shifted(self.offset_ns.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Window;

    #[test]
    fn heads_survive_any_cut_of_the_stream() {
        for piece in [1_000, 7, BLOCK_BYTES, 50_001] {
            let (mut writer, mut reader) = (BlockWriter::default(), BlockReader::default());
            let mut payload = vec![0xAA; BUFFER_BYTES];
            for tick in 1..=40 {
                writer
                    .set_head(Timestamp::from_millis(tick), Sent { segments: 10 * tick, retransmits: tick });
                let mut left = 3 * BLOCK_BYTES;
                while left > 0 {
                    let next = writer.next(&mut payload);
                    let length = next.len().min(piece).min(left);
                    reader.push(Timestamp::from_millis(500 + tick), &next[..length]);
                    writer.advance(length);
                    left -= length;
                }
            }
            let sent = reader.series().latest().sent;
            assert!(sent.retransmits >= 38 && sent.segments == 10 * sent.retransmits, "{piece}: {sent:?}");
            let window = Window { start: Timestamp::from_millis(505), end: Timestamp::from_millis(525) };
            assert_eq!(reader.series().sent(window).retransmits, 20, "{piece}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_stream_in_any_pieces_gives_a_series_that_grows(
            pieces in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..40_000), 0..6),
        ) {
            let mut reader = BlockReader::default();
            for (tick, piece) in (0..).zip(&pieces) {
                reader.push(Timestamp::from_millis(tick), piece);
            }
            let times: Vec<Timestamp> = reader.series().points().map(|(at, _)| at).collect();
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn a_lying_source_breaks_nothing() {
        let mut reader = BlockReader::default();
        for _ in 0..3 {
            reader.push(Timestamp::from_millis(1), &[0xFF; BLOCK_BYTES]);
            reader.push(Timestamp::from_millis(2), &[0; BLOCK_BYTES]);
        }
        assert_eq!(reader.series().points().count(), 1);
    }
}
