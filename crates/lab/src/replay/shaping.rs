//! What the engine would have done with the packets that one side of a capture sent, in virtual time.
//!
//! The senders of a capture do not react: a drop or mark that would have slowed them down changes nothing in the
//! packets that follow. The figures say what the queue would have met, not how the transfer would have gone.

use super::flow::{FlowId, Index, MAX_FLOWS};
use super::packet::Captured;
use super::{FlowName, Samples};
use engine::{Class, DropReason, MTU_BYTES, Packet, Poll, Shaper, ShaperConfig, Stats};
use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;
use units::Timestamp;
use wire::Salt;
use wire::capture::Record;

/// Delays kept for all flows together, and for each, before they are thinned.
const SAMPLES: usize = 1 << 20;
const FLOW_SAMPLES: usize = 128;
/// Fixed, so that the same file gives the same report.
const SALT: Salt = Salt([0x510e_527f_ade6_82d1, 0x9b05_688c_2b3e_6c1f]);

/// The queue's answer to one flow.
#[derive(Clone, Debug)]
pub struct ShapedFlow {
    /// Which one.
    pub name: FlowName,
    /// Packets sent.
    pub sent: u64,
    /// Of these, with Congestion Experienced set.
    pub marked: u64,
    /// Packets dropped by CoDel.
    pub dropped_aqm: u64,
    /// Packets dropped for want of room.
    pub dropped_overflow: u64,
    /// Time in the queue, of the packets sent.
    pub delay: Samples,
}

/// The queue's answer to all packets.
#[derive(Clone, Debug)]
pub struct ShapingReport {
    /// Whose packets were queued.
    pub from: Vec<IpAddr>,
    /// The engine's own counters.
    pub stats: Stats,
    /// Time in the queue, of the packets sent.
    pub delay: Samples,
    /// By first appearance, up to the limit of the flow table.
    pub flows: Vec<ShapedFlow>,
}

impl ShapingReport {
    /// At most `limit` flows, those with most packets sent first.
    pub fn busiest_flows(&self, limit: usize) -> Vec<&ShapedFlow> {
        let mut flows: Vec<&ShapedFlow> = self.flows.iter().collect();
        flows.sort_by_key(|flow| Reverse(flow.sent));
        flows.truncate(limit);
        flows
    }
}

/// Feeds a shaper.
#[derive(Debug)]
pub struct Shaping {
    shaper: Shaper<Handle>,
    from: Vec<IpAddr>,
    now: Timestamp,
    index: Index,
    flows: Vec<ShapedFlow>,
    delay: Samples,
}

/// What is remembered of a queued packet.
#[derive(Clone, Copy, Debug)]
struct Handle {
    queued: Timestamp,
    /// `None` beyond the flow table.
    row: Option<usize>,
}

impl Shaping {
    /// A shaper for the packets whose source is one of `from`.
    pub fn new(config: ShaperConfig, from: Vec<IpAddr>) -> Self {
        Self {
            shaper: Shaper::new(config),
            from,
            now: Timestamp::ZERO,
            index: Index::default(),
            flows: Vec::new(),
            delay: Samples::new(SAMPLES),
        }
    }

    /// Takes the next record of the file; one that steps back in time comes at the latest time so far.
    pub fn push(&mut self, record: &Record<'_>) {
        let Ok(packet) = Captured::read(record) else { return };
        let Some(time) = packet.time.filter(|_| self.from.contains(&packet.summary.flow.source)) else {
            return;
        };
        let arrival = time.max(self.now);
        self.run_until(arrival);
        self.now = arrival;
        let handle = Handle { queued: arrival, row: self.row(&packet) };
        self.shaper.push(
            arrival,
            Packet {
                handle,
                flow: packet.summary.flow.hash(&SALT),
                bytes: packet.summary.packet_bytes,
                segment_bytes: segment_bytes(&packet),
                header_bytes: packet.summary.header_bytes,
                ecn: packet.summary.ecn,
                class: Class::Normal,
            },
        );
        self.run_until(arrival);
    }

    /// Lets the queue run dry.
    pub fn finish(mut self) -> ShapingReport {
        self.run_until(Timestamp::MAX);
        ShapingReport {
            from: self.from,
            stats: self.shaper.stats().clone(),
            delay: self.delay,
            flows: self.flows,
        }
    }

    /// Polls whatever is due up to `end`; every turn hands out a packet or moves on in time.
    fn run_until(&mut self, end: Timestamp) {
        loop {
            match self.shaper.poll(self.now) {
                Poll::Send { handle, mark } => self.on_sent(handle, mark),
                Poll::Drop { handle, reason } => self.on_dropped(handle, reason),
                Poll::WaitUntil(due) if due <= end && due > self.now => self.now = due,
                Poll::WaitUntil(_) | Poll::Idle => return,
            }
        }
    }

    fn on_sent(&mut self, handle: Handle, mark: bool) {
        let delay: Duration = self.now - handle.queued;
        self.delay.record(delay);
        let Some(flow) = self.flow(handle) else { return };
        flow.sent += 1;
        flow.marked += u64::from(mark);
        flow.delay.record(delay);
    }

    fn on_dropped(&mut self, handle: Handle, reason: DropReason) {
        let Some(flow) = self.flow(handle) else { return };
        match reason {
            DropReason::Aqm => flow.dropped_aqm += 1,
            DropReason::Overflow => flow.dropped_overflow += 1,
        }
    }

    fn flow(&mut self, handle: Handle) -> Option<&mut ShapedFlow> {
        self.flows.get_mut(handle.row?)
    }

    fn row(&mut self, packet: &Captured<'_>) -> Option<usize> {
        let id = FlowId::new(packet.tag, &packet.summary.flow);
        if let Some(&row) = self.index.get(&id) {
            return Some(row);
        }
        if self.flows.len() == MAX_FLOWS {
            return None;
        }
        self.flows.push(ShapedFlow {
            name: FlowName { tag: packet.tag, first: packet.summary.flow },
            sent: 0,
            marked: 0,
            dropped_aqm: 0,
            dropped_overflow: 0,
            delay: Samples::new(FLOW_SAMPLES),
        });
        self.index.insert(id, self.flows.len() - 1);
        Some(self.flows.len() - 1)
    }
}

/// Size of the segments of a TCP super-packet, as if they were as large as an Ethernet packet allows: a
/// capture does not tell the segment size.
fn segment_bytes(packet: &Captured<'_>) -> u16 {
    let is_super = packet.summary.tcp.is_some() && packet.summary.packet_bytes > MTU_BYTES;
    if is_super { 1_500 } else { 0 }
}
