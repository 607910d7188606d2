use super::connection::Connection;
use super::world::{SHIFT, World};
use super::*;
use proptest::prelude::*;
use std::fmt::Write;
use std::net::IpAddr;
use wire::TcpSegment;

const HOST: [u8; 4] = [198, 18, 0, 1];
const SERVER: [u8; 4] = [198, 18, 0, 2];
const RTT: Duration = Duration::from_millis(20);
const RATE: Rate = Rate::mbit_per_s(100);

/// What 95 % of 100 Mbit/s carries in 20 ms, and a segment.
const ALL: u64 = 237_500 + 1_448;

pub fn config(budget: Budget) -> ClampConfig {
    ClampConfig { budget, base_rtt: None, connections: 256, salt: Salt([1, 2]) }
}

fn ms(n: u64) -> Timestamp {
    Timestamp::from_millis(n)
}

pub fn summary(outbound: bool, port: u16, segment: TcpSegment) -> Summary {
    let (source, destination) = if outbound { (HOST, SERVER) } else { (SERVER, HOST) };
    let (source_port, destination_port) = if outbound { (port, 443) } else { (443, port) };
    let [source, destination] = [source, destination].map(IpAddr::from);
    Summary {
        flow: FlowKey { source, destination, source_port, destination_port, protocol: protocol::TCP },
        ecn: wire::Ecn::NotEct,
        packet_bytes: 52 + segment.payload_bytes,
        header_bytes: 52,
        protocol: protocol::TCP,
        tcp: Some(segment),
        fragment: false,
    }
}

pub fn segment(flags: TcpFlags, seq: u32, ack: u32, window: u16, payload_bytes: u32) -> TcpSegment {
    TcpSegment { flags, seq, ack, window, payload_bytes }
}

pub const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

pub fn options(window_shift: Option<u8>) -> TcpOptions {
    TcpOptions { max_segment_bytes: Some(1_448), window_shift, signed: false }
}

/// A clamp, asked packet by packet.
struct Bench {
    clamp: Clamp,
    now: Timestamp,
}

impl Bench {
    fn new(budget: Budget) -> Self {
        Self { clamp: Clamp::new(config(budget)), now: ms(10_000) }
    }

    fn outbound(&mut self, port: u16, tcp: TcpSegment, options: &TcpOptions) -> Option<u16> {
        self.clamp.on_outbound(self.now, &summary(true, port, tcp), options, true)
    }

    fn inbound(&mut self, port: u16, tcp: TcpSegment, options: &TcpOptions) {
        self.clamp.on_inbound(self.now, &summary(false, port, tcp), options);
    }

    /// A handshake that takes one round trip, with the server's sequence numbers from 1000 on.
    fn open(&mut self, port: u16, ours: &TcpOptions, theirs: &TcpOptions) {
        self.outbound(port, segment(TcpFlags::SYN, 7, 0, 64_240, 0), ours);
        self.now += RTT;
        self.inbound(port, segment(SYN_ACK, 1_000, 8, 65_535, 0), theirs);
    }

    /// Acknowledges up to `ack` with the host's window of `window` bytes; gives the bytes announced.
    fn ack(&mut self, port: u16, ack: u32, window: u64) -> u64 {
        let field = u16::try_from(window >> SHIFT).unwrap();
        let tcp = segment(TcpFlags::ACK, 8, ack, field, 0);
        let written = self.outbound(port, tcp, &TcpOptions::default()).unwrap_or(field);
        u64::from(written) << SHIFT
    }
}

fn scaled() -> TcpOptions {
    options(Some(SHIFT))
}

/// The smallest multiple of the scale that holds `bytes`.
fn rounded(bytes: u64) -> u64 {
    bytes.div_ceil(1 << SHIFT) << SHIFT
}

/// So many downloads over 20 ms of a line of 100 Mbit/s, after three seconds.
fn downloads(count: usize, budget: Budget) -> World {
    let mut world = World::new(config(budget), RATE, 1_000_000);
    (0..count).for_each(|_| world.start(RTT, Timestamp::MAX));
    world.run_for(Duration::from_secs(3));
    world
}

fn windows(world: &World) -> Vec<u64> {
    world.downloads.iter().map(|download| download.window).collect()
}

