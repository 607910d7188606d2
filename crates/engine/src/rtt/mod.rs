//! Passive round-trip times: TCP measures every round trip already, this reads along.
//!
//! ```text
//! segment leaves ---> remembered: end, time          (never a retransmission: Karn's rule)
//!        ACK covers it or SACKs it ---> time of the newest one covered = RTT sample
//!                 per connection: minimum  ---> median of the minima: base RTT
//!                 sparse connections only: latest - minimum ---> median: inflation
//! ```
//!
//! The clock of a segment starts when the caller reports it; a shaper reports it when it leaves the queue, so that
//! its own sojourn is not in the sample (TCP_INFO contains it). Sources: RFC 6298 section 3 (Karn's rule), RFC 2018
//! and RFC 2883 (SACK), RFC 9293 section 3.4 (sequence numbers).
//!
//! What gives no sample, since its acknowledgement says nothing about the path:
//! * a segment that starts below what was sent before: a retransmission, a keep-alive, or one out of order;
//! * every segment still unacknowledged behind the start of a retransmission: its cumulative acknowledgement waits
//!   for the hole to be filled;
//! * a cumulative acknowledgement that covers a retransmission, also for what it covers besides: an earlier
//!   acknowledgement of that may have been lost;
//! * an acknowledgement of bytes that were never seen, and one that is stamped before its segment.
//!
//! Memory is bounded by [`RttConfig`], whatever arrives.

mod connection;
mod estimate;
mod sender;
mod sequence;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;
use table::{Key, Table};
use units::Timestamp;
use wire::{SackBlocks, Salt, Summary};

pub use estimate::{Inflation, PathRtt};

/// Bounds of a [`PassiveRtt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// Connections remembered; the one that was silent the longest makes room (within its part of the table).
    pub connections: usize,
    /// Segments under way that are timed in each direction of a connection; further ones go untimed.
    pub segments_per_direction: usize,
    /// Segments under way that are timed in all connections together.
    pub segments: usize,
    /// Secret of the table's hash.
    pub salt: Salt,
}

impl RttConfig {
    /// For a live datapath: at most about 10 MB.
    pub const fn new(salt: Salt) -> Self {
        Self { connections: 4_096, segments_per_direction: 64, segments: 262_144, salt }
    }
}

/// Where a packet is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// It leaves this host: data is timed.
    Out,
    /// It arrives at this host: acknowledgements are taken.
    In,
    /// It passes an observer between the two, as in a capture: both.
    Past,
}

/// What a sample timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// A SYN, answered by SYN-ACK.
    Syn,
    /// Anything later: a SYN-ACK, data or FIN, answered by ACK or SACK.
    Segment,
}

/// One round trip, from the place of observation to the acknowledging side and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// The time it took.
    pub rtt: Duration,
    /// What was timed.
    pub timed: Timed,
}

/// What a packet told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The packet opened a connection, or is the first one seen of it.
    pub new_connection: bool,
    /// A SYN or SYN-ACK that was sent before.
    pub syn_retransmit: bool,
    /// A segment, other than a SYN, that starts below what was sent before and carries data or FIN.
    pub retransmit: bool,
    /// The round trip that the packet's acknowledgement completed.
    pub sample: Option<RttSample>,
    /// From the SYN to the ACK of the SYN-ACK: the whole path's round trip wherever on it the observer is. Not for a
    /// handshake with a retransmission or whose packets are stamped out of order.
    pub handshake: Option<Duration>,
}

/// The passive RTT estimator for many connections.
#[derive(Debug)]
pub struct PassiveRtt {
    config: RttConfig,
    table: Table,
    /// Segments under way in all connections.
    segments: usize,
}

impl PassiveRtt {
    /// An estimator that has seen nothing.
    pub fn new(config: RttConfig) -> Self {
        Self { table: Table::new(config.connections, config.salt), config, segments: 0 }
    }

    /// Takes note of a packet at `now`: of an outgoing one when it leaves, of an incoming one when it arrives.
    /// `network` tells apart what uses the same addresses (VLANs); 0 where there is one network. Other packets than
    /// TCP change nothing.
    pub fn on_packet(
        &mut self,
        now: Timestamp,
        heading: Heading,
        network: u64,
        packet: &Summary,
        sacks: &SackBlocks,
    ) -> Observation {
        let Some(segment) = packet.tcp else { return Observation::default() };
        let (key, side) = Key::new(network, &packet.flow);
        let entry = self.table.entry(key, now);
        if let Some(evicted) = entry.evicted {
            self.segments -= evicted.segments();
        }
        let connection = entry.connection;
        let before = connection.segments();
        let left = self.config.segments.saturating_sub(self.segments);
        let room = self.config.segments_per_direction.min(connection.segments_of(side) + left);
        let arrival = connection::Arrival { now, heading, side, room, bytes: packet.packet_bytes };
        let mut observation = connection.on_segment(&arrival, &segment, sacks);
        self.segments = self.segments - before + connection.segments();
        observation.new_connection |= entry.is_new;
        observation
    }

    /// The path's RTT over all connections remembered whose peers `include` accepts (both addresses are shown):
    /// neighbours on the own network are not the path.
    pub fn path(&self, now: Timestamp, include: impl Fn(IpAddr, IpAddr) -> bool) -> PathRtt {
        let included = self.table.iter().filter(|(key, _)| include(key.addresses().0, key.addresses().1));
        estimate::estimate(now, included.map(|(_, connection)| connection.rtt()))
    }

    /// Connections remembered now.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Bytes held now, allocator overhead aside.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
            + self.table.iter().map(|(_, connection)| connection.memory_bytes()).sum::<usize>()
    }
}
