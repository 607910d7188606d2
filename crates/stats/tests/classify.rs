//! The tail classifier on the forty labelled traces and on generated ones.

mod traces;

use serde_json::Value;
use stats::{Basis, Probe, TailLabel, classify};
use std::collections::BTreeMap;
use std::path::Path;

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<Option<f64>> {
    value.as_array().map(|list| list.iter().map(Value::as_f64).collect()).unwrap_or_default()
}

#[test]
fn every_labelled_trace_is_acceptable() {
    let index = read("index.json");
    let mut wrong = Vec::new();
    let mut timers = 0;
    for entry in index.as_array().unwrap() {
        let trace = read(entry["file"].as_str().unwrap());
        let probes: Vec<Probe> = numbers(&trace["t_ms"])
            .iter()
            .zip(numbers(&trace["rtt_ms"]))
            .map(|(at, rtt_ms)| Probe { at_ms: at.unwrap(), rtt_ms, retransmits: None })
            .collect();
        let idle: Vec<f64> = numbers(&trace["idle_rtt_ms"]).into_iter().flatten().collect();
        let result = classify(&probes, &idle);
        let acceptable = entry["acceptable"].as_array().unwrap();
        if !acceptable.iter().any(|label| label == result.label.as_str()) {
            wrong.push(format!("{}: {} ({})", entry["file"], result.label.as_str(), result.why));
        }
        if let (Some(found), Some(truth)) = (result.rto_ms, trace["truth"]["rto_ms"].as_f64()) {
            assert!((found - truth).abs() <= 0.05 * truth, "{}: {found} against {truth}", entry["file"]);
            timers += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(timers >= 12, "{timers} timeouts named");
}

/// Families are tuned on seeds below this.
const FIRST_HOLD_OUT: u64 = 2_000_000;
const REQUIRED_ACCEPTABLE: f64 = 0.96;
const REQUIRED_RECALL: f64 = 0.9;

#[test]
fn unseen_traces_of_every_label_are_told() {
    let count = 20 * traces::FAMILY_COUNT;
    let mut acceptable: BTreeMap<TailLabel, (u64, u64)> = BTreeMap::new();
    for seed in FIRST_HOLD_OUT..FIRST_HOLD_OUT + count {
        let trace = traces::trace(seed);
        let result = classify(&trace.probes, &trace.idle_rtt_ms);
        if let (Some(found), Some(truth)) = (result.rto_ms, trace.rto_ms) {
            assert!((found - truth).abs() <= 0.05 * truth, "seed {seed}, {}: {found}", trace.family);
        }
        let (right, all) = acceptable.entry(trace.label).or_default();
        *right += u64::from(trace.accepts(result.label));
        *all += 1;
    }
    let right: u64 = acceptable.values().map(|counts| counts.0).sum();
    assert!(right as f64 >= REQUIRED_ACCEPTABLE * count as f64, "{right} of {count}: {acceptable:?}");
    assert_eq!(acceptable.len(), TailLabel::ALL.len());
    for (label, (right, all)) in acceptable {
        assert!(right as f64 >= REQUIRED_RECALL * all as f64, "{}: {right} of {all}", label.as_str());
    }
}

fn probe(i: u32, rtt_ms: Option<f64>, retransmits: Option<u8>) -> Probe {
    Probe { at_ms: 50.0 * f64::from(i), rtt_ms, retransmits }
}

/// Round trips of 20 ms and a little that no two neighbours share.
fn quiet(i: u32) -> f64 {
    let mixed = i.wrapping_mul(0x9E37_79B1);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA77);
    20.0 + f64::from(mixed >> 13) / f64::from(1 << 19)
}

#[test]
fn counters_win_over_shape() {
    // The shape says two routes; the counters say that every slow probe was sent again.
    let slow = |i: u32| i.is_multiple_of(3);
    let shaped: Vec<Probe> =
        (0..300).map(|i| probe(i, Some(quiet(i) + if slow(i) { 77.0 } else { 0.0 }), None)).collect();
    assert_eq!(classify(&shaped, &[]).label, TailLabel::BimodalRoute);
    let counted: Vec<Probe> = shaped
        .iter()
        .enumerate()
        .map(|(i, p)| Probe { retransmits: Some(u8::from(slow(i as u32))), ..*p })
        .collect();
    let result = classify(&counted, &[]);
    assert_eq!(
        (result.label, result.basis, result.retransmits),
        (TailLabel::LossRetransmit, Basis::Counters, 100)
    );
}

#[test]
fn counters_that_stay_at_zero_forbid_loss() {
    let probes: Vec<Probe> = (0..300)
        .map(|i| probe(i, Some(quiet(i) + if i % 20 == 0 { 1000.0 } else { 0.0 }), Some(0)))
        .collect();
    let result = classify(&probes, &[]);
    assert_eq!((result.label, result.basis, result.retransmits), (TailLabel::Spikes, Basis::Counters, 0));
    let uncounted: Vec<Probe> = probes.iter().map(|p| Probe { retransmits: None, ..*p }).collect();
    let result = classify(&uncounted, &[]);
    assert_eq!((result.label, result.rto_ms), (TailLabel::LossRetransmit, Some(1000.0)));
    let gap = result.gap.unwrap();
    assert!(gap.from_ms < 21.1 && gap.to_ms >= 1020.0, "{gap:?}");
}

#[test]
fn two_probes_without_an_answer_are_loss_and_one_is_not() {
    let with_lost = |lost: u32| -> Vec<Probe> {
        (0..100).map(|i| probe(i, (i % 40 != 7 || i / 40 >= lost).then(|| quiet(i)), None)).collect()
    };
    assert_eq!(classify(&with_lost(1), &[]).label, TailLabel::Clean);
    let two = classify(&with_lost(2), &[]);
    assert_eq!(
        (two.label, two.lost, two.retransmits, two.affected.lost),
        (TailLabel::LossRetransmit, 2, 0, 2)
    );
}

#[test]
fn degenerate_input_gets_an_answer() {
    assert_eq!(classify(&[], &[]).label, TailLabel::Insufficient);
    let lost: Vec<Probe> = (0..100).map(|i| probe(i, None, None)).collect();
    assert_eq!(classify(&lost, &[]).label, TailLabel::LossRetransmit);
    let constant: Vec<Probe> = (0..100).map(|i| probe(i, Some(5.0), None)).collect();
    assert_eq!(classify(&constant, &[5.0; 30]).label, TailLabel::Clean);
    let strange: Vec<Probe> = (0..100)
        .map(|i| probe(i, Some([f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 7.0][i as usize % 6]), None))
        .collect();
    assert_eq!(classify(&strange, &[f64::NAN, -3.0]).lost, 51);
}
