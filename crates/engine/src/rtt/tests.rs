//! Whole exchanges, seen from a host or from between.

use super::*;
use proptest::prelude::*;
use wire::{Ecn, FlowKey, TcpFlags, TcpSegment, protocol};

const SYN: u8 = TcpFlags::SYN.0;
const ACK: u8 = TcpFlags::ACK.0;
const FIN: u8 = TcpFlags::FIN.0;
const RST: u8 = TcpFlags::RST.0;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client (port 40000 up) and a server with one estimator between them.
struct Observer {
    rtt: PassiveRtt,
    client_port: u16,
}

impl Observer {
    fn new() -> Self {
        Self { rtt: PassiveRtt::new(RttConfig::new(Salt([1, 2]))), client_port: 40_000 }
    }

    fn see(
        &mut self,
        at: u64,
        heading: Heading,
        up: bool,
        segment: TcpSegment,
        sacks: &[(u32, u32)],
    ) -> Observation {
        let (client, server) = (IpAddr::from([198, 18, 0, 1]), IpAddr::from([198, 18, 0, 2]));
        let flow = FlowKey {
            source: if up { client } else { server },
            destination: if up { server } else { client },
            source_port: if up { self.client_port } else { 443 },
            destination_port: if up { 443 } else { self.client_port },
            protocol: protocol::TCP,
        };
        let packet = Summary {
            flow,
            ecn: Ecn::NotEct,
            packet_bytes: 40 + segment.payload_bytes,
            header_bytes: 40,
            protocol: protocol::TCP,
            tcp: Some(segment),
            fragment: false,
        };
        self.rtt.on_packet(ms(at), heading, 0, &packet, &SackBlocks::new(sacks))
    }

    fn up(&mut self, at: u64, flags: u8, seq: u32, ack: u32, bytes: u32) -> Observation {
        self.see(at, Heading::Past, true, segment(flags, seq, ack, bytes), &[])
    }

    fn down(&mut self, at: u64, flags: u8, seq: u32, ack: u32, bytes: u32) -> Observation {
        self.see(at, Heading::Past, false, segment(flags, seq, ack, bytes), &[])
    }

    /// A pure ACK from the server with SACK blocks.
    fn sack(&mut self, at: u64, ack: u32, sacks: &[(u32, u32)]) -> Option<Duration> {
        rtt(&self.see(at, Heading::Past, false, segment(ACK, 1, ack, 0), sacks))
    }
}

fn segment(flags: u8, seq: u32, ack: u32, payload_bytes: u32) -> TcpSegment {
    TcpSegment { flags: TcpFlags(flags), seq, ack, window: 1000, payload_bytes }
}

fn rtt(observation: &Observation) -> Option<Duration> {
    observation.sample.map(|sample| sample.rtt)
}

#[test]
fn a_handshake_is_timed_in_parts_and_as_a_whole() {
    let mut line = Observer::new();
    let syn = line.up(0, SYN, 99, 0, 0);
    assert!(syn.new_connection && !syn.syn_retransmit);
    let syn_ack = line.down(30, SYN | ACK, 499, 100, 0);
    assert_eq!(syn_ack.sample, Some(RttSample { rtt: span(30), timed: Timed::Syn }));
    assert!(!syn_ack.new_connection);
    let ack = line.up(32, ACK, 100, 500, 0);
    assert_eq!(ack.sample, Some(RttSample { rtt: span(2), timed: Timed::Segment }));
    assert_eq!(ack.handshake, Some(span(32)));
    assert_eq!(line.up(33, ACK, 100, 500, 10).handshake, None, "only once");
}

#[test]
fn a_retransmitted_syn_or_syn_ack_is_counted_and_never_timed() {
    let mut line = Observer::new();
    line.up(0, SYN, 99, 0, 0);
    assert!(line.up(1_000, SYN, 99, 0, 0).syn_retransmit);
    assert_eq!(rtt(&line.down(1_030, SYN | ACK, 499, 100, 0)), None);
    assert!(line.down(1_040, SYN | ACK, 499, 100, 0).syn_retransmit);
    let ack = line.up(1_042, ACK, 100, 500, 0);
    assert_eq!((rtt(&ack), ack.handshake), (None, None));
    assert_eq!(line.rtt.connections(), 1);
}

#[test]
fn a_syn_with_another_number_is_another_connection() {
    let mut line = Observer::new();
    line.up(0, SYN, 99, 0, 0);
    line.up(10, ACK, 100, 500, 1_000);
    // The old segment is forgotten: the acknowledgement of the new stream does not match it.
    assert!(line.up(20, SYN, 4_000_000_000, 0, 0).new_connection);
    assert_eq!(rtt(&line.down(20, ACK, 500, 1_100, 0)), None);
    assert!(!line.up(21, SYN, 4_000_000_000, 0, 0).new_connection);
}

