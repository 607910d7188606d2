use super::*;
use crate::QueueLimit;
use units::Ratio;

const MS: Duration = Duration::from_millis(1);
const RATE: Rate = Rate::mbit_per_s(20);
const SHAPED: Rate = Rate::mbit_per_s(19);
const RAMP: Timestamp = Timestamp::from_millis(5_000);
const END: Timestamp = Timestamp::from_millis(25_000);
/// 64 bytes, 20 times a second, off the beat of everything else.
const PROBE: Sending = Sending::Steady { bytes: 64, period: Duration::from_micros(49_870) };

fn world(shaper: Option<Rate>) -> World {
    let link = LinkConfig {
        rate: Some(RATE),
        delay: 10 * MS,
        jitter: Duration::ZERO,
        loss: Ratio::ZERO,
        queue: QueueLimit::Time(500 * MS),
        seed: 1,
    };
    World::new(WorldConfig { shaper: shaper.map(ShaperConfig::new), link, return_delay: 10 * MS })
}

/// A probe and eight bulk senders; their reports from `RAMP` to `END`, the probe's first.
fn against_bulk(shaper: Option<Rate>, bulk: Sending) -> (Vec<Report>, LinkStats) {
    let mut world = world(shaper);
    world.add(Timestamp::ZERO, PROBE);
    for n in 0..8 {
        world.add(Timestamp::from_millis(7 * n), bulk);
    }
    world.run_until(RAMP);
    world.clear_reports();
    world.run_until(END);
    ((0..9).map(|n| world.report(n).clone()).collect(), *world.link_stats())
}

fn total(reports: &[Report]) -> Rate {
    Rate::of(reports.iter().map(|r| r.delivered).sum(), END - RAMP)
}

#[test]
fn alone_on_the_line_a_probe_sees_the_base_delay() {
    for shaper in [None, Some(SHAPED)] {
        let mut world = world(shaper);
        let probe = world.add(Timestamp::ZERO, PROBE);
        world.run_until(END);
        let own = Bytes::new(64) / RATE;
        assert_eq!(world.report(probe).delay(1.0), Some(10 * MS + own), "{shaper:?}");
    }
}

#[test]
fn windows_fill_the_fifo_and_a_shaper_keeps_the_probe_out_of_it() {
    let (bloated, _) = against_bulk(None, Sending::Window);
    let (shaped, line) = against_bulk(Some(SHAPED), Sending::Window);
    let p50 = |reports: &[Report]| reports[0].delay(0.5).unwrap();
    assert!(p50(&bloated) >= 200 * MS, "{:?}", p50(&bloated));
    // Base delay, and at most one full packet in transmission at the shaper and one on the line.
    let worst = shaped[0].delay(1.0).unwrap();
    assert!(worst <= 10 * MS + 2 * (Bytes::new(1514) / SHAPED), "{worst:?}");
    assert_eq!(shaped[0].dropped, 0);
    // The queue is in the shaper and no longer on the line: a burst of the pacer at most.
    assert!(line.queue_drops == 0 && line.largest_backlog <= 3 * MS, "{line:?}");
    assert!(total(&bloated[1..]) >= RATE.scaled(0.99), "{}", total(&bloated[1..]));
    assert!(total(&shaped[1..]) >= SHAPED.scaled(0.98), "{}", total(&shaped[1..]));
}

#[test]
fn the_shaper_shares_evenly_among_senders_that_heed_nothing() {
    // Eight times 5 Mbit/s onto 19.
    let flood = Sending::Steady { bytes: SEGMENT_BYTES, period: Duration::from_micros(2_400) };
    let (reports, _) = against_bulk(Some(SHAPED), flood);
    let share = total(&reports[1..]).scaled(1.0 / 8.0);
    for report in &reports[1..] {
        let own = report.goodput(END - RAMP);
        assert!(own >= share.scaled(0.97) && own <= share.scaled(1.03), "{own} of {share}");
        assert!(report.dropped > 0);
    }
    assert!(
        reports[0].delay(1.0).unwrap() <= 13 * MS && reports[0].dropped == 0,
        "{:?}",
        reports[0].delay(1.0)
    );
    let (unshaped, _) = against_bulk(None, flood);
    assert!(unshaped[0].delay(0.5).unwrap() >= 490 * MS);
}

#[test]
fn the_same_world_ends_the_same() {
    let run = || against_bulk(Some(SHAPED), Sending::Window);
    assert_eq!(run(), run());
}
