//! What holds for any sequence of calls.

use engine::{
    Class, DropReason, EXPRESS_BYTES, Framing, MTU_BYTES, Overhead, Packet, Poll, Shaper, ShaperConfig,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::Ecn;

#[derive(Clone, Debug)]
enum Call {
    Push {
        flow: u64,
        bytes: u32,
        segment_bytes: u16,
        ecn: Ecn,
        class: Class,
    },
    Pass(Duration),
    /// Sleeps as long as the shaper asked for, and then some.
    Sleep(Duration),
    SetRate(Rate),
}

fn call(rates: bool) -> impl Strategy<Value = Call> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0]);
    // 20 flows of one set of eight queues: some are guests of others.
    let flow = (0..20_u64).prop_map(|n| n << 32 | n << 10 | 5);
    let size = prop_oneof![
        4 => Just((60, 0)), 4 => Just((1_500, 0)), 2 => (1..2_000_u32, Just(0_u16)),
        1 => (1_501..65_000_u32, Just(1_500)),
    ];
    let class = prop_oneof![4 => Just(Class::Normal), 1 => Just(Class::Priority), 1 => Just(Class::Ack)];
    let push = (flow, size, ecn, class).prop_map(|(flow, (bytes, segment_bytes), ecn, class)| Call::Push {
        flow,
        bytes,
        segment_bytes,
        ecn,
        class,
    });
    let pass = (0..3_000_u64).prop_map(|us| Call::Pass(Duration::from_micros(us)));
    let sleep = (0..400_u64).prop_map(|us| Call::Sleep(Duration::from_micros(us)));
    let rate = (1..100_u64).prop_map(|mbit| Call::SetRate(Rate::mbit_per_s(mbit)));
    prop_oneof![12 => push, 3 => pass, 4 => sleep, u32::from(rates) => rate]
}

fn config() -> impl Strategy<Value = ShaperConfig> {
    let rate = prop_oneof![Just(1_u64), Just(20), Just(350), Just(1_000)];
    let framing = prop::sample::select(vec![Framing::Plain, Framing::Ptm, Framing::Atm]);
    let overhead =
        (-14..50_i32, 0..100_u32, framing).prop_map(|(bytes, mpu, framing)| Overhead { bytes, mpu, framing });
    (rate, overhead, 0..300_u64, 5..200_u32).prop_map(|(mbit, overhead, credit_us, limit_packets)| {
        ShaperConfig {
            overhead,
            credit: Duration::from_micros(credit_us),
            limit_packets,
            // Short, so that CoDel has its say within a short test.
            target: Duration::from_micros(500),
            interval: Duration::from_millis(2),
            ..ShaperConfig::new(Rate::mbit_per_s(mbit))
        }
    })
}

/// What each segment of a super-packet repeats.
const HEADER_BYTES: u16 = 52;

/// What the link carries for a packet, segment by segment.
fn wire_bytes(bytes: u32, segment_bytes: u16, overhead: &Overhead) -> u64 {
    if segment_bytes == 0 || bytes <= segment_bytes.into() {
        return overhead.charge(bytes).into();
    }
    let header = u32::from(HEADER_BYTES);
    let (mut left, mut sum) = (bytes - header, 0);
    while left > 0 {
        let part = left.min(u32::from(segment_bytes) - header);
        sum += u64::from(overhead.charge(part + header));
        left -= part;
    }
    sum
}

/// A packet in flight, as the test knows it: flow, whether it is a pure ACK, serial number. ACKs may overtake the other
/// packets of their flow, but not each other.
type Handle = (u64, bool, u64);

/// A shaper, and beside it what must come back from it.
struct World {
    shaper: Shaper<Handle>,
    now: Timestamp,
    wake_up: Timestamp,
    serial: u64,
    /// Serial numbers of each flow's held packets, in order.
    held: BTreeMap<(u64, bool), VecDeque<u64>>,
    /// Time and wire bytes of each packet sent.
    sent: Vec<(Timestamp, u64)>,
    wire_bytes: BTreeMap<u64, u64>,
    overhead: Overhead,
}