#[test]
fn a_syn_overtaken_by_its_answer_keeps_the_connection_and_gives_no_time() {
    let mut line = Observer::new();
    assert!(line.down(0, SYN | ACK, 499, 100, 0).new_connection);
    let syn = line.up(1, SYN, 99, 0, 0);
    assert!(!syn.new_connection && !syn.syn_retransmit);
    assert_eq!(line.up(2, ACK, 100, 500, 0).handshake, None);
    // Swapped in the file but stamped right: timed.
    let mut line = Observer::new();
    line.down(3, SYN | ACK, 499, 100, 0);
    line.up(2, SYN, 99, 0, 0);
    assert_eq!(line.up(15, ACK, 100, 500, 0).handshake, Some(span(13)));
}

#[test]
fn a_handshake_is_timed_from_one_direction_alone() {
    let mut line = Observer::new();
    line.up(0, SYN, 99, 0, 0);
    assert_eq!(line.up(15, ACK, 100, 500, 0).handshake, Some(span(15)));
    // Not by a segment of the connection before on the same ports.
    line.up(20, SYN, 5_000, 0, 0);
    assert_eq!(line.up(21, ACK, 100, 500, 0).handshake, None);
}

#[test]
fn data_on_a_syn_is_acknowledged_with_it() {
    let mut line = Observer::new();
    line.up(0, SYN, 99, 0, 86);
    let syn_ack = line.down(5, SYN | ACK, 499, 100 + 86, 0);
    assert_eq!(rtt(&syn_ack), Some(span(5)));
    assert_eq!(line.up(6, ACK, 186, 500, 0).handshake, Some(span(6)));
}

#[test]
fn an_ack_times_the_newest_segment_that_it_covers() {
    let mut line = Observer::new();
    line.up(0, ACK, 1_000, 1, 100);
    line.up(8, ACK, 1_100, 1, 100);
    line.up(9, ACK, 1_200, 1, 100);
    // A delayed ACK for two.
    assert_eq!(rtt(&line.down(20, ACK, 1, 1_200, 0)), Some(span(12)));
    assert_eq!(rtt(&line.down(21, ACK, 1, 1_200, 0)), None, "a duplicate");
    assert_eq!(rtt(&line.down(29, ACK, 1, 1_300, 0)), Some(span(20)));
    // FIN takes a number too.
    line.up(40, FIN | ACK, 1_300, 1, 0);
    assert_eq!(rtt(&line.down(47, ACK, 1, 1_301, 0)), Some(span(7)));
}

#[test]
fn a_super_packet_is_timed_by_the_first_ack_into_it() {
    let mut line = Observer::new();
    line.up(0, ACK, 1_000, 1, 30_000);
    line.up(1, ACK, 31_000, 1, 30_000);
    // Its rest takes 12 ms on the line, which is not the path's delay.
    assert_eq!(rtt(&line.down(20, ACK, 1, 4_000, 0)), Some(span(20)));
    assert_eq!(rtt(&line.down(26, ACK, 1, 20_000, 0)), None);
    assert_eq!(rtt(&line.down(32, ACK, 1, 31_000, 0)), None);
    assert_eq!(rtt(&line.down(33, ACK, 1, 34_000, 0)), Some(span(32)));
}

#[test]
fn karns_rule_a_retransmitted_segment_is_never_timed() {
    let mut line = Observer::new();
    line.up(0, ACK, 1_000, 1, 100);
    assert!(line.up(300_000, ACK, 1_000, 1, 100).retransmit);
    assert_eq!(rtt(&line.down(300_010, ACK, 1, 1_100, 0)), None);
    // What was sent afterwards is timed again.
    line.up(300_020, ACK, 1_100, 1, 100);
    assert_eq!(rtt(&line.down(300_030, ACK, 1, 1_200, 0)), Some(span(10)));
}

#[test]
fn segments_behind_a_hole_are_not_timed_by_the_ack_that_fills_it() {
    let mut line = Observer::new();
    for index in 0..5 {
        line.up(u64::from(index), ACK, 1_000 + 100 * index, 1, 100);
    }
    assert_eq!(rtt(&line.down(20, ACK, 1, 1_100, 0)), Some(span(20)));
    line.up(250, ACK, 1_100, 1, 100);
    assert_eq!(rtt(&line.down(270, ACK, 1, 1_500, 0)), None, "it waited for the hole");
}

