//! Handshakes as the wire saw them: the reference that every other measurement is checked against.

use platform::namespace::{Namespace, NamespaceError, Step};
use platform::packet_ring::{Filter, PacketRing, Received, RingOptions};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use units::Timestamp;
use wire::{Summary, TcpFlags};

/// Slots of the ring: handshakes between two calls of [`HandshakeCapture::collect`], two or more slots each.
const SLOTS: u32 = 8192;
const ETHERNET_HEADER_BYTES: usize = 14;

/// One handshake at the client's interface, by the kernel's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's address and port.
    pub server: SocketAddr,
    /// When the first SYN left.
    pub sent: Timestamp,
    /// From the first SYN to the first SYN-ACK.
    pub rtt: Duration,
    /// SYNs after the first one, before the answer. With any, `rtt` is not one round trip.
    pub retransmits: u32,
}

/// Watches the handshakes on one interface. Other packets cost nothing: the kernel sorts them out.
#[derive(Debug)]
pub struct HandshakeCapture {
    ring: PacketRing,
    pending: Pending,
}

impl HandshakeCapture {
    /// Starts watching.
    ///
    /// # Errors
    /// When the kernel refuses a packet socket, or the interface is not there.
    pub fn start(namespace: &Namespace, interface: &str) -> Result<Self, NamespaceError> {
        let options = RingOptions {
            interface,
            slots: SLOTS,
            outgoing: true,
            vnet_header: false,
            filter: Filter::TcpSyn,
        };
        let ring = namespace.run(|| PacketRing::open(options));
        let ring = ring.map_err(|source| NamespaceError::new(Step::PacketSocket, source))?;
        Ok(Self { ring, pending: Pending::default() })
    }

    /// The handshakes answered since the last call, in the order of their answers. The ring's clock is left alone,
    /// since only differences matter: `sent` may be off by the slew of the wall clock since the start.
    pub fn collect(&mut self) -> Vec<Handshake> {
        let mut answered = Vec::new();
        while self.ring.receive(|received| answered.extend(self.pending.take(received))) {}
        answered
    }

    /// Packets that the capture has missed because its ring was full.
    pub fn missed(&mut self) -> u64 {
        self.ring.dropped()
    }
}

/// SYNs without an answer so far, by client, server and sequence number: when the first one left, and how many more.
#[derive(Debug, Default)]
struct Pending(BTreeMap<(SocketAddr, SocketAddr, u32), (Timestamp, u32)>);

impl Pending {
    fn take(&mut self, received: Received<'_>) -> Option<Handshake> {
        let summary = wire::summarize(received.frame().get(ETHERNET_HEADER_BYTES..)?).ok()?;
        self.take_segment(received.arrival, received.outgoing, &summary)
    }

    fn take_segment(&mut self, at: Timestamp, outgoing: bool, summary: &Summary) -> Option<Handshake> {
        let (segment, flow) = (summary.tcp?, summary.flow);
        let source = SocketAddr::new(flow.source, flow.source_port);
        let destination = SocketAddr::new(flow.destination, flow.destination_port);
        let answer = segment.flags.0 & TcpFlags::ACK.0 != 0;
        if outgoing && !answer {
            let again = self.0.entry((source, destination, segment.seq)).and_modify(|(_, n)| *n += 1);
            again.or_insert((at, 0));
            return None;
        }
        if outgoing || !answer {
            return None;
        }
        let (sent, retransmits) = self.0.remove(&(destination, source, segment.ack.wrapping_sub(1)))?;
        Some(Handshake { client: destination, server: source, sent, rtt: at - sent, retransmits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Ecn, FlowKey, TcpSegment, protocol};

    fn segment(from_client: bool, flags: u8, seq: u32, ack: u32) -> Summary {
        let (client, server) = (([198, 18, 0, 2].into(), 40_000), ([198, 19, 0, 2].into(), 7));
        let ((source, source_port), (destination, destination_port)) =
            if from_client { (client, server) } else { (server, client) };
        let flow = FlowKey { source, destination, source_port, destination_port, protocol: protocol::TCP };
        let tcp = TcpSegment { flags: TcpFlags(flags), seq, ack, window: 1, payload_bytes: 0 };
        Summary {
            flow,
            ecn: Ecn::NotEct,
            packet_bytes: 60,
            header_bytes: 60,
            protocol: protocol::TCP,
            tcp: Some(tcp),
            fragment: false,
        }
    }

    #[test]
    fn a_handshake_is_matched_by_ports_and_sequence_number() {
        let (ms, mut pending) = (Timestamp::from_millis, Pending::default());
        assert_eq!(pending.take_segment(ms(1), true, &segment(true, 0x02, u32::MAX, 0)), None);
        assert_eq!(pending.take_segment(ms(2), false, &segment(false, 0x12, 9, 77)), None);
        let handshake = pending.take_segment(ms(21), false, &segment(false, 0x12, 9, 0)).unwrap();
        assert_eq!((handshake.sent, handshake.rtt, handshake.retransmits), (ms(1), ms(20) - ms(0), 0));
        assert_eq!(handshake.server.to_string(), "198.19.0.2:7");
        let again = pending.take_segment(ms(22), false, &segment(false, 0x12, 9, 0));
        assert_eq!(again, None, "a repeated answer is no second handshake");
    }

    #[test]
    fn repeated_syns_are_counted() {
        let (ms, mut pending) = (Timestamp::from_millis, Pending::default());
        for at in [0, 1000, 3000] {
            assert_eq!(pending.take_segment(ms(at), true, &segment(true, 0x02, 5, 0)), None);
        }
        let handshake = pending.take_segment(ms(3020), false, &segment(false, 0x12, 1, 6)).unwrap();
        assert_eq!((handshake.rtt, handshake.retransmits), (Duration::from_millis(3020), 2));
    }
}