impl World {
    fn new(config: ShaperConfig) -> Self {
        Self {
            shaper: Shaper::new(config),
            now: Timestamp::from_millis(1_000),
            wake_up: Timestamp::ZERO,
            serial: 0,
            held: BTreeMap::new(),
            sent: Vec::new(),
            wire_bytes: BTreeMap::new(),
            overhead: config.overhead,
        }
    }

    fn make(&mut self, call: &Call) {
        match *call {
            Call::Push { flow, bytes, segment_bytes, ecn, class } => {
                self.serial += 1;
                self.held.entry((flow, class == Class::Ack)).or_default().push_back(self.serial);
                let handle = (flow, class == Class::Ack, self.serial);
                self.wire_bytes.insert(self.serial, wire_bytes(bytes, segment_bytes, &self.overhead));
                let packet =
                    Packet { handle, flow, bytes, segment_bytes, header_bytes: HEADER_BYTES, ecn, class };
                self.shaper.push(self.now, packet);
            }
            Call::Pass(span) => self.now += span,
            Call::Sleep(late) => self.now = self.now.max(self.wake_up) + late,
            Call::SetRate(rate) => self.shaper.set_rate(self.now, rate),
        }
        self.poll();
    }

    fn poll(&mut self) {
        self.wake_up = Timestamp::ZERO;
        for _ in 0..1_000_000 {
            match self.shaper.poll(self.now) {
                Poll::Send { handle, .. } => {
                    let wire_bytes = self.wire_bytes[&handle.2];
                    self.sent.push((self.now, wire_bytes));
                    self.hand_back(handle);
                }
                Poll::Drop { handle, reason: DropReason::Aqm | DropReason::Overflow } => {
                    self.hand_back(handle);
                }
                Poll::WaitUntil(at) => {
                    assert!(at >= self.now, "a wake-up in the past");
                    assert!(self.shaper.backlog().packets > 0);
                    self.wake_up = at;
                    return;
                }
                Poll::Idle => {
                    assert_eq!(self.shaper.backlog().packets, 0);
                    return;
                }
            }
        }
        panic!("the shaper never comes to rest");
    }

    /// Each packet comes back once, behind the earlier ones of its flow.
    fn hand_back(&mut self, (flow, ack, serial): Handle) {
        let earliest = self.held.get_mut(&(flow, ack)).and_then(VecDeque::pop_front);
        assert_eq!(earliest, Some(serial), "flow {flow}, ack {ack}");
    }

