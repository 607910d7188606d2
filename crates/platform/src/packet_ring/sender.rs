//! Sending frames in batches.

use super::socket::{bind, packet_option, packet_socket, set_option};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Most frames one [`PacketSender::send`] hands to the kernel.
pub const BATCH: usize = 64;

/// Sends frames on one interface, past its queueing discipline.
#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
}

impl PacketSender {
    /// Opens a sender. With `vnet_header` each frame must begin with a virtio_net_hdr, as
    /// [`Received::bytes`](super::Received::bytes) does.
    ///
    /// # Errors
    /// As [`PacketRing::open`](super::PacketRing::open).
    pub fn open(interface: &str, vnet_header: bool) -> io::Result<Self> {
        /// Asked for, of which net.core.wmem_max may leave less: it bounds what the other end has not yet taken.
        const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;
        let socket = packet_socket()?;
        packet_option(&socket, libc::PACKET_VNET_HDR, &libc::c_int::from(vnet_header))?;
        packet_option(&socket, libc::PACKET_QDISC_BYPASS, &1i32)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER_BYTES)?;
        bind(&socket, interface, 0)?;
        Ok(Self { socket })
    }

    /// Sends the first [`BATCH`] of `frames` without waiting and returns how many of them the kernel took.
    ///
    /// # Errors
    /// Why it did not take the first one: WouldBlock when the other end lags behind, ENETDOWN when the interface is
    /// down.
    pub fn send<T: AsRef<[u8]>>(&self, frames: &[T]) -> io::Result<usize> {
        // SAFETY: all-zero iovec and mmsghdr are valid: no address, no data.
        let mut parts: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let count = frames.len().min(BATCH);
        for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
            let bytes = frame.as_ref();
            *part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `messages` and `parts` live through the call, point to `count` valid buffers, and the kernel only
        // reads those.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}
