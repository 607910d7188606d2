//! NFQUEUE: the kernel holds packets and asks us, packet by packet, what to do with them.
//!
//! ```text
//! rule -> kernel's list of held packets -> head of each packet to us (recvmmsg)
//!                       ^ id, verdict <- many verdicts in one send, in any order
//! ```
//! A packet stays in the kernel; only its first [`COPY_BYTES`] are copied. When the socket closes, the kernel
//! drops what it still holds, and rules with the bypass flag let new packets pass.
//! Numbers are those of `linux/netfilter/nfnetlink_queue.h`.

mod receive;

use crate::netlink::{Message, Netlink, NetlinkError, Protocol, Reply};
use receive::ReceiveBuffers;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub use receive::QueuedPacket;

/// Bytes copied of each packet: IPv6 with extension headers and a full TCP header fit.
pub const COPY_BYTES: u32 = 128;

/// Bytes asked for the socket's receive buffer. A head costs the kernel about 1 KB, so this holds some 8000.
const RECEIVE_BUFFER_BYTES: i32 = 8 << 20;

/// Verdicts that go to the kernel in one send.
const VERDICTS_PER_SEND: usize = 128;

/// Queue numbers tried when none is asked for; far from those that people type.
const FREE_NUMBERS: std::ops::Range<u16> = 0xACC0..0xAD00;

/// How to bind a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The queue's number; `None` takes a free one.
    pub number: Option<u16>,
    /// Whether super-packets come whole (needs care with their size) or the kernel cuts them into segments first.
    pub gso: bool,
    /// Packets that the kernel holds at most; further ones pass unqueued (fail open).
    pub max_packets: u32,
}

/// What to do with a held packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it go on.
    Accept,
    /// Let it go on with this mark.
    AcceptMarked(u32),
    /// Discard it.
    Drop,
}

/// What went wrong on the packet path since the start. Zeros on a healthy queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueErrors {
    /// Packets that passed unqueued because our socket was full (gaps in the packet ids).
    pub overrun_packets: u64,
    /// Messages that could not be understood.
    pub malformed_messages: u64,
    /// Verdicts that the kernel refused, and sends that failed.
    pub refused_verdicts: u64,
}

/// A bound queue.
#[derive(Debug)]
pub struct NfQueue {
    netlink: Netlink,
    number: u16,
    buffers: ReceiveBuffers,
    verdicts: Vec<u8>,
    pending_verdicts: usize,
    errors: QueueErrors,
}

impl NfQueue {
    /// Binds a queue in the caller's network namespace. Packets arrive as soon as a rule sends some.
    ///
    /// # Errors
    /// The kernel's refusal: EPERM without CAP_NET_ADMIN, EPERM or EBUSY when the number (or all free ones) is taken,
    /// EOPNOTSUPP or EINVAL without nfnetlink_queue.
    pub fn bind(options: QueueOptions) -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open(Protocol::Netfilter)?;
        set_socket_options(&netlink);
        let candidates = options.number.map_or(FREE_NUMBERS, |n| n..n.saturating_add(1));
        let mut last_error = None;
        for number in candidates {
            match netlink.request("bind packet queue", bind_message(number, options)) {
                Ok(early) => return Ok(Self::bound(netlink, number, &early)),
                Err(error) if is_taken(&error) => last_error = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last_error.unwrap_or_else(|| NetlinkError {
            operation: "bind packet queue".to_owned(),
            source: io::Error::from_raw_os_error(libc::EINVAL),
            text: None,
        }))
    }

    /// `early` are packets that came between the binding and its acknowledgement; they pass at once.
    fn bound(netlink: Netlink, number: u16, early: &[Reply]) -> Self {
        let mut queue = Self {
            netlink,
            number,
            buffers: ReceiveBuffers::new(),
            verdicts: Vec::new(),
            pending_verdicts: 0,
            errors: QueueErrors::default(),
        };
        for packet in early.iter().filter_map(|reply| receive::read_packet(&reply.body)) {
            queue.buffers.expect_id_after(packet.id);
            queue.verdict(packet.id, Verdict::Accept);
        }
        queue.flush();
        queue
    }

