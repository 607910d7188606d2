//! What the engine counts.

use crate::Histogram;
use units::Bytes;

/// Packets and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets; a super-packet counts once.
    pub packets: u64,
    /// IP bytes.
    pub bytes: Bytes,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += Bytes::from(bytes);
    }
}

/// Counters since the start; they only grow. A snapshot is a clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Taken in by push.
    pub enqueued: Count,
    /// Handed out as `Poll::Send`, marked ones included.
    pub sent: Count,
    /// Bytes of the sent packets as charged to the link: every segment with its headers and overhead.
    pub sent_wire_bytes: Bytes,
    /// Dropped by CoDel.
    pub dropped_aqm: Count,
    /// Dropped because the buffer was full.
    pub dropped_overflow: Count,
    /// Handed out by drain.
    pub drained: Count,
    /// Sent with Congestion Experienced set by CoDel.
    pub marked: u64,
    /// Sent ahead of the pacer by the express lane.
    pub express: u64,
    /// Sent by the priority tier, out of their flows' turns.
    pub priority: Count,
    /// Times that a marked flow lost the tier, since it had too much waiting or was too far ahead of its turns.
    pub demotions: u64,
    /// Times that the tier gave way to another packet after four of its own.
    pub priority_yields: u64,
    /// Pure ACKs that skipped the queue.
    pub acks_bypassed: Count,
    /// Pure ACKs that had to queue, since the link had no room for them for longer than CoDel's target.
    pub acks_queued: u64,
    /// Sojourn time of the pure ACKs sent, of both kinds.
    pub ack_sojourn: Histogram,
    /// Packets that shared another flow's queue, since all eight of their set were in use.
    pub shared: u64,
    /// Most packets held at once.
    pub peak_packets: u32,
    /// Most wire bytes held at once.
    pub peak_bytes: Bytes,
    /// Sojourn time of the sent packets other than pure ACKs.
    pub sojourn: Histogram,
}

impl Stats {
    /// Whether pure ACKs alone wanted more than the link since `earlier`, a snapshot of these counters: most of them
    /// had to queue.
    pub fn acks_fill_link_since(&self, earlier: &Self) -> bool {
        let queued = self.acks_queued - earlier.acks_queued;
        queued > self.acks_bypassed.packets - earlier.acks_bypassed.packets
    }

    /// Packets that were enqueued and not handed back yet.
    pub fn held(&self) -> u64 {
        let gone = [self.sent, self.dropped_aqm, self.dropped_overflow, self.drained];
        self.enqueued.packets - gone.iter().map(|count| count.packets).sum::<u64>()
    }
}
