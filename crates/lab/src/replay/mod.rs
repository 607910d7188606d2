//! Analysis of a capture: what the packets tell, and what the engine would have done with them.
//!
//! ```text
//! wire::capture::Record --link header--> IP packet --wire::summarize--> Summary
//!        |- Replay: counts, flow table, engine::rtt (round trips, handshakes)   -> Report
//!        '- Shaping: the uplink's packets -> engine::Shaper in virtual time     -> ShapingReport
//! ```
//! Memory is bounded: flows beyond the table's limit are counted together, samples beyond theirs are thinned evenly.

mod flow;
mod packet;
mod samples;
mod shaping;
#[cfg(test)]
mod tests;

use engine::rtt::{Heading, Observation, PassiveRtt, RttConfig, Timed};
use flow::FlowTable;
use packet::Captured;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use units::{Bytes, Timestamp};
use wire::Salt;
use wire::capture::Record;

pub use flow::{Flow, FlowName};
pub use packet::Skipped;
pub use samples::Samples;
pub use shaping::{ShapedFlow, Shaping, ShapingReport};

/// Round-trip samples that are kept before they are thinned.
const SAMPLES: usize = 1 << 20;
/// Different reasons to skip a packet that are counted apart; a file of noise must not fill the memory with them.
const SKIP_REASONS: usize = 256;
/// The bounds of the RTT estimator: about 50 MB when all is in use.
const RTT: RttConfig = RttConfig {
    connections: 32_768,
    segments_per_direction: 2_048,
    segments: 1 << 20,
    salt: Salt([0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b]), // a fixed one: the same file gives the same report
};

/// What a capture told.
#[derive(Clone, Debug)]
pub struct Report {
    /// Records read, skipped ones included.
    pub packets: u64,
    /// Records that hold no IP packet that can be read, by reason; those beyond 256 reasons under `None`.
    pub skipped: BTreeMap<Option<Skipped>, u64>,
    /// IP packets without a time, which give no round trips.
    pub untimed: u64,
    /// TCP packets, fragments aside.
    pub tcp_packets: u64,
    /// IP bytes of all packets.
    pub bytes: Bytes,
    /// From the first to the last packet in the file, as far as time went forward.
    pub span: Duration,
    /// TCP connections seen to open, or found open.
    pub tcp_connections: u64,
    /// TCP segments that carry an acknowledgement and nothing else: no payload, no SYN, FIN or RST.
    pub pure_acks: u64,
    /// Repeated SYN and SYN-ACK segments.
    pub syn_retransmits: u64,
    /// Repeated (or reordered) segments with data or FIN.
    pub retransmits: u64,
    /// From a segment with data, FIN or SYN-ACK to the acknowledgement that it caused, in both directions.
    pub rtt: Samples,
    /// From SYN to the ACK of the SYN-ACK.
    pub handshake_rtt: Samples,
    /// From SYN to SYN-ACK.
    pub syn_rtt: Samples,
    /// By first appearance.
    pub flows: Vec<Flow>,
    /// Packets of flows for which the table had no room.
    pub packets_beyond_flow_table: u64,
}

impl Report {
    /// At most `limit` flows, those with most bytes first.
    pub fn largest_flows(&self, limit: usize) -> Vec<&Flow> {
        let mut flows: Vec<&Flow> = self.flows.iter().collect();
        flows.sort_by_key(|flow| Reverse(flow.bytes[0] + flow.bytes[1]));
        flows.truncate(limit);
        flows
    }

    /// The address of each IP version that takes part in most packets: on a capture made at a host, the host's. Of
    /// two that take part in the same packets, the one that was the first to send.
    pub fn likely_observers(&self) -> Vec<IpAddr> {
        let mut packets: BTreeMap<IpAddr, (u64, Reverse<usize>)> = BTreeMap::new();
        for (row, flow) in self.flows.iter().enumerate() {
            for (order, address) in
                [flow.name.first.source, flow.name.first.destination].into_iter().enumerate()
            {
                packets.entry(address).or_insert((0, Reverse(2 * row + order))).0 +=
                    flow.packets.iter().sum::<u64>();
            }
        }
        let busiest = |is_v4: bool| {
            let of_version = packets.iter().filter(|(address, _)| address.is_ipv4() == is_v4);
            of_version.max_by_key(|(_, rank)| **rank).map(|(address, _)| *address)
        };
        busiest(true).into_iter().chain(busiest(false)).collect()
    }
}

/// Reads along a capture.
#[derive(Debug)]
pub struct Replay {
    rtt: PassiveRtt,
    flows: FlowTable,
    first: Option<Timestamp>,
    report: Report,
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

impl Replay {
    /// Before the first packet.
    pub fn new() -> Self {
        Self {
            rtt: PassiveRtt::new(RTT),
            flows: FlowTable::default(),
            first: None,
            report: Report {
                packets: 0,
                skipped: BTreeMap::new(),
                untimed: 0,
                tcp_packets: 0,
                bytes: Bytes::ZERO,
                span: Duration::ZERO,
                tcp_connections: 0,
                pure_acks: 0,
                syn_retransmits: 0,
                retransmits: 0,
                rtt: Samples::new(SAMPLES),
                handshake_rtt: Samples::new(SAMPLES),
                syn_rtt: Samples::new(SAMPLES),
                flows: Vec::new(),
                packets_beyond_flow_table: 0,
            },
        }
    }

    /// Takes the next record of the file.
    pub fn push(&mut self, record: &Record<'_>) {
        self.report.packets += 1;
        let packet = match Captured::read(record) {
            Ok(packet) => packet,
            Err(reason) => return self.skip(reason),
        };
        self.report.bytes += Bytes::from(packet.summary.packet_bytes);
        self.report.tcp_packets += u64::from(packet.summary.tcp.is_some());
        self.report.pure_acks += u64::from(packet.is_pure_ack());
        let seen = match packet.time {
            Some(now) => self.observe(now, &packet),
            None => {
                self.report.untimed += 1;
                Observation::default()
            }
        };
        match self.flows.entry(&packet) {
            Some(flow) => flow.record(&packet, &seen),
            None => self.report.packets_beyond_flow_table += 1,
        }
    }

    fn observe(&mut self, now: Timestamp, packet: &Captured<'_>) -> Observation {
        let first = *self.first.get_or_insert(now);
        self.report.span = self.report.span.max(now - first);
        let sacks = packet.sack_blocks();
        let seen = self.rtt.on_packet(now, Heading::Past, packet.tag, &packet.summary, &sacks);
        self.report.tcp_connections += u64::from(seen.new_connection);
        self.report.syn_retransmits += u64::from(seen.syn_retransmit);
        self.report.retransmits += u64::from(seen.retransmit);
        match seen.sample {
            Some(sample) if sample.timed == Timed::Syn => self.report.syn_rtt.record(sample.rtt),
            Some(sample) => self.report.rtt.record(sample.rtt),
            None => {}
        }
        if let Some(handshake) = seen.handshake {
            self.report.handshake_rtt.record(handshake);
        }
        seen
    }

    fn skip(&mut self, reason: Skipped) {
        let skipped = &mut self.report.skipped;
        let has_room = skipped.len() < SKIP_REASONS || skipped.contains_key(&Some(reason));
        *skipped.entry(has_room.then_some(reason)).or_default() += 1;
    }

    /// After the last packet.
    pub fn finish(self) -> Report {
        Report { flows: self.flows.into_flows(), ..self.report }
    }
}