    /// The queue's number, for the rules.
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The descriptor to poll for packets.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.netlink.fd()
    }

    /// What went wrong so far.
    pub const fn errors(&self) -> QueueErrors {
        self.errors
    }

    /// Takes one batch of waiting packets without blocking and hands each to `sink`; returns their number, zero
    /// when none waits.
    ///
    /// # Errors
    /// When the socket is broken.
    pub fn receive(&mut self, sink: impl FnMut(QueuedPacket<'_>)) -> io::Result<usize> {
        self.buffers.receive(self.netlink.fd(), &mut self.errors, sink)
    }

    /// Notes a verdict; it takes effect with [`NfQueue::flush`] or when a batch is full.
    pub fn verdict(&mut self, id: u32, verdict: Verdict) {
        push_verdict(&mut self.verdicts, self.number, id, verdict);
        self.pending_verdicts += 1;
        if self.pending_verdicts == VERDICTS_PER_SEND {
            self.flush();
        }
    }

    /// Sends the noted verdicts.
    pub fn flush(&mut self) {
        if self.verdicts.is_empty() {
            return;
        }
        // The kernel works the verdicts off within the call. It fails only for want of memory; then the packets
        // stay held, and so little is left to do that the failure is counted and the next batch tried.
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe {
            libc::send(self.fd().as_raw_fd(), self.verdicts.as_ptr().cast(), self.verdicts.len(), 0)
        };
        if sent < 0 {
            self.errors.refused_verdicts += self.pending_verdicts as u64;
        }
        self.verdicts.clear();
        self.pending_verdicts = 0;
    }
}

fn set_socket_options(netlink: &Netlink) {
    let fd = netlink.fd().as_raw_fd();
    let set = |level, option, value: libc::c_int| {
        // SAFETY: `value` lives through the call and its true length is passed.
        unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), 4) == 0 }
    };
    // Without privilege over the machine (a user namespace) the forced size is refused; the other is capped.
    if !set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES) {
        set(libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES);
    }
    // A full buffer is seen by gaps in the ids; an error on the socket would only cost a system call.
    set(libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1);
}

/// One message that binds and configures, so that no packet meets a half-configured queue.
fn bind_message(number: u16, options: QueueOptions) -> Message {
    let command = [libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0];
    let [a, b, c, d] = COPY_BYTES.to_be_bytes();
    let copy = [a, b, c, d, libc::NFQNL_COPY_PACKET as u8];
    let gso = if options.gso { libc::NFQA_CFG_F_GSO } else { 0 };
    let flags = (libc::NFQA_CFG_F_FAIL_OPEN | gso) as u32;
    let all_flags = (libc::NFQA_CFG_F_FAIL_OPEN | libc::NFQA_CFG_F_GSO) as u32;
    message(libc::NFQNL_MSG_CONFIG, number)
        .attr(libc::NFQA_CFG_CMD as u16, &command)
        .attr(libc::NFQA_CFG_PARAMS as u16, &copy)
        .attr_be32(libc::NFQA_CFG_QUEUE_MAXLEN as u16, options.max_packets)
        .attr_be32(libc::NFQA_CFG_MASK as u16, all_flags)
        .attr_be32(libc::NFQA_CFG_FLAGS as u16, flags)
}

fn message(kind: i32, number: u16) -> Message {
    let kind = (libc::NFNL_SUBSYS_QUEUE << 8 | kind) as u16;
    Message::netfilter(kind, 0, libc::AF_UNSPEC as u8, number)
}

/// Another socket has the queue. EPERM means the same here: it also comes without CAP_NET_ADMIN, and then every
/// number gives it.
fn is_taken(error: &NetlinkError) -> bool {
    matches!(error.errno(), libc::EBUSY | libc::EPERM)
}

