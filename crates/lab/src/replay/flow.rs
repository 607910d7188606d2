//! The flow table of a capture.

use super::Samples;
use super::packet::Captured;
use engine::rtt::{Observation, Timed};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;
use std::net::{IpAddr, SocketAddr};
use units::{Bytes, Timestamp};
use wire::{FlowKey, protocol};

/// Flows kept apart; about 80 MB when all of them have all their samples.
pub(super) const MAX_FLOWS: usize = 65_536;
/// Round-trip samples kept for each direction of a flow before they are thinned.
const SAMPLES: usize = 64;

/// A flow in both directions; the first packet seen decides which way round it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowName {
    /// VLANs and PPPoE session, 0 for none.
    pub tag: u64,
    /// Source, destination, ports and protocol of the first packet.
    pub first: FlowKey,
}

impl FlowName {
    /// Source of the first packet: address and, where the protocol has ports, port.
    pub fn source(&self) -> String {
        end(self.first.source, self.first.source_port)
    }

    /// Destination of the first packet.
    pub fn destination(&self) -> String {
        end(self.first.destination, self.first.destination_port)
    }

    /// `tcp`, `udp`, ... or the protocol's number.
    pub fn protocol(&self) -> String {
        match self.first.protocol {
            protocol::ICMP => "icmp".to_owned(),
            protocol::TCP => "tcp".to_owned(),
            protocol::UDP => "udp".to_owned(),
            protocol::ICMPV6 => "icmpv6".to_owned(),
            protocol::SCTP => "sctp".to_owned(),
            number => number.to_string(),
        }
    }
}

fn end(address: IpAddr, port: u16) -> String {
    if port == 0 { address.to_string() } else { SocketAddr::new(address, port).to_string() }
}

/// What one flow did. Pairs are along and against the direction of its first packet.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Which one.
    pub name: FlowName,
    /// Packets.
    pub packets: [u64; 2],
    /// IP bytes.
    pub bytes: [Bytes; 2],
    /// Time of the first packet that has one.
    pub start: Option<Timestamp>,
    /// Latest time of a packet.
    pub end: Option<Timestamp>,
    /// TCP connections, one after the other, on these ports.
    pub connections: u64,
    /// Acknowledgements and nothing else.
    pub pure_acks: u64,
    /// Repeated SYN and SYN-ACK segments.
    pub syn_retransmits: u64,
    /// Repeated (or reordered) segments with data or FIN.
    pub retransmits: u64,
    /// Round trips between the place of capture and the destination of the first packet, then those between it and the
    /// source; without that of the SYN.
    pub rtt: [Samples; 2],
}

impl Flow {
    fn new(name: FlowName) -> Self {
        Self {
            name,
            packets: [0; 2],
            bytes: [Bytes::ZERO; 2],
            start: None,
            end: None,
            connections: 0,
            pure_acks: 0,
            syn_retransmits: 0,
            retransmits: 0,
            rtt: [Samples::new(SAMPLES), Samples::new(SAMPLES)],
        }
    }

    pub(super) fn record(&mut self, packet: &Captured<'_>, seen: &Observation) {
        let against = usize::from(packet.summary.flow != self.name.first);
        self.packets[against] += 1;
        self.bytes[against] += Bytes::from(packet.summary.packet_bytes);
        self.start = self.start.or(packet.time);
        self.end = self.end.max(packet.time);
        self.connections += u64::from(seen.new_connection);
        self.pure_acks += u64::from(packet.is_pure_ack());
        self.syn_retransmits += u64::from(seen.syn_retransmit);
        self.retransmits += u64::from(seen.retransmit);
        if let Some(sample) = seen.sample.filter(|sample| sample.timed == Timed::Segment) {
            self.rtt[1 - against].record(sample.rtt); // the acknowledging side was timed
        }
    }
}

/// The key of both directions of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowId {
    tag: u64,
    low: (IpAddr, u16),
    high: (IpAddr, u16),
    protocol: u8,
}

impl FlowId {
    pub fn new(tag: u64, flow: &FlowKey) -> Self {
        let ends = [(flow.source, flow.source_port), (flow.destination, flow.destination_port)];
        let [low, high] = if ends[0] <= ends[1] { ends } else { [ends[1], ends[0]] };
        Self { tag, low, high, protocol: flow.protocol }
    }
}

/// Rows by flow, with one look-up for each packet; never iterated by hash.
pub(super) type Index = HashMap<FlowId, usize, BuildHasherDefault<DefaultHasher>>;

/// All flows of a capture, up to [`MAX_FLOWS`].
#[derive(Debug, Default)]
pub(super) struct FlowTable {
    index: Index,
    flows: Vec<Flow>,
}

impl FlowTable {
    /// The row of a packet's flow; `None` when it would be one too many.
    pub fn entry(&mut self, packet: &Captured<'_>) -> Option<&mut Flow> {
        let flow = &packet.summary.flow;
        let id = FlowId::new(packet.tag, flow);
        let row = match self.index.get(&id) {
            Some(&row) => row,
            None if self.flows.len() == MAX_FLOWS => return None,
            None => {
                self.flows.push(Flow::new(FlowName { tag: packet.tag, first: *flow }));
                self.index.insert(id, self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        self.flows.get_mut(row)
    }

    pub fn into_flows(self) -> Vec<Flow> {
        self.flows
    }
}
