//! Marked flows beside the others, and wrong marks.

use crate::simulation::{Flow, Pattern, Story, run};
use engine::{Class, Packet, Poll, Shaper, ShaperConfig};
use std::fmt::Write;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp, as_ms};
use wire::Ecn;

const RATE: Rate = Rate::mbit_per_s(20);
const LENGTH: Duration = Duration::from_secs(15);

fn marked(flow: Flow) -> Flow {
    Flow { class: Class::Priority, ..flow }
}

/// A game that sends one update of so many bytes 60 times a second, out of step with everything else.
fn game(bytes: u32) -> Flow {
    Flow::every(99, bytes, Duration::from_nanos(16_666_713))
}

/// A flow beside 20 bulk flows.
fn beside_20_bulk_flows(flow: Flow) -> Story {
    let flows: Vec<Flow> = std::iter::once(flow).chain((1..=20).map(Flow::bulk)).collect();
    run(ShaperConfig::new(RATE), &flows, LENGTH, Duration::ZERO)
}

fn mbit(bytes: Bytes) -> f64 {
    Rate::of(bytes, LENGTH).as_mbit_f64()
}

/// Sojourn of a game beside 20 bulk flows, unmarked and marked. Bursts are four packets at once, 15 times a second.
#[test]
fn the_tier_keeps_a_game_within_a_packet_time_of_20_bulk_flows() {
    let burst = |bytes| Flow {
        pattern: Pattern::Burst { packets: 4, period: Duration::from_nanos(66_666_713) },
        ..game(bytes)
    };
    let mut table = String::from("game                 mark   p50 ms  p99 ms  max ms  lost\n");
    for (name, flow) in [
        ("60 x 120 B", game(120)),
        ("60 x 1200 B", game(1_200)),
        ("15 x 4 x 300 B", burst(300)),
        ("15 x 4 x 1200 B", burst(1_200)),
    ] {
        for (mark, flow) in [("no", flow), ("yes", marked(flow))] {
            let story = beside_20_bulk_flows(flow);
            let game = &story.flows[0];
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| as_ms(game.sojourn(q)));
            writeln!(table, "{name:<20} {mark:<4} {p50:>8.2}{p99:>8.2}{max:>8.2}{:>6}", game.dropped.len())
                .unwrap();
            assert!(story.rate.as_mbit_f64() > 19.9, "{}", story.rate);
        }
    }
    assert_eq!(table, include_str!("priority.txt"), "\n{table}");
}

#[test]
fn a_mismarked_bulk_flow_is_demoted_and_costs_the_others_nothing() {
    let [plain, mismarked] = [Flow::bulk(99), marked(Flow::bulk(99))].map(beside_20_bulk_flows);
    assert_eq!((plain.stats.demotions, plain.stats.priority.packets), (0, 0));
    assert!(mismarked.stats.demotions >= 1);
    assert!((mismarked.rate.as_mbit_f64() / 20.0 - 1.0).abs() < 0.01, "{}", mismarked.rate);
    for (flow, (with, without)) in mismarked.flows.iter().zip(&plain.flows).enumerate() {
        let (with, without) = (mbit(with.sent_bytes), mbit(without.sent_bytes));
        assert!((with / without - 1.0).abs() < 0.01, "flow {flow}: {with} and {without} Mbit/s");
    }
}

#[test]
fn a_demoted_flow_comes_back_when_it_is_sparse_again() {
    // 40 packets at once every two seconds beside a steady trickle of the same flow: a game that fetches a map.
    let trickle = marked(game(1_200));
    let map = Flow {
        pattern: Pattern::Burst { packets: 40, period: Duration::from_secs(2) },
        start: Timestamp::from_millis(1_000),
        ..trickle
    };
    let flows: Vec<Flow> = [trickle, map].into_iter().chain((1..=20).map(Flow::bulk)).collect();
    let story = run(ShaperConfig::new(RATE), &flows, LENGTH, Duration::ZERO);
    let demotions = story.stats.demotions;
    assert!((7..=100).contains(&demotions), "{demotions} in seven bursts");
    // A burst of 48 KB takes 50 turns of 1 Mbit/s, 0.4 s; from then on the trickle passes at once.
    let settled = story.flows[0].sent.iter().filter(|(at, _)| at.as_nanos() % 2_000_000_000 < 900_000_000);
    let late = settled.clone().filter(|(_, sojourn)| *sojourn > Duration::from_micros(1_500)).count();
    assert!(settled.count() > 300 && late == 0, "{late} late");
}

#[test]
fn four_packets_of_the_tier_give_way_to_one_other() {
    let mut shaper = Shaper::new(ShaperConfig::new(RATE));
    let mut now = Timestamp::from_millis(1_000);
    let packet = |handle, flow, class| Packet {
        handle,
        flow,
        bytes: 1_000,
        segment_bytes: 0,
        header_bytes: 28,
        ecn: Ecn::NotEct,
        class,
    };
    for n in 0..6 {
        shaper.push(now, packet('-', 1, Class::Normal));
        // Several flows of two packets each, all within their bounds.
        (0..2).for_each(|_| shaper.push(now, packet('P', 10 + n, Class::Priority)));
    }
    let mut order = String::new();
    loop {
        match shaper.poll(now) {
            Poll::Send { handle, .. } => order.push(handle),
            Poll::Drop { .. } => panic!("nothing stands for long enough"),
            Poll::WaitUntil(at) => now = at,
            Poll::Idle => break,
        }
    }
    assert_eq!(order, "PPPP-PPPP-PPPP----");
    assert_eq!((shaper.stats().priority.packets, shaper.stats().priority_yields), (12, 2));
}