/// Appends a verdict message. Written by hand: this is the per-packet path, and [`Message`] allocates.
fn push_verdict(bytes: &mut Vec<u8>, number: u16, id: u32, verdict: Verdict) {
    const HEADER_BYTES: u16 = 16 + 4;
    const VERDICT_BYTES: u16 = 4 + 8;
    const MARK_BYTES: u16 = 4 + 4;
    const KIND: u16 = (libc::NFNL_SUBSYS_QUEUE << 8 | libc::NFQNL_MSG_VERDICT) as u16;
    let (decision, mark) = match verdict {
        Verdict::Accept => (libc::NF_ACCEPT, None),
        Verdict::AcceptMarked(mark) => (libc::NF_ACCEPT, Some(mark)),
        Verdict::Drop => (libc::NF_DROP, None),
    };
    let len = HEADER_BYTES + VERDICT_BYTES + if mark.is_some() { MARK_BYTES } else { 0 };
    bytes.extend_from_slice(&u32::from(len).to_ne_bytes());
    bytes.extend_from_slice(&KIND.to_ne_bytes());
    bytes.extend_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]); // sequence number and port: the kernel needs neither
    bytes.extend_from_slice(&[libc::AF_UNSPEC as u8, 0]);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&VERDICT_BYTES.to_ne_bytes());
    bytes.extend_from_slice(&(libc::NFQA_VERDICT_HDR as u16).to_ne_bytes());
    bytes.extend_from_slice(&decision.to_be_bytes());
    bytes.extend_from_slice(&id.to_be_bytes());
    if let Some(mark) = mark {
        bytes.extend_from_slice(&MARK_BYTES.to_ne_bytes());
        bytes.extend_from_slice(&(libc::NFQA_MARK as u16).to_ne_bytes());
        bytes.extend_from_slice(&mark.to_be_bytes());
    }
}

/// The kernel's own counters of a queue (`/proc/net/netfilter/nfnetlink_queue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelQueueCounters {
    /// Packets held now.
    pub held_packets: u64,
    /// Dropped because the queue was at its maximum (never with fail-open).
    pub queue_dropped: u64,
    /// Dropped because our socket was full (never with fail-open).
    pub socket_dropped: u64,
    /// Packets handed to us so far (wraps at 32 bits).
    pub last_id: u64,
}

/// Reads the kernel's counters of queue `number` in the calling thread's network namespace; `None` when there is
/// no such queue.
pub fn kernel_counters(number: u16) -> Option<KernelQueueCounters> {
    let table = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").ok()?;
    table.lines().find_map(|line| read_counters(line, number))
}

/// Columns: queue, port, held, copy mode, copy range, queue dropped, socket dropped, last id, 1.
fn read_counters(line: &str, number: u16) -> Option<KernelQueueCounters> {
    let columns: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [queue, _, held_packets, _, _, queue_dropped, socket_dropped, last_id, ..] = columns[..] else {
        return None;
    };
    (queue == u64::from(number)).then_some(KernelQueueCounters {
        held_packets,
        queue_dropped,
        socket_dropped,
        last_id,
    })
}

#[cfg(test)]
mod in_namespace;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_by_hand_equals_one_by_the_builder() {
        let built = |mark: Option<u32>, decision: u32| {
            let mut header = decision.to_be_bytes().to_vec();
            header.extend_from_slice(&77u32.to_be_bytes());
            let m = message(libc::NFQNL_MSG_VERDICT, 3).attr(libc::NFQA_VERDICT_HDR as u16, &header);
            mark.map_or(m.clone(), |mark| m.attr_be32(libc::NFQA_MARK as u16, mark)).finish(0)
        };
        for (verdict, mark, decision) in [
            (Verdict::Accept, None, libc::NF_ACCEPT as u32),
            (Verdict::AcceptMarked(5), Some(5), libc::NF_ACCEPT as u32),
            (Verdict::Drop, None, libc::NF_DROP as u32),
        ] {
            let mut bytes = Vec::new();
            push_verdict(&mut bytes, 3, 77, verdict);
            assert_eq!(bytes, built(mark, decision), "{verdict:?}");
        }
    }

    #[test]
    fn the_kernels_counters_are_read() {
        let line = "44224   1234    12     2   128     3     4    99  1";
        let expected =
            KernelQueueCounters { held_packets: 12, queue_dropped: 3, socket_dropped: 4, last_id: 99 };
        assert_eq!(read_counters(line, 44224), Some(expected));
        assert_eq!(read_counters(line, 1), None);
        assert_eq!(read_counters("garbage", 1), None);
    }
}
