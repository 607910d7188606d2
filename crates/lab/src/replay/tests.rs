//! A capture built packet by packet.

use super::*;
use engine::ShaperConfig;
use std::net::IpAddr;
use units::Rate;
use wire::capture::{LinkError, LinkType};

const CLIENT: [u8; 4] = [198, 18, 0, 1];
const SERVER: [u8; 4] = [198, 18, 0, 2];

/// An IPv4 TCP packet from the client (port 40000) or to it, its frame padded to 46 bytes as on Ethernet.
fn tcp(up: bool, flags: u8, seq: u32, ack: u32, payload: u16) -> Vec<u8> {
    let (source, destination) = if up { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let ports: [u16; 2] = if up { [40_000, 443] } else { [443, 40_000] };
    let total = (40 + payload).to_be_bytes();
    let mut packet = vec![0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend([source, destination].concat());
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    packet.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    packet.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    packet.resize(packet.len().max(40 + usize::from(payload)).max(46), 0);
    packet
}

fn record(at_us: u64, bytes: &[u8]) -> Record<'_> {
    Record {
        time: Some(Timestamp::from_micros(at_us)),
        link: LinkType(101),
        original_bytes: bytes.len() as u32,
        bytes,
    }
}

#[test]
fn a_small_conversation() {
    let mut replay = Replay::new();
    for (at, packet) in [
        (0, tcp(true, 0x02, 99, 0, 0)),
        (20_000, tcp(false, 0x12, 499, 100, 0)),
        (20_500, tcp(true, 0x10, 100, 500, 0)),
        (21_000, tcp(true, 0x18, 100, 500, 300)),
        (43_000, tcp(false, 0x10, 500, 400, 0)),
        (50_000, tcp(true, 0x18, 100, 500, 300)),
    ] {
        replay.push(&record(at, &packet));
    }
    replay.push(&record(60_000, &[0x50]));
    replay.push(&Record { link: LinkType(127), ..record(60_000, &[]) });
    replay.push(&Record { time: None, ..record(0, &tcp(true, 0x10, 400, 500, 0)) });
    let report = replay.finish();
    assert_eq!((report.packets, report.tcp_packets, report.untimed), (9, 7, 1));
    assert_eq!((report.tcp_connections, report.pure_acks, report.syn_retransmits), (1, 3, 0));
    assert_eq!(report.retransmits, 1);
    assert_eq!(report.rtt.count(), 2);
    assert_eq!(report.rtt.max(), Some(Duration::from_millis(22)));
    assert_eq!(report.rtt.min(), Some(Duration::from_micros(500)));
    assert_eq!(report.syn_rtt.median(), Some(Duration::from_millis(20)));
    assert_eq!(report.handshake_rtt.median(), Some(Duration::from_micros(20_500)));
    assert_eq!(report.span, Duration::from_millis(50));
    let reasons = [Skipped::Link(LinkError::UnsupportedLinkType(LinkType(127))), Skipped::IpVersion(5)];
    assert_eq!(report.skipped, reasons.map(|reason| (Some(reason), 1)).into());
    assert_eq!(report.flows.len(), 1);
    let flow = &report.flows[0];
    assert_eq!((flow.packets, flow.connections, flow.retransmits), ([5, 2], 1, 1));
    assert_eq!(flow.bytes, [Bytes::new(5 * 40 + 600), Bytes::new(80)]);
    assert_eq!(
        flow.rtt.each_ref().map(Samples::max),
        [22_000, 500].map(|us| Some(Duration::from_micros(us)))
    );
    assert_eq!(flow.name.source(), "198.18.0.1:40000");
    assert_eq!((flow.name.destination(), flow.name.protocol()), ("198.18.0.2:443".into(), "tcp".into()));
    assert_eq!(report.likely_observers(), [IpAddr::from(CLIENT)]);
}

#[test]
fn a_padded_ack_is_a_pure_ack_and_an_unstated_length_is_the_frames() {
    let mut replay = Replay::new();
    replay.push(&record(0, &tcp(true, 0x10, 1, 1, 0)));
    let mut offloaded = tcp(true, 0x18, 1, 1, 5_000);
    offloaded[2..4].fill(0);
    replay.push(&record(1, &offloaded));
    // Cut to 54 bytes by the capture.
    replay.push(&Record { bytes: &offloaded[..54], ..record(2, &offloaded) });
    let report = replay.finish();
    assert_eq!(report.pure_acks, 1);
    assert_eq!(report.bytes, Bytes::new(40 + 5_040 + 5_040));
}

#[test]
fn padding_that_an_ip_packet_claims_is_no_data_where_pppoe_knows_better() {
    let mut claims_46 = tcp(true, 0x10, 1, 1, 6);
    let mut frame = [&[0; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21]].concat();
    frame.append(&mut claims_46);
    let mut replay = Replay::new();
    replay.push(&Record { link: LinkType(1), ..record(0, &frame) });
    let report = replay.finish();
    assert_eq!((report.pure_acks, report.bytes), (1, Bytes::new(40)));
}

#[test]
fn memory_stays_bounded_whatever_the_file_holds() {
    let mut replay = Replay::new();
    let mut packet = tcp(true, 0x10, 1, 1, 0);
    for index in 0..200_000_u32 {
        packet[16..20].copy_from_slice(&index.to_be_bytes());
        replay.push(&record(u64::from(index), &packet));
    }
    for family in 100..1_000_u32 {
        replay.push(&Record { link: LinkType(0), ..record(0, &family.to_le_bytes()) });
    }
    let report = replay.finish();
    assert_eq!(report.flows.len(), flow::MAX_FLOWS);
    assert_eq!(report.packets_beyond_flow_table, 200_000 - flow::MAX_FLOWS as u64);
    assert_eq!(report.skipped.len(), SKIP_REASONS + 1);
    assert_eq!(report.skipped.values().sum::<u64>(), 900);
    assert_eq!(report.tcp_connections, 200_000);
}

#[test]
fn the_engine_queues_what_one_side_sent() {
    let mut shaping = Shaping::new(ShaperConfig::new(Rate::mbit_per_s(12)), vec![IpAddr::from(CLIENT)]);
    let (data, ack) = (tcp(true, 0x18, 1, 1, 1_460), tcp(false, 0x10, 1, 1, 0));
    for index in 0..3_000 {
        // 24 Mbit/s into 12 Mbit/s, and the other direction, which is not queued.
        shaping.push(&record(index * 500, &data));
        shaping.push(&record(index * 500, &ack));
    }
    let report = shaping.finish();
    let flow = &report.flows[0];
    assert_eq!(report.flows.len(), 1);
    assert_eq!(flow.sent + flow.dropped_aqm + flow.dropped_overflow, 3_000);
    assert_eq!(report.stats.enqueued.packets, 3_000);
    assert_eq!(report.stats.held(), 0);
    assert_eq!(report.delay.count(), flow.sent);
    assert!(flow.dropped_aqm > 0, "{flow:?}");
    // 1500 bytes at 12 Mbit/s are 1 ms each: half of the packets too many, for 1.5 s.
    assert!(report.delay.max() > Some(Duration::from_millis(100)), "{:?}", report.delay.max());
    assert!(report.delay.max() < Some(Duration::from_millis(1_500)));
}

#[test]
fn below_the_rate_nothing_waits() {
    let mut shaping = Shaping::new(ShaperConfig::new(Rate::mbit_per_s(50)), vec![IpAddr::from(CLIENT)]);
    let data = tcp(true, 0x18, 1, 1, 1_460);
    for index in 0..300 {
        shaping.push(&record(index * 500, &data));
    }
    let report = shaping.finish();
    assert_eq!(report.flows[0].sent, 300);
    assert_eq!(report.delay.max(), Some(Duration::ZERO));
}