/// Queueing delay and goodput of 5 s in the steady state: without a clamp the queue is what the hosts' windows hold.
#[test]
fn the_clamp_keeps_the_queue_short_and_the_line_busy() {
    let mut table = String::from("flows  clamp    p50 ms   p99 ms  of the rate\n");
    for count in [1, 8, 50] {
        let unlimited = Budget::Rate(Rate::mbit_per_s(1_000_000));
        for (name, budget) in [("none", unlimited), ("100 Mbit/s", Budget::Rate(RATE))] {
            let mut world = downloads(count, budget);
            world.delays.clear();
            let received = |world: &World| world.downloads.iter().map(|flow| flow.received).sum::<u64>();
            let before = received(&world);
            world.run_for(Duration::from_secs(5));
            let goodput = Rate::of(Bytes::new(received(&world) - before), Duration::from_secs(5));
            let [p50, p99] = [0.5, 0.99].map(|q| units::as_ms(world.delay(q)));
            let share = goodput.as_mbit_f64() / 100.0;
            writeln!(table, "{count:>5}  {name:<10}{p50:>7.2}{p99:>9.2}{share:>13.3}").unwrap();
        }
    }
    assert_eq!(table, include_str!("golden.txt"), "\n{table}");
}

#[test]
fn one_download_may_have_the_rates_bytes_of_a_round_trip_under_way() {
    let world = downloads(1, Budget::Rate(RATE));
    assert_eq!(windows(&world), [rounded(ALL)]);
    let status = world.clamp.status();
    assert_eq!((status.active, status.untouchable, status.at_floor), (1, 0, 0));
    assert!((status.ceiling.as_mbit_f64() - 95.6).abs() < 0.1, "{}", status.ceiling);
}

#[test]
fn the_budget_is_divided_and_rises_as_downloads_end() {
    let mut world = World::new(config(Budget::Rate(RATE)), RATE, 1_000_000);
    world.start(RTT, Timestamp::MAX);
    let end = world.now + Duration::from_secs(3);
    (0..3).for_each(|_| world.start(RTT, end));
    world.run_for(Duration::from_millis(2_900));
    assert_eq!(windows(&world), [rounded(237_500 / 4 + 1_448); 4]);
    world.run_for(Duration::from_secs(2));
    assert_eq!(windows(&world)[0], rounded(ALL));
}

#[test]
fn where_the_floor_is_more_than_the_budget_the_status_says_so() {
    let rate = Rate::mbit_per_s(20);
    let mut world = World::new(config(Budget::Rate(rate)), rate, 100_000);
    (0..50).for_each(|_| world.start(RTT, Timestamp::MAX));
    world.run_for(Duration::from_secs(10));
    let status = world.clamp.status();
    assert_eq!((status.active, status.at_floor), (50, 50));
    assert_eq!(windows(&world), [rounded(4 * 1_448); 50]);
}

#[test]
fn the_round_trip_is_the_connections_own() {
    let mut world = World::new(config(Budget::Rate(RATE)), RATE, 1_000_000);
    world.start(RTT, Timestamp::MAX);
    world.start(RTT * 4, Timestamp::MAX);
    world.run_for(Duration::from_secs(3));
    assert_eq!(windows(&world), [rounded(118_750 + 1_448), rounded(475_000 + 1_448)]);
}

/// Three windows of 48 KB each round trip, the last bit of the line unused: what the status calls the ceiling.
#[test]
fn under_a_fixed_window_the_rate_is_window_over_round_trip() {
    let mut world = downloads(3, Budget::Window(Bytes::new(48_000)));
    let ceiling = world.clamp.status().ceiling.as_mbit_f64();
    assert!((ceiling - 57.6).abs() < 0.5, "{ceiling}");
    let before: Vec<u64> = world.downloads.iter().map(|flow| flow.received).collect();
    world.run_for(Duration::from_secs(5));
    for (flow, before) in world.downloads.iter().zip(before) {
        let rate = Rate::of(Bytes::new(flow.received - before), Duration::from_secs(5)).as_mbit_f64();
        assert!((0.95..=1.0).contains(&(rate / 19.2)), "{rate}");
    }
}

#[test]
fn a_repeated_syn_times_nothing_and_data_beyond_the_edge_does() {
    let mut bench = Bench::new(Budget::Rate(RATE));
    for _ in 0..2 {
        bench.outbound(1, segment(TcpFlags::SYN, 7, 0, 64_240, 0), &scaled());
        bench.now += Duration::from_secs(1);
    }
    bench.inbound(1, segment(SYN_ACK, 1_000, 8, 65_535, 0), &scaled());
    // The window of the SYN ends at 65241; this moves the edge to 101001.
    assert_eq!(bench.ack(1, 1_001, 100_000), rounded(100_000 - 127));
    bench.now += RTT;
    bench.inbound(1, segment(TcpFlags::ACK, 63_793, 8, 500, 1_448), &TcpOptions::default());
    bench.inbound(1, segment(TcpFlags::ACK, 65_241, 8, 500, 1), &TcpOptions::default());
    let rtt = |bench: &mut Bench| {
        let flow = summary(true, 1, segment(TcpFlags::ACK, 0, 0, 0, 0)).flow;
        let now = bench.now;
        bench.clamp.table.entry(flow, now).base_rtt()
    };
    assert_eq!(rtt(&mut bench), None, "within the window, then the byte of a probe");
    bench.inbound(1, segment(TcpFlags::ACK, 65_241, 8, 500, 1_448), &TcpOptions::default());
    assert_eq!(rtt(&mut bench), Some(RTT));
}

