//! Memory shared between a ring's socket and us.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// The mapped ring; unmapped on drop. The kernel writes a slot only while its status says that it owns it.
#[derive(Debug)]
pub(super) struct SharedMap {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for SharedMap {}

impl SharedMap {
    /// Maps the ring that was set up on `socket`.
    pub(super) fn new(socket: &OwnedFd, len: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the result is checked.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        match NonNull::new(start.cast()) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED.cast() => Ok(Self { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The word that says who owns the slot at `offset`.
    ///
    /// # Panics
    /// When the slot is outside of the ring.
    pub(super) fn status(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.len && offset.is_multiple_of(4));
        // SAFETY: inside the mapping, aligned (the mapping is page-aligned), accessed by us only as an atomic, and
        // alive as long as `self`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The bytes behind the status word and the word itself; call only while the status gives the slot to us.
    pub(super) fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as `self`. The kernel does not write to a slot that it
        // gave to us, and `PacketRing::receive` gives it back only after the borrow has ended.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) })
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no borrow of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
