//! Receiving many packet heads with one system call into buffers that are made once.

use super::QueueErrors;
use crate::netlink::attributes;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Messages taken by one recvmmsg.
const MESSAGES: usize = 64;

/// Room for one message: 128 bytes of packet and less than 250 of other attributes.
const MESSAGE_BYTES: usize = 512;

const NETLINK_HEADER_BYTES: usize = 16;
const PACKET_KIND: u16 = (libc::NFNL_SUBSYS_QUEUE << 8 | libc::NFQNL_MSG_PACKET) as u16;

/// A packet that the kernel holds until its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// Names the packet in its verdict.
    pub id: u32,
    /// Its first bytes, from the IP header on.
    pub head: &'a [u8],
    /// Bytes of the whole packet.
    pub bytes: u32,
    /// Whether it is a super-packet that the interface will cut into segments.
    pub is_gso: bool,
    /// The packet's mark (fwmark), zero for none.
    pub mark: u32,
}

/// Buffers for recvmmsg. No vector grows after [`ReceiveBuffers::new`], so their addresses stay as they are.
pub(super) struct ReceiveBuffers {
    bytes: Vec<[u8; MESSAGE_BYTES]>,
    /// Points into `bytes` and, through `headers`, is what the kernel fills.
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    next_id: Option<u32>,
}

// SAFETY: the raw pointers lead only into vectors of the same value, whose heap memory moves along with it.
unsafe impl Send for ReceiveBuffers {}

impl fmt::Debug for ReceiveBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveBuffers").field("next_id", &self.next_id).finish_non_exhaustive()
    }
}

impl ReceiveBuffers {
    pub(super) fn new() -> Self {
        // SAFETY: all-zero is a valid value of both plain C structs (null pointers, zero lengths).
        let (vector, header): (libc::iovec, libc::mmsghdr) = unsafe { std::mem::zeroed() };
        let mut buffers = Self {
            bytes: vec![[0; MESSAGE_BYTES]; MESSAGES],
            vectors: vec![vector; MESSAGES],
            headers: vec![header; MESSAGES],
            next_id: None,
        };
        for i in 0..MESSAGES {
            buffers.vectors[i] =
                libc::iovec { iov_base: buffers.bytes[i].as_mut_ptr().cast(), iov_len: MESSAGE_BYTES };
            buffers.headers[i].msg_hdr.msg_iov = &raw mut buffers.vectors[i];
            buffers.headers[i].msg_hdr.msg_iovlen = 1;
        }
        buffers
    }

    /// Notes the last id seen, so that gaps are counted from there.
    pub(super) fn expect_id_after(&mut self, id: u32) {
        self.next_id = Some(id.wrapping_add(1));
    }

    pub(super) fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        errors: &mut QueueErrors,
        mut sink: impl FnMut(QueuedPacket<'_>),
    ) -> io::Result<usize> {
        // SAFETY: each header points to one iovec that points to MESSAGE_BYTES writable bytes; all are owned
        // by self and never grow, so the addresses set in new() are still right.
        let got = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                MESSAGES as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            let is_empty = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            // ENOBUFS cannot come with NETLINK_NO_ENOBUFS, but is harmless: the gap in the ids tells.
            return if is_empty || error.raw_os_error() == Some(libc::ENOBUFS) { Ok(0) } else { Err(error) };
        }
        let got = got as usize;
        for i in 0..got {
            let len = (self.headers[i].msg_len as usize).min(MESSAGE_BYTES);
            let Some(message) = self.bytes[i].get(..len) else { continue };
            match read_message(message) {
                Incoming::Packet(packet) => {
                    let expected = self.next_id.unwrap_or(packet.id);
                    errors.overrun_packets += u64::from(gap(expected, packet.id));
                    self.next_id = Some(packet.id.wrapping_add(1));
                    sink(packet);
                }
                Incoming::Refusal => errors.refused_verdicts += 1,
                Incoming::Malformed => errors.malformed_messages += 1,
            }
        }
        Ok(got)
    }
}