#[test]
fn without_both_scales_or_with_a_signature_nothing_is_touched() {
    let signed = TcpOptions { signed: true, ..scaled() };
    for (ours, theirs) in
        [(scaled(), options(None)), (options(None), scaled()), (signed, scaled()), (scaled(), signed)]
    {
        let mut bench = Bench::new(Budget::Window(Bytes::new(48_000)));
        bench.open(1, &ours, &theirs);
        assert_eq!(bench.ack(1, 1_001, 3_000_000), rounded(3_000_000 - 127));
    }
    let mut unseen = Bench::new(Budget::Window(Bytes::new(48_000)));
    assert_eq!(unseen.ack(1, 1_001, 3_000_000), rounded(3_000_000 - 127));
    for n in 0..300 {
        unseen.now += Duration::from_millis(1);
        unseen.inbound(1, segment(TcpFlags::ACK, n * 1_448, 8, 500, 1_448), &TcpOptions::default());
    }
    let status = unseen.clamp.status();
    assert_eq!((status.rewritten, status.active, status.untouchable), (0, 1, 1));
}

#[test]
fn a_connection_is_left_alone_at_first_and_then_limited_over_a_round_trip() {
    let mut world = World::new(config(Budget::Rate(RATE)), RATE, 500_000);
    world.start(RTT, Timestamp::MAX);
    let mut history = Vec::new();
    for _ in 0..400 {
        world.run_for(Duration::from_millis(1));
        let flow = &world.downloads[0];
        let own = 500_000.min(65_536 + 2 * flow.received);
        history.push((flow.received, flow.window, flow.window + (2 << SHIFT) + 2 * 2_896 < own));
    }
    let opened = history.iter().position(|&(_, window, _)| window > 0).unwrap();
    let limited = history.iter().position(|&(_, window, is_limited)| window > 0 && is_limited).unwrap();
    assert!(limited - opened >= 40, "three round trips with the handshake's: {opened} to {limited} ms");
    assert!(history[limited].0 >= 64_000);
    // It comes over a round trip, not at once, and stays.
    let settled = history.iter().skip(limited).position(|&(_, window, _)| window == rounded(ALL)).unwrap();
    assert!((10..=60).contains(&settled), "{settled} ms");
    assert!(history[limited + settled..].iter().all(|&(_, window, _)| window == rounded(ALL)));
}

#[test]
fn udp_is_taken_off_first() {
    let mut world = World::new(config(Budget::Rate(RATE)), RATE, 1_000_000);
    world.start_udp(40);
    world.start(RTT, Timestamp::MAX);
    world.run_for(Duration::from_secs(5));
    let status = world.clamp.status();
    assert!((status.udp.as_mbit_f64() - 40.0).abs() < 0.5, "{}", status.udp);
    let expected = (95e6 - status.udp.as_bits_per_s() as f64) / 8.0 * 0.02 + 1_448.0;
    assert_eq!(windows(&world), [rounded(expected as u64)]);
    world.delays.clear();
    world.run_for(Duration::from_secs(1));
    assert!(world.delay(0.99) < Duration::from_millis(2), "{:?}", world.delay(0.99));
}

#[test]
fn a_fixed_window_holds_from_the_start_but_not_against_what_the_syn_announced() {
    let mut bench = Bench::new(Budget::Window(Bytes::new(48_000)));
    bench.open(1, &scaled(), &scaled());
    assert_eq!(bench.ack(1, 1_001, 3_000_000), rounded(64_240), "the SYN's window");
    assert_eq!(
        bench.ack(1, 20_001, 3_000_000),
        rounded(1_001 + rounded(64_240) - 20_001).max(rounded(48_000))
    );
    assert_eq!(bench.ack(1, 100_001, 3_000_000), 48_000);
    assert_eq!(bench.ack(1, 100_001, 0), 0, "the host closes its window");
    assert_eq!(bench.ack(1, 100_001, 1_280), 1_280, "a smaller window of the host's own");
}

#[test]
fn what_cannot_be_written_moves_the_edge_with_its_own_window() {
    let mut bench = Bench::new(Budget::Window(Bytes::new(48_000)));
    bench.open(1, &scaled(), &scaled());
    let field = u16::try_from(200_000_u64 >> SHIFT).unwrap();
    let packet = summary(true, 1, segment(TcpFlags::ACK, 8, 1_001, field, 30_000));
    assert_eq!(bench.clamp.on_outbound(bench.now, &packet, &TcpOptions::default(), false), None);
    assert_eq!(bench.ack(1, 1_001 + 100_000, 3_000_000), rounded(200_000 - 64 - 100_000));
    assert_eq!(bench.ack(1, 1_001 + 200_000, 3_000_000), 48_000);
}

