//! Buffers for the frames under way, used again and again.

/// Room for a small frame: an acknowledgement, a handshake, a game's packet.
const SMALL_BYTES: usize = 256;
const LARGE_BYTES: usize = platform::packet_ring::SLOT_BYTES;

/// A virtio_net_hdr and a frame.
#[derive(Debug)]
pub(super) struct Frame {
    buffer: Box<[u8]>,
    len: usize,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Free buffers in two sizes. It grows to the most that was ever under way and then allocates no more.
#[derive(Debug)]
pub(super) struct Pool {
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
}

impl Pool {
    pub(super) fn with_buffers(each: usize) -> Self {
        let buffers = |bytes| (0..each).map(|_| buffer(bytes)).collect();
        Self { small: buffers(SMALL_BYTES), large: buffers(LARGE_BYTES) }
    }

    /// A copy of `bytes`, of which what exceeds a large buffer is left out (a ring's slot holds no more).
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Frame {
        let len = bytes.len().min(LARGE_BYTES);
        let (free, size) =
            if len <= SMALL_BYTES { (&mut self.small, SMALL_BYTES) } else { (&mut self.large, LARGE_BYTES) };
        let mut buffer = free.pop().unwrap_or_else(|| buffer(size));
        buffer[..len].copy_from_slice(&bytes[..len]);
        Frame { buffer, len }
    }

    /// Takes a buffer back.
    pub(super) fn reuse(&mut self, frame: Frame) {
        let free = if frame.buffer.len() <= SMALL_BYTES { &mut self.small } else { &mut self.large };
        free.push(frame.buffer);
    }
}

fn buffer(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let mut pool = Pool::with_buffers(1);
        for len in [1, SMALL_BYTES, SMALL_BYTES + 1, LARGE_BYTES] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let frame = pool.copy(&bytes);
            assert_eq!(frame.as_ref(), bytes);
            pool.reuse(frame);
            assert_eq!((pool.small.len(), pool.large.len()), (1, 1));
        }
    }

    #[test]
    fn an_empty_pool_grows() {
        let mut pool = Pool::with_buffers(0);
        let [a, b] = [pool.copy(b"a"), pool.copy(b"b")];
        assert_eq!((a.as_ref(), b.as_ref()), (&b"a"[..], &b"b"[..]));
        pool.reuse(a);
        pool.reuse(b);
        assert_eq!(pool.small.len(), 2);
    }
}