/// Ids skipped between the expected one and the one that came; zero when it came early (ids wrap).
fn gap(expected: u32, id: u32) -> u32 {
    let ahead = id.wrapping_sub(expected);
    if ahead < u32::MAX / 2 { ahead } else { 0 }
}

enum Incoming<'a> {
    Packet(QueuedPacket<'a>),
    Refusal,
    Malformed,
}

fn read_message(message: &[u8]) -> Incoming<'_> {
    let Some((header, body)) = message.split_at_checked(NETLINK_HEADER_BYTES) else {
        return Incoming::Malformed;
    };
    match u16::from_ne_bytes([header[4], header[5]]) {
        PACKET_KIND => read_packet(body).map_or(Incoming::Malformed, Incoming::Packet),
        kind if i32::from(kind) == libc::NLMSG_ERROR => Incoming::Refusal,
        _ => Incoming::Malformed,
    }
}

/// `struct nfgenmsg` and attributes.
pub(super) fn read_packet(body: &[u8]) -> Option<QueuedPacket<'_>> {
    const PACKET_HEADER: u16 = libc::NFQA_PACKET_HDR as u16;
    const PAYLOAD: u16 = libc::NFQA_PAYLOAD as u16;
    const WHOLE_BYTES: u16 = libc::NFQA_CAP_LEN as u16;
    const SKB_INFO: u16 = libc::NFQA_SKB_INFO as u16;
    const MARK: u16 = libc::NFQA_MARK as u16;
    let mut id = None;
    let mut packet = QueuedPacket { id: 0, head: &[], bytes: 0, is_gso: false, mark: 0 };
    for (kind, value) in attributes(body.get(4..)?) {
        match kind {
            PACKET_HEADER => id = be32(value),
            PAYLOAD => packet.head = value,
            WHOLE_BYTES => packet.bytes = be32(value)?,
            SKB_INFO => packet.is_gso = be32(value)? & libc::NFQA_SKB_GSO as u32 != 0,
            MARK => packet.mark = be32(value)?,
            _ => {}
        }
    }
    packet.id = id?;
    // The kernel states the whole length only when it cut the packet.
    packet.bytes = packet.bytes.max(packet.head.len() as u32);
    Some(packet)
}

fn be32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(0..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Message;

    fn packet_message(id: u32) -> Vec<u8> {
        let mut header = id.to_be_bytes().to_vec();
        header.extend_from_slice(&[0x08, 0x00, 4]);
        Message::netfilter(PACKET_KIND, 0, 2, 1)
            .attr(libc::NFQA_PACKET_HDR as u16, &header)
            .attr_be32(libc::NFQA_MARK as u16, 7)
            .attr(libc::NFQA_PAYLOAD as u16, &[0x45; 128])
            .attr_be32(libc::NFQA_CAP_LEN as u16, 64_000)
            .attr_be32(libc::NFQA_SKB_INFO as u16, libc::NFQA_SKB_GSO as u32)
            .finish(1)
    }

    #[test]
    fn a_packet_message_is_read_back() {
        let bytes = packet_message(9);
        let Incoming::Packet(packet) = read_message(&bytes) else { panic!("not read") };
        let expected = QueuedPacket { id: 9, head: &[0x45; 128], bytes: 64_000, is_gso: true, mark: 7 };
        assert_eq!(packet, expected);
    }

    #[test]
    fn a_message_cut_anywhere_never_panics() {
        let bytes = packet_message(9);
        for len in 0..bytes.len() {
            if let Incoming::Packet(packet) = read_message(&bytes[..len]) {
                assert_eq!(packet.id, 9);
            }
        }
    }

    #[test]
    fn skipped_ids_are_counted_and_wrap() {
        assert_eq!(gap(5, 5), 0);
        assert_eq!(gap(5, 8), 3);
        assert_eq!(gap(u32::MAX, 1), 2);
        assert_eq!(gap(8, 5), 0);
    }
}
