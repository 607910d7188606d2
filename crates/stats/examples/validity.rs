//! Prints the tables of docs/method.md on comparison: false positives of A against A, power, errors of the
//! corrected family, and the cost of peeking. The classifier's table is the example `confusion`.
//!
//! `cargo run --release -p stats --example validity [SESSIONS]`

#[path = "../tests/arms/mod.rs"]
mod arms;
#[path = "../tests/traces/random.rs"]
mod random;

use arms::{DRIFTS, Drift, LINES, Line, Session, naive_finds};
use random::Random;
use stats::compare::{Better, Change, Endpoint, Floor, MIN_ROUNDS, Verdict, compare, family};

const PAIRS: usize = 8;

fn main() {
    let sessions = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(2000);
    false_positives(sessions);
    power(sessions / 4);
    families(sessions / 4);
    peeking(sessions);
}

fn percent(part: usize, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

fn false_positives(sessions: u64) {
    println!(
        "False positives of A against A, p95 per round, {PAIRS} pairs, {sessions} sessions a cell, in %:\n"
    );
    println!("| line | drift | paired, any | paired, credited | pooled samples |\n|---|---|---|---|---|");
    let (mut total, mut cells) = (0.0, 0.0);
    for (line, name) in LINES {
        for (drift, drift_name) in DRIFTS {
            let all: Vec<Session> =
                (0..sessions).map(|seed| Session::new(7_000_000 + seed, line, drift, PAIRS, 0.0)).collect();
            let any = all.iter().filter(|s| s.change() != Change::NoneShown).count();
            let credited =
                all.iter().filter(|s| matches!(s.change(), Change::Lower | Change::Higher)).count();
            let naive = all.iter().filter(|s| naive_finds(s)).count();
            println!(
                "| {name} | {drift_name} | {:.1} | {:.1} | {:.1} |",
                percent(any, sessions),
                percent(credited, sessions),
                percent(naive, sessions)
            );
            total += percent(any, sessions);
            cells += 1.0;
        }
    }
    println!("\nMean of the cells: {:.1} %\n", total / cells);
}

fn power(sessions: u64) {
    println!("Sessions in which B is found lower, {sessions} sessions a cell, in %:\n");
    println!("| line | pairs | 1 ms | 5 ms | 18 ms |\n|---|---|---|---|---|");
    for (line, name) in LINES {
        for pairs in [PAIRS, 12] {
            let cells = [1.0, 5.0, 18.0].map(|effect| {
                let found = |&seed: &u64| {
                    Session::new(8_000_000 + seed, line, Drift::None, pairs, effect).change() == Change::Lower
                };
                format!("{:.0}", percent((0..sessions).filter(found).count(), sessions))
            });
            println!("| {name} | {pairs} | {} |", cells.join(" | "));
        }
    }
    println!();
}

/// Twelve endpoints, the first three primary, nothing changed: how often is anything called better or worse?
fn families(sessions: u64) {
    let mut wrong = [0, 0];
    for seed in 0..sessions {
        let mut random = Random::new(9_000_000 + seed);
        let common: Vec<f64> = (0..PAIRS).map(|_| random.normal()).collect();
        let table: Vec<Endpoint> = (0..12)
            .map(|i| Endpoint {
                differences: common.iter().map(|c| 0.7 * c + 0.7 * random.normal()).collect(),
                floor: Floor { control: Some(0.0), user_minus_kernel: None, resolution: 0.0 },
                better: Better::Lower,
                primary: i < 3,
            })
            .collect();
        let findings = family(&table);
        let called = |f: &stats::compare::Finding| matches!(f.verdict, Verdict::Better | Verdict::Worse);
        wrong[0] += usize::from(findings[..3].iter().any(called));
        wrong[1] += usize::from(findings[3..].iter().any(called));
    }
    println!(
        "Family-wise false positives over 12 correlated endpoints: primary (Holm) {:.1} %, the others (max |T|) {:.1} %\n",
        percent(wrong[0], sessions),
        percent(wrong[1], sessions)
    );
}

/// What looking after every round from the sixth to the sixteenth would cost.
fn peeking(sessions: u64) {
    let peeked = |&seed: &u64| {
        let session = Session::new(9_500_000 + seed, Line::Fifo, Drift::None, 16, 0.0);
        (MIN_ROUNDS..=16)
            .any(|n| compare(&session.differences[..n], &session.floor).change != Change::NoneShown)
    };
    let found = (0..sessions).filter(peeked).count();
    println!(
        "Looking after each of rounds 6 to 16 and stopping at a finding: {:.1} % false positives",
        percent(found, sessions)
    );
}