#[test]
fn a_sack_times_the_segment_that_triggered_it_and_the_later_ack_does_not() {
    let mut line = Observer::new();
    for index in 0..4 {
        line.up(u64::from(index), ACK, 1_000 + 100 * index, 1, 100);
    }
    assert_eq!(line.sack(21, 1_000, &[(1_100, 1_200)]), Some(span(20)));
    assert_eq!(line.sack(22, 1_000, &[(1_100, 1_300)]), Some(span(20)));
    assert_eq!(line.sack(23, 1_000, &[(1_100, 1_300)]), None, "nothing new");
    // A block that is not the first one was reported before; it is only taken note of.
    assert_eq!(line.sack(24, 1_000, &[(1_100, 1_200), (1_300, 1_400)]), None);
    line.up(30, ACK, 1_000, 1, 100);
    assert_eq!(line.sack(50, 1_400, &[]), None);
    // A duplicate's report (below the ACK) and nonsense change nothing.
    line.up(60, ACK, 1_400, 1, 100);
    assert_eq!(line.sack(61, 1_400, &[(1_000, 1_100)]), None);
    assert_eq!(line.sack(62, 1_400, &[(1_500, 1_400), (9, 1), (1_400, 90_000)]), None);
    assert_eq!(line.sack(70, 1_500, &[]), Some(span(10)));
}

#[test]
fn sequence_numbers_wrap() {
    let mut line = Observer::new();
    let start = 0_u32.wrapping_sub(150);
    line.up(0, ACK, start, 1, 100);
    line.up(1, ACK, start.wrapping_add(100), 1, 100);
    assert_eq!(rtt(&line.down(10, ACK, 1, start.wrapping_add(100), 0)), Some(span(10)));
    assert_eq!(rtt(&line.down(12, ACK, 1, start.wrapping_add(200), 0)), Some(span(11)));
    assert!(line.up(13, ACK, start, 1, 100).retransmit);
}

#[test]
fn a_keep_alive_is_no_data() {
    let mut line = Observer::new();
    line.up(0, ACK, 1_000, 1, 100);
    line.down(10, ACK, 1, 1_100, 0);
    for (seq, bytes) in [(1_099, 0), (1_099, 1)] {
        assert!(!line.up(1_000, ACK, seq, 1, bytes).retransmit);
        assert_eq!(rtt(&line.down(1_010, ACK, 1, 1_100, 0)), None);
    }
}

#[test]
fn an_ack_of_unseen_bytes_and_one_before_its_segment_give_nothing() {
    let mut line = Observer::new();
    line.up(100, ACK, 1_000, 1, 100);
    assert_eq!(rtt(&line.down(110, ACK, 1, 5_000, 0)), None);
    line.up(120, ACK, 5_000, 1, 100);
    assert_eq!(rtt(&line.down(119, ACK, 1, 5_100, 0)), None, "time stepped back");
    // A reset is sent without waiting for anything.
    line.up(130, ACK, 5_100, 1, 100);
    assert_eq!(rtt(&line.down(131, RST | ACK, 1, 5_200, 0)), None);
}

#[test]
fn a_host_times_only_its_own_segments() {
    let mut host = Observer::new();
    host.see(0, Heading::Out, true, segment(ACK, 1_000, 1, 100), &[]);
    // Bulk arriving and our ACK for it a microsecond later: not the path.
    host.see(5, Heading::In, false, segment(ACK, 1, 1_000, 1_000), &[]);
    assert_eq!(rtt(&host.see(5, Heading::Out, true, segment(ACK, 1_100, 1_001, 0), &[])), None);
    assert_eq!(rtt(&host.see(20, Heading::In, false, segment(ACK, 1_001, 1_100, 0), &[])), Some(span(20)));
}

#[test]
fn base_is_the_median_of_the_minima_and_inflation_that_of_the_sparse() {
    let mut host = Observer::new();
    // A neighbour at 0 ms, two sparse connections at 20 ms that now see 35, one bulk at 20 that sees 300.
    for (connection, (base, latest, bytes)) in
        [(0, 0, 10), (20, 35, 10), (20, 35, 10), (20, 300, 40_000)].into_iter().enumerate()
    {
        host.client_port = 40_000 + connection as u16;
        for (start, took, seq) in [(10_000, base, 1_000), (10_100, latest, 1_000 + bytes)] {
            host.up(start, ACK, seq, 1, bytes);
            host.down(start + took, ACK, 1, seq + bytes, 0);
        }
    }
    let path = host.rtt.path(ms(10_500), |_, _| true);
    assert_eq!((path.base, path.connections, path.samples), (Some(span(20)), 4, 8));
    assert_eq!(path.inflation, Some(Inflation { median: span(15), connections: 3 }));
    assert_eq!(host.rtt.path(ms(20_000), |_, _| true).inflation, None, "nothing fresh");
    assert_eq!(host.rtt.path(ms(10_500), |_, _| false), PathRtt::default());
}

