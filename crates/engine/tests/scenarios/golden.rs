//! The kernel's fq_codel as a yardstick: the same input, the drops side by side.
//!
//! `kernel_drops.txt` was recorded from outside of Linux 6.1's fq_codel in virtual time. What differs, and why:
//! * The kernel's token bucket let the first ten frames pass without delay, ours has no credit here: the sojourn reaches
//!   5 ms at 36.28 ms there and at 30.01 ms here. Times are compared from that crossing on.
//! * The first two drops agree: +100 ms and +200 ms after the sojourn first reached 5 ms.
//! * From the third on the kernel is early. It approximates 1/sqrt(count) by one Newton step from the previous value,
//!   which at count 2 gives 0.5 instead of 0.707, at 3 0.567 instead of 0.577, and then converges: its gaps are 100, 50,
//!   56.7, 48.4, 44.2 ms, ours 100, 70.7, 57.7, 50.0, 44.7 ms. It stays about 25 ms ahead of us.
//! * So our queue stands a little higher at its peak: 397 ms against 393 ms.

use crate::simulation::{Flow, Story, run};
use engine::ShaperConfig;
use std::time::Duration;
use units::{Rate, Timestamp, as_ms};

const FRAME_BYTES: u32 = 1_042;
const PERIOD: Duration = Duration::from_nanos(694_666);
/// One frame at 10 Mbit/s: drops happen when a packet is due.
const FRAME_TIME_MS: f64 = 0.8336;
/// When the kernel's sojourn reached 5 ms.
const KERNEL_CROSSING_MS: f64 = 36.28;
/// How many packets the kernel dropped while the source sent.
const KERNEL_DROPS: usize = 911;

fn replay() -> Story {
    // Without credit the pacer is as exact as the kernel's in virtual time.
    let config = ShaperConfig { credit: Duration::ZERO, ..ShaperConfig::new(Rate::mbit_per_s(10)) };
    let flow = Flow { start: Timestamp::ZERO, ..Flow::every(1, FRAME_BYTES, PERIOD) };
    run(config, &[flow], PERIOD * 8_637, Duration::ZERO)
}

/// Our drops in ms after the first packet was sent.
fn our_drops(story: &Story) -> Vec<f64> {
    story.flows[0].dropped.iter().map(|(at, _)| as_ms(*at - Timestamp::ZERO)).collect()
}

/// The kernel's.
fn kernel_drops() -> Vec<f64> {
    let rows = include_str!("kernel_drops.txt").lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split_once(' ').unwrap().1.parse::<f64>().unwrap() / 1e3).collect()
}

/// When a dequeued packet had first stood for 5 ms.
fn crossing(story: &Story) -> f64 {
    let first = story.flows[0].sent.iter().find(|(_, sojourn)| *sojourn >= Duration::from_millis(5));
    as_ms(first.unwrap().0 - Timestamp::ZERO)
}

#[test]
fn the_first_drop_comes_100_ms_after_the_crossing_then_the_exact_control_law() {
    let story = replay();
    let drops = our_drops(&story);
    let mut due = crossing(&story) + 100.0;
    for (n, at) in drops.iter().take(60).enumerate() {
        let late = at - due;
        assert!((-0.001..=FRAME_TIME_MS).contains(&late), "drop {n} at {at} ms, due {due} ms");
        // The first drop sets the law's origin; later ones follow from what was due, not from when it happened.
        if n == 0 {
            due = *at;
        }
        due += 100.0 / ((n + 1) as f64).sqrt();
    }
}

#[test]
fn beside_the_kernel_only_the_newton_step_differs() {
    let story = replay();
    let since =
        |crossing: f64, drops: Vec<f64>| -> Vec<f64> { drops.iter().map(|at| at - crossing).collect() };
    let ours = since(crossing(&story), our_drops(&story));
    let kernel = since(KERNEL_CROSSING_MS, kernel_drops());
    for n in [0, 1] {
        assert!((ours[n] - kernel[n]).abs() < 2.0 * FRAME_TIME_MS, "{} and {}", ours[n], kernel[n]);
    }
    for n in 6..60 {
        let (our_gap, kernel_gap) = (ours[n] - ours[n - 1], kernel[n] - kernel[n - 1]);
        assert!((our_gap - kernel_gap).abs() < 2.0 * FRAME_TIME_MS, "gap {n}: {our_gap} and {kernel_gap}");
        assert!((20.0..30.0).contains(&(ours[n] - kernel[n])), "drop {n}: {} and {}", ours[n], kernel[n]);
    }
    let peak = as_ms(story.flows[0].sojourn(1.0));
    assert!((393.0..400.0).contains(&peak), "{peak}");
    let drops = story.flows[0].dropped.len();
    assert!(drops.abs_diff(KERNEL_DROPS) <= 10, "{drops} drops");
}
