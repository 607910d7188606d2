//! Where packets come from and go back to: what a packet-holding mechanism offers to the pump.

use crate::nfqueue::{NfQueue, QueuedPacket, Verdict};
use crate::nft::CE_COOKIE;
use std::io;

/// A packet that waits for [`Datapath::send`] or [`Datapath::discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a, H> {
    /// Names the packet.
    pub handle: H,
    /// Its first bytes, from the IP header on.
    pub head: &'a [u8],
    /// IP bytes of the whole packet.
    pub bytes: u32,
    /// Whether Congestion Experienced can be set on it.
    pub can_mark: bool,
}

/// Holds packets until it is told what to do with them. Nothing here blocks.
pub trait Datapath {
    /// Names a held packet; later ones are greater (where they wrap, one burst may leave in another order).
    type Handle: Copy + Ord;

    /// Takes one batch of new packets; returns their number, zero when none waits.
    ///
    /// # Errors
    /// When the mechanism is broken.
    fn receive(&mut self, sink: impl FnMut(Captured<'_, Self::Handle>)) -> io::Result<usize>;

    /// Lets a packet go on, with Congestion Experienced when `mark` is set.
    fn send(&mut self, handle: Self::Handle, mark: bool);

    /// Drops a packet.
    fn discard(&mut self, handle: Self::Handle);

    /// Makes all decisions so far take effect.
    fn flush(&mut self);
}

impl Datapath for NfQueue {
    type Handle = u32;

    #[inline]
    fn receive(&mut self, mut sink: impl FnMut(Captured<'_, u32>)) -> io::Result<usize> {
        Self::receive(self, |QueuedPacket { id, head, bytes, mark, .. }| {
            // The cookie would overwrite a mark of somebody else's (nft.rs).
            sink(Captured { handle: id, head, bytes, can_mark: mark == 0 });
        })
    }

    #[inline]
    fn send(&mut self, handle: u32, mark: bool) {
        self.verdict(handle, if mark { Verdict::AcceptMarked(CE_COOKIE) } else { Verdict::Accept });
    }

    #[inline]
    fn discard(&mut self, handle: u32) {
        self.verdict(handle, Verdict::Drop);
    }

    fn flush(&mut self) {
        Self::flush(self);
    }
}
