//! Prints the confusion matrix of the tail classifier on generated traces.
//!
//! `cargo run --release -p stats --example confusion [FIRST_SEED [COUNT]] [--list]`

#[path = "../tests/traces/mod.rs"]
mod traces;

use stats::{TailLabel, classify};
use std::collections::BTreeMap;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<u64>().ok());
    let first = numbers.next().unwrap_or(1_000_000);
    let count = numbers.next().unwrap_or(100 * traces::FAMILY_COUNT);
    let mut matrix: BTreeMap<(TailLabel, TailLabel), u64> = BTreeMap::new();
    let mut families: BTreeMap<(TailLabel, &str), BTreeMap<&str, u64>> = BTreeMap::new();
    let (mut exact, mut acceptable, mut timers, mut right_timers) = (0, 0, 0, 0);
    for seed in first..first + count {
        let trace = traces::trace(seed);
        let result = classify(&trace.probes, &trace.idle_rtt_ms);
        *matrix.entry((trace.label, result.label)).or_default() += 1;
        exact += u64::from(trace.label == result.label);
        acceptable += u64::from(trace.accepts(result.label));
        if !trace.accepts(result.label) && std::env::args().any(|arg| arg == "--list") {
            println!("{seed} {}: {} ({})", trace.family, result.label.as_str(), result.why);
        }
        let word = if trace.accepts(result.label) { "" } else { result.label.as_str() };
        *families.entry((trace.label, trace.family)).or_default().entry(word).or_default() += 1;
        if let (Some(truth), Some(found)) = (trace.rto_ms, result.rto_ms) {
            timers += 1;
            right_timers += u64::from((truth - found).abs() <= 0.05 * truth);
        }
    }
    print!("{:16}", "truth \\ said");
    TailLabel::ALL.iter().for_each(|said| print!("{:>16}", said.as_str()));
    println!();
    for truth in TailLabel::ALL {
        print!("{:16}", truth.as_str());
        TailLabel::ALL.iter().for_each(|&said| print!("{:>16}", matrix.get(&(truth, said)).unwrap_or(&0)));
        println!();
    }
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!("exact {:.1} %, acceptable {:.1} %", share(exact, count), share(acceptable, count));
    println!("timeouts within 5 %: {right_timers} of {timers}");
    println!("not acceptable, by family:");
    for ((_, family), words) in families {
        let wrong: Vec<String> = words
            .iter()
            .filter(|(word, _)| !word.is_empty())
            .map(|(word, n)| format!("{word} {n}"))
            .collect();
        println!("  {family:18} {}", wrong.join(", "));
    }
}
