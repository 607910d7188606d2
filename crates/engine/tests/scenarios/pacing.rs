//! The pacer against timers that are late.

use crate::simulation::{Flow, Pattern, run};
use engine::ShaperConfig;
use std::time::Duration;
use units::Rate;

const LENGTH: Duration = Duration::from_secs(1);

fn flows() -> Vec<Flow> {
    let pattern = Pattern::Window { packets: 1_000, rtt: Duration::from_millis(5) };
    (1..=4).map(|hash| Flow { pattern, ..Flow::bulk(hash) }).collect()
}

#[test]
fn timers_100_us_late_cost_no_rate() {
    for mbit in [10, 20, 100, 350, 1_000] {
        let config = ShaperConfig::new(Rate::mbit_per_s(mbit));
        let story = run(config, &flows(), LENGTH, Duration::from_micros(95));
        let share = story.rate.as_mbit_f64() / mbit as f64;
        assert!((0.994..=1.013).contains(&share), "{mbit} Mbit/s: {share}");
    }
}

#[test]
fn at_1_gbit_the_timer_fires_once_for_a_dozen_packets() {
    // No acknowledgement clock: only the shaper's own timer drives it after the first millisecond.
    let pattern = Pattern::Window { packets: 5_000, rtt: Duration::from_secs(9) };
    let flood: Vec<Flow> = (1..=2).map(|hash| Flow { pattern, ..Flow::bulk(hash) }).collect();
    let config = ShaperConfig::new(Rate::mbit_per_s(1_000));
    let story = run(config, &flood, Duration::from_millis(60), Duration::from_micros(25));
    assert!(story.stats.sent.packets >= 4_800, "{}", story.stats.sent.packets);
    let packets_per_wake_up = story.stats.sent.packets as f64 / story.wake_ups as f64;
    assert!(packets_per_wake_up >= 8.0, "{packets_per_wake_up}");
}