#[test]
fn a_million_one_packet_flows_cost_no_more_than_the_table() {
    let config =
        RttConfig { connections: 1_024, segments_per_direction: 8, segments: 500, salt: Salt([3, 4]) };
    let mut line = Observer { rtt: PassiveRtt::new(config), client_port: 0 };
    let mut after_a_while = 0;
    for index in 0..1_000_000_u32 {
        let flow = FlowKey {
            source: IpAddr::from(std::net::Ipv4Addr::from_bits(0xc612_0000 + (index >> 14))),
            destination: IpAddr::from([198, 19, 0, 1]),
            source_port: (index & 0x3fff) as u16,
            destination_port: 80,
            protocol: protocol::TCP,
        };
        let packet = Summary {
            flow,
            ecn: Ecn::NotEct,
            packet_bytes: 140,
            header_bytes: 40,
            protocol: protocol::TCP,
            tcp: Some(segment(ACK, index, 1, 100)),
            fragment: false,
        };
        line.rtt.on_packet(ms(u64::from(index)), Heading::Past, 0, &packet, &SackBlocks::NONE);
        if index == 100_000 {
            after_a_while = line.rtt.memory_bytes();
        }
    }
    assert_eq!(line.rtt.connections(), 1_024);
    assert!(line.rtt.segments <= 500);
    assert!(line.rtt.memory_bytes() <= after_a_while + 8 * 1_024, "grew from {after_a_while}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A path of fixed delay that loses segments and ACKs at random: no sample is shorter than the path, and none
    /// contains the wait for a retransmission (at least `3 * delay + 10` more). A lost ACK hands its segment to the
    /// next one, which is not that far.
    #[test]
    fn over_a_lossy_path_every_sample_is_the_paths_rtt(
        losses in prop::collection::vec(any::<bool>(), 400), start: u32, delay in 1..20_u64, sack: bool,
    ) {
        let mut line = Observer::new();
        let lost = |at: u64, salt: u64| losses[((at * 7 + salt * 13) % 400) as usize] && at.is_multiple_of(3);
        let (mut sent, mut received, mut last_try) = (0_u32, std::collections::BTreeSet::new(), [0_u64; 40]);
        let mut under_way: std::collections::BTreeMap<u64, Vec<u32>> = Default::default();
        let mut acks: std::collections::BTreeMap<u64, (u32, Vec<(u32, u32)>)> = Default::default();
        let seq = |index: u32| start.wrapping_add(index * 10);
        for now in 1..1_500_u64 {
            let next = (0..40).find(|index| !received.contains(index)).unwrap_or(40);
            let due = (0..sent).find(|&i| !received.contains(&i) && now > last_try[i as usize] + 3 * delay + 10);
            let index = due.or((sent < 40 && sent < next + 8).then_some(sent));
            if let Some(index) = index {
                sent = sent.max(index + 1);
                last_try[index as usize] = now;
                line.up(now, ACK, seq(index), 1, 10);
                if !lost(now, 1) {
                    under_way.entry(now + delay).or_default().push(index);
                }
            }
            for index in under_way.remove(&now).unwrap_or_default() {
                received.insert(index);
                let next = (0..40).find(|index| !received.contains(index)).unwrap_or(40);
                let blocks = if sack && index > next {
                    let left = (0..=index).rev().find(|i| !received.contains(i)).map_or(0, |i| i + 1);
                    let right = (index..40).find(|i| !received.contains(i)).unwrap_or(40);
                    vec![(seq(left), seq(right))]
                } else {
                    vec![]
                };
                if !lost(now, 2) {
                    acks.insert(now + delay, (seq(next), blocks));
                }
            }
            let Some((ack, blocks)) = acks.remove(&now) else { continue };
            if let Some(rtt) = line.sack(now, ack, &blocks) {
                prop_assert!(rtt >= span(2 * delay), "{rtt:?} of {delay}");
                prop_assert!(rtt < span(2 * delay + 3 * delay + 10), "{rtt:?} of {delay}");
            }
        }
    }

}

proptest! {
    #[test]
    fn random_segments_never_panic_nor_exceed_the_bounds(
        segments in prop::collection::vec((any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>(), 0..3_000_u32,
            0..4_u16, prop::collection::vec(any::<(u32, u32)>(), 0..5)), 0..200),
    ) {
        let config = RttConfig { connections: 8, segments_per_direction: 4, segments: 6, salt: Salt([5, 6]) };
        let mut line = Observer { rtt: PassiveRtt::new(config), client_port: 0 };
        for (at, (up, flags, seq, ack, bytes, port, sacks)) in segments.into_iter().enumerate() {
            line.client_port = port;
            line.see(at as u64, Heading::Past, up, segment(flags, seq, ack, bytes), &sacks);
            prop_assert!(line.rtt.segments <= 6 && line.rtt.connections() <= 8);
        }
    }
}
