//! No file makes this program use unbounded memory or time.

use std::io::{self, BufRead, Read};

/// Bytes after decompression: room for more than twenty million samples in any format.
const MAX_BYTES: u64 = 4 << 30;
/// Longest line of a text format; JSON may come in one line.
pub(super) const MAX_LINE: usize = 64 << 10;

/// A reader that refuses to go on after the limit.
pub(super) struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: BufRead> Limited<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, left: MAX_BYTES }
    }
}

impl<R: BufRead> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Limited<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "longer than 4 GiB"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.inner.consume(count);
    }
}

/// Calls `each` with every line and its number from 1, without line ends; bytes that are no UTF-8 are replaced.
pub(super) fn for_each_line<E: From<io::Error>>(
    mut source: impl BufRead,
    mut each: impl FnMut(u64, &str) -> Result<(), E>,
) -> Result<(), E> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let read = source.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if read > MAX_LINE {
            let what = format!("line {number} is longer than {MAX_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
        }
        each(number, String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']))?;
    }
}

impl From<io::Error> for super::ImportError {
    fn from(error: io::Error) -> Self {
        Self::from_read(error)
    }
}
