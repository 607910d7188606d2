//! Moving bytes through a non-blocking socket, a bounded number at a time.

use super::block::BlockWriter;
use super::series::Sent;
use platform::tcp::TcpSocket;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::io::{self, Read, Write};

/// Size of the buffers: one for all flows of a thread.
pub(super) const BUFFER_BYTES: usize = 128 * 1024;
/// Reads or writes on one socket before the next one has its turn.
const TURNS: usize = 4;

/// What there is to send: the same pseudo-random bytes again and again, so that nothing on the way compresses
/// them.
pub(super) fn payload() -> Vec<u8> {
    let mut random = Pcg32::new(1, 1);
    let mut bytes = vec![0; BUFFER_BYTES];
    random.fill_bytes(&mut bytes);
    bytes
}

/// A buffer to read into.
pub(super) fn read_buffer() -> Vec<u8> {
    vec![0; BUFFER_BYTES]
}

/// Reads what is there, for at most [`TURNS`] buffers, and shows it to `on_bytes`; whether the peer has ended
/// the stream.
pub(super) fn drain(
    mut socket: &TcpSocket,
    buffer: &mut [u8],
    mut on_bytes: impl FnMut(&[u8]),
) -> io::Result<bool> {
    for _ in 0..TURNS {
        match socket.read(buffer) {
            Ok(0) => return Ok(true),
            Ok(count) => on_bytes(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Writes `payload` until the socket takes no more, [`TURNS`] times at most; the number of bytes taken.
pub(super) fn fill(mut socket: &TcpSocket, payload: &[u8]) -> io::Result<u64> {
    let mut taken = 0;
    for _ in 0..TURNS {
        match socket.write(payload) {
            Ok(count) => taken += count as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Writes a source's stream until the socket takes no more, [`TURNS`] times and `most` bytes at most; the number of
/// bytes taken.
pub(super) fn fill_blocks(
    mut socket: &TcpSocket,
    blocks: &mut BlockWriter,
    payload: &mut [u8],
    most: usize,
) -> io::Result<u64> {
    let mut left = most;
    for _ in 0..TURNS {
        let next = blocks.next(payload);
        match socket.write(&next[..next.len().min(left)]) {
            Ok(0) => break,
            Ok(count) => {
                blocks.advance(count);
                left -= count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((most - left) as u64)
}

/// What the kernel has sent on this connection; zero when it cannot say.
pub(super) fn sent(socket: &TcpSocket) -> Sent {
    let Ok(info) = socket.info() else { return Sent::default() };
    let segments = info.data_segments_out.or(info.segments_out).unwrap_or(0);
    Sent { segments: segments.into(), retransmits: info.total_retransmits.into() }
}