    fn held(&self) -> u64 {
        self.held.values().map(|queue| queue.len() as u64).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_packet_comes_back_once_and_in_its_flows_order(
        config in config(), calls in prop::collection::vec(call(true), 1..200),
    ) {
        let mut world = World::new(config);
        for call in &calls {
            world.make(call);
            prop_assert_eq!(world.shaper.stats().held(), world.held());
            prop_assert_eq!(u64::from(world.shaper.backlog().packets), world.held());
            prop_assert!(world.shaper.backlog().packets <= config.limit_packets);
        }
        let drained: Vec<Handle> = world.shaper.drain().collect();
        drained.into_iter().for_each(|handle| world.hand_back(handle));
        prop_assert_eq!(world.held(), 0);
        prop_assert_eq!(world.shaper.stats().held(), 0);
        prop_assert_eq!(world.shaper.poll(world.now), Poll::Idle);
    }

    #[test]
    fn no_window_carries_more_than_the_rate_and_one_burst(
        config in config(), calls in prop::collection::vec(call(false), 1..200),
    ) {
        let mut world = World::new(config);
        calls.iter().for_each(|call| world.make(call));
        let largest = world.sent.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0).max(MTU_BYTES.into());
        let credit_bits = config.rate.as_bits_per_s() as f64 * config.credit.as_secs_f64();
        let burst_bits = 2.0 * credit_bits + 8.0 * (largest as f64 + f64::from(EXPRESS_BYTES));
        // A leaky bucket holds the excess of the worst window that ends now.
        let (mut excess_bits, mut last) = (0.0_f64, Timestamp::ZERO);
        for &(at, bytes) in &world.sent {
            let drained = config.rate.as_bits_per_s() as f64 * (at - last).as_secs_f64();
            excess_bits = (excess_bits - drained).max(0.0) + bytes as f64 * 8.0;
            last = at;
            prop_assert!(excess_bits <= burst_bits + 1.0, "{} of {} bits", excess_bits, burst_bits);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_same_calls_give_the_same_answers(
        config in config(), calls in prop::collection::vec(call(true), 1..100),
    ) {
        let (mut one, mut other) = (World::new(config), World::new(config));
        for call in &calls {
            one.make(call);
            other.make(call);
        }
        prop_assert_eq!(&one.sent, &other.sent);
        prop_assert_eq!(one.shaper.stats(), other.shaper.stats());
    }

    #[test]
    fn whoever_sleeps_as_asked_gets_everything_out_without_starvation(
        config in config(), calls in prop::collection::vec(call(true), 1..100),
    ) {
        let mut world = World::new(config);
        calls.iter().for_each(|call| world.make(call));
        // At 1 Mbit/s or more, 200 packets of at most 70 KB with overhead are out within 112 s.
        let start = world.now;
        for _ in 0..1_000_000 {
            if world.held() == 0 {
                break;
            }
            world.make(&Call::Sleep(Duration::ZERO));
        }
        prop_assert_eq!(world.held(), 0);
        prop_assert!(world.now - start < Duration::from_secs(112));
    }
}

/// Bytes sent by flow 0 and by each of the others, which always have packets waiting, after each millisecond.
fn shares(class: Class, others: u64, arrivals: &[(u64, u32)]) -> Vec<Vec<u64>> {
    // CoDel and the buffer stay out of it.
    let config =
        ShaperConfig { target: Duration::from_secs(10_000), ..ShaperConfig::new(Rate::mbit_per_s(20)) };
    let mut shaper = Shaper::new(config);
    let packet = |flow: u64, bytes, class| Packet {
        handle: (flow, bytes),
        flow: flow.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        bytes,
        segment_bytes: 0,
        header_bytes: 52,
        ecn: Ecn::NotEct,
        class,
    };
    let mut now = Timestamp::from_millis(1_000);
    (1..=others).for_each(|flow| (0..3).for_each(|_| shaper.push(now, packet(flow, 1_500, Class::Normal))));
    let mut sent = vec![0; others as usize + 1];
    let mut history = Vec::new();
    let mut queue = arrivals.iter().peekable();
    for ms in 0..300 {
        while let Some((_, bytes)) = queue.next_if(|(at, _)| *at <= ms) {
            shaper.push(now, packet(0, *bytes, class));
        }
        for _ in 0..10 {
            while let Poll::Send { handle: (flow, bytes), .. } = shaper.poll(now) {
                sent[flow as usize] += u64::from(bytes);
                if flow > 0 {
                    shaper.push(now, packet(flow, 1_500, Class::Normal));
                }
            }
            now += Duration::from_micros(100);
        }
        history.push(sent.clone());
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever a marked flow offers, the others get what they would get beside it unmarked, less the tier's limit and
    /// what two runs of DRR may differ by: a packet and a quantum each.
    #[test]
    fn a_marked_flow_costs_the_others_no_more_than_one_limit(
        others in 1..12_u64,
        mut arrivals in prop::collection::vec((0..300_u64, 40..1_500_u32), 1..700),
    ) {
        arrivals.sort_unstable();
        let plain = shares(Class::Normal, others, &arrivals);
        let marked = shares(Class::Priority, others, &arrivals);
        let limit = 6_000 + 2 * (1_514 + 1_514);
        for (ms, (plain, marked)) in plain.iter().zip(&marked).enumerate() {
            for flow in 1..plain.len() {
                prop_assert!(
                    marked[flow] + limit >= plain[flow],
                    "flow {} at {} ms: {} and {} bytes", flow, ms, marked[flow], plain[flow]
                );
            }
            prop_assert!(marked[0] <= plain[0] + limit, "{} ms: {} and {}", ms, marked[0], plain[0]);
        }
    }
}