#[test]
fn a_flood_of_connections_costs_no_more_memory_than_the_table() {
    let mut bench = Bench::new(Budget::Rate(RATE));
    for port in 0..=u16::MAX {
        bench.outbound(port, segment(TcpFlags::SYN, 7, 0, 64_240, 0), &scaled());
    }
    assert!(bench.clamp.status().connections <= 256);
    assert!(size_of::<Connection>() <= 320);
}

#[derive(Clone, Debug)]
enum Event {
    /// Bytes of data arrive, perhaps not the next ones.
    Data {
        bytes: u32,
        ahead: u32,
    },
    /// The host acknowledges so many bytes of what came, with this window.
    Ack {
        part: f64,
        window: u64,
        payload: u32,
    },
    Pass(Duration),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1..3_000_u32, prop_oneof![4 => Just(0), 1 => 0..50_000_u32])
            .prop_map(|(bytes, ahead)| Event::Data { bytes, ahead }),
        4 => (0.0..=1.0, prop_oneof![3 => Just(4_000_000_u64), 1 => 0..200_000_u64], 0..2_u32)
            .prop_map(|(part, window, payload)| Event::Ack { part, window, payload }),
        1 => (0..300_u64).prop_map(|ms| Event::Pass(Duration::from_millis(ms))),
    ];
    prop::collection::vec(event, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A model of the receiver: what it announces is what the wire carries, unless the clamp lowers it.
    #[test]
    fn the_right_edge_never_moves_back_and_nothing_grows(
        events in events(),
        shift in 0..=14_u8,
        isn: u32,
        fixed in prop::option::of(1..300_000_u64),
        mbit in 1..200_u64,
    ) {
        let budget = fixed.map_or(Budget::Rate(Rate::mbit_per_s(mbit)), |bytes| Budget::Window(Bytes::new(bytes)));
        let mut bench = Bench::new(budget);
        let scale = options(Some(shift));
        bench.outbound(1, segment(TcpFlags::SYN, 7, 0, 64_240, 0), &scale);
        bench.now += RTT;
        bench.inbound(1, segment(SYN_ACK, isn, 8, 65_535, 0), &scale);
        // Stream offsets; the sequence number of offset 0 is isn + 1.
        let number = |offset: u64| isn.wrapping_add(1).wrapping_add(offset as u32);
        let (mut arrived, mut acknowledged, mut host_edge, mut wire_edge) = (0_u64, 0_u64, 64_240_u64, 64_240_u64);
        for event in events {
            match event {
                Event::Pass(span) => bench.now += span,
                Event::Data { bytes, ahead } => {
                    // A sender keeps within the window that it was told.
                    let start = (arrived + u64::from(ahead)).min(wire_edge);
                    let bytes = u64::from(bytes).min(wire_edge - start);
                    let data = segment(TcpFlags::ACK, number(start), 8, 500, bytes as u32);
                    bench.inbound(1, data, &TcpOptions::default());
                    if start <= arrived {
                        arrived = arrived.max(start + bytes);
                    }
                }
                Event::Ack { part, window, payload } => {
                    acknowledged += ((arrived - acknowledged) as f64 * part) as u64;
                    // The host does not shrink its own window either, except to the granularity of the scale.
                    let wanted = window.max(host_edge.saturating_sub(acknowledged));
                    let field = u16::try_from(wanted.div_ceil(1 << shift)).unwrap_or(u16::MAX);
                    let own_edge = acknowledged + (u64::from(field) << shift);
                    let tcp = segment(TcpFlags::ACK, 8, number(acknowledged), field, payload);
                    let written = bench.outbound(1, tcp, &TcpOptions::default());
                    prop_assert!(written.is_none_or(|new| new < field && new > 0));
                    let new = written.unwrap_or(field);
                    let announced = u64::from(new) << shift;
                    let edge = acknowledged + announced;
                    prop_assert!(edge >= wire_edge.min(own_edge), "{} after {}", edge, wire_edge);
                    if written.is_some() {
                        prop_assert!(announced >= 4 * 1_448, "{} bytes", announced);
                        // Rounded up, and to no more than the scale's grain.
                        if let Some(fixed) = fixed {
                            let limit = fixed.max(4 * 1_448).max(wire_edge.saturating_sub(acknowledged));
                            prop_assert!(announced >= limit && announced < limit + (1 << shift));
                        }
                    }
                    host_edge = host_edge.max(own_edge);
                    wire_edge = wire_edge.max(edge);
                }
            }
        }
    }
}
