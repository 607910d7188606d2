//! Does the comparison hold its promises? A/A sessions under drifts, and A/B sessions with a known effect. The
//! long version with the table is `cargo run --release -p stats --example validity`.

mod arms;
#[path = "traces/random.rs"]
mod random;

use arms::{DRIFTS, Drift, LINES, Line, Session, naive_finds};
use stats::compare::Change;

/// Two standard errors above 5 % over 300 sessions.
const MOST_FALSE_PCT: f64 = 7.5;
const SESSIONS: u64 = 300;
const PAIRS: usize = 8;

#[test]
fn a_against_a_finds_nothing_under_any_drift() {
    let (mut all, mut found) = (0, 0);
    for (kind, (line, name)) in LINES.into_iter().enumerate() {
        for (drift, drift_name) in DRIFTS {
            let seeds = 10_000 * kind as u64..10_000 * kind as u64 + SESSIONS;
            let differs =
                |&seed: &u64| Session::new(seed, line, drift, PAIRS, 0.0).change() != Change::NoneShown;
            let false_positives = seeds.filter(differs).count();
            let share = 100.0 * false_positives as f64 / SESSIONS as f64;
            assert!(share <= MOST_FALSE_PCT, "{name}, {drift_name}: {share:.1} %");
            all += SESSIONS;
            found += false_positives as u64;
        }
    }
    assert!(100 * found <= 5 * all, "{found} of {all}");
}

#[test]
fn a_large_effect_is_found_with_its_sign_and_a_small_one_on_a_quiet_line() {
    let found = |line, effect_ms| {
        let sessions = (0..100).map(|seed| Session::new(500_000 + seed, line, Drift::None, PAIRS, effect_ms));
        let changes: Vec<Change> = sessions.map(|session| session.change()).collect();
        assert!(!changes.contains(&Change::Higher), "the sign is wrong");
        changes.iter().filter(|&&change| change == Change::Lower).count()
    };
    assert!(found(Line::FairQueue, 5.0) == 100);
    assert!(found(Line::Fifo, 18.0) >= 98);
    assert!(found(Line::FairQueue, 1.0) >= 70);
}

#[test]
fn pooled_samples_find_what_is_not_there() {
    let session = |seed: u64| Session::new(900_000 + seed, Line::FairQueue, Drift::LevelShifts, PAIRS, 0.0);
    let found = (0..100_u64).filter(|&seed| naive_finds(&session(seed))).count();
    assert!(found >= 60, "{found} of 100: the drift is no test of the paired comparison");
}
