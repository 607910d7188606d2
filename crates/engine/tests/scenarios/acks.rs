//! Downloads that turn this side into a sender of ACKs.

use crate::simulation::{Flow, Pattern, Story, run};
use engine::{Class, ShaperConfig};
use std::fmt::Write;
use std::time::Duration;
use units::{Rate, Timestamp, as_ms};

const LENGTH: Duration = Duration::from_secs(10);

/// The ACKs of `flows` downloads that share `mbit`: one of 52 bytes for each two packets of 1500, eight at once, since
/// the data comes in trains.
fn acks(flows: u64, mbit: f64, class: Class) -> impl Iterator<Item = Flow> {
    let period = Duration::from_secs_f64(flows as f64 * 8.0 * 24_000.0 / (mbit * 1e6));
    (0..flows).map(move |n| Flow {
        class,
        // Out of step with each other.
        start: Timestamp::from_micros(1_000 + n * 37),
        pattern: Pattern::Burst { packets: 8, period },
        ..Flow::every(500 + n, 52, period)
    })
}

/// `uploads` bulk flows and a probe beside the ACKs of eight downloads.
fn story(up: Rate, down_mbit: f64, uploads: u64, class: Class) -> Story {
    let bulk = (1..=uploads).map(Flow::bulk);
    let flows: Vec<Flow> = acks(8, down_mbit, class).chain([Flow::probe(99)]).chain(bulk).collect();
    run(ShaperConfig::new(up), &flows, LENGTH, Duration::ZERO)
}

#[test]
fn acks_skip_the_queue_and_are_paid_for() {
    let mut table = String::from(
        "up     down uploads acks     ack p50 ack p99 ack max  probe p99  wire share  bypassed\n",
    );
    for (up, down, uploads) in [(20, 100.0, 0), (20, 100.0, 8), (20, 300.0, 8), (1, 20.0, 4)] {
        for (name, class) in [("shaped", Class::Normal), ("bypass", Class::Ack)] {
            let rate = Rate::mbit_per_s(up);
            let story = story(rate, down, uploads, class);
            let mut acks = crate::simulation::Outcome::default();
            story.flows[..8].iter().for_each(|flow| acks.sent.extend(&flow.sent));
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| as_ms(acks.sojourn(q)));
            let probe = as_ms(story.flows[8].sojourn(0.99));
            let share = story.rate.as_mbit_f64() / up as f64;
            let bypassed = story.stats.acks_bypassed.packets as f64 / acks.sent.len() as f64;
            writeln!(
                table,
                "{up:>2} {down:>8} {uploads:>7} {name}{p50:>10.2}{p99:>8.2}{max:>8.2}{probe:>11.2}{share:>12.3}{bypassed:>10.3}"
            )
            .unwrap();
            assert!(share <= 1.001, "{share}");
            if class == Class::Ack {
                let lost: usize = story.flows[..8].iter().map(|flow| flow.dropped.len()).sum();
                assert_eq!(lost, 0);
            }
        }
    }
    assert_eq!(table, include_str!("acks.txt"), "\n{table}");
}

#[test]
fn where_acks_alone_fill_the_link_the_rest_queues_and_everyone_gets_a_share() {
    // 300 Mbit/s down want 5.2 Mbit/s of ACKs; the line has 1.
    let story = story(Rate::mbit_per_s(1), 300.0, 1, Class::Ack);
    assert!(story.stats.acks_fill_link_since(&engine::Stats::default()));
    assert!(
        story.stats.acks_queued > 10 * story.stats.acks_bypassed.packets,
        "{:?}",
        story.stats.acks_queued
    );
    let bulk = Rate::of(story.flows[9].sent_bytes, LENGTH).as_mbit_f64();
    assert!((0.09..=0.16).contains(&bulk), "a tenth and what the probe leaves: {bulk}");
    let probe = &story.flows[8];
    assert!(probe.dropped.is_empty());
    // One full packet takes 12 ms on this line.
    assert!(probe.sojourn(0.99) <= Duration::from_millis(27), "{:?}", probe.sojourn(0.99));
    assert!(story.rate.as_mbit_f64() <= 1.001 && story.rate.as_mbit_f64() > 0.99, "{}", story.rate);
}

#[test]
fn once_the_acks_are_fewer_they_skip_the_queue_again() {
    let (stop, go_on) = (Timestamp::from_millis(1_000), Timestamp::from_millis(4_000));
    let flood = acks(8, 300.0, Class::Ack).map(|flow| Flow { end: stop, ..flow });
    let later = acks(2, 10.0, Class::Ack).map(|flow| Flow { start: go_on, ..flow });
    let flows: Vec<Flow> = flood.chain(later).collect();
    let story = run(ShaperConfig::new(Rate::mbit_per_s(1)), &flows, LENGTH, Duration::ZERO);
    let later: Vec<_> = story.flows[8..].iter().flat_map(|flow| &flow.sent).collect();
    assert!(later.len() > 2_400 && story.stats.acks_bypassed.packets > later.len() as u64);
    // Two trains of eight ACKs are 832 bytes, less than the burst that may go ahead.
    assert!(later.iter().all(|(_, sojourn)| *sojourn == Duration::ZERO));
}
