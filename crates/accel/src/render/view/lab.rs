//! A run of `accel lab` as a view.

use super::{Difference, Fate, Goodput, Track, View, named_values, points, tail};
use crate::render::text;
use crate::run::{Arm, Phase, PhaseRecord, Run};
use crate::verdict::Comparison;

impl<'a> From<&'a Run> for View<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            command: &run.command,
            started_unix_ms: run.started_unix_ms,
            duration_s: run.duration_s,
            heading: text::heading(run),
            warnings: &run.warnings,
            conclusion: text::conclusion(run),
            instrument: text::instrument(run),
            notes: text::notes(run),
            tracks: run.phases.iter().map(|phase| track(run, phase)).collect(),
            verdict: run.verdict.as_ref(),
            differences: differences(run),
            facts: facts(run),
            contrast: "shaper on minus shaper off",
        }
    }
}

fn track<'a>(run: &Run, record: &'a PhaseRecord) -> Track<'a> {
    let goodput = |mbps: Option<f64>| mbps.map(|mbps| Goodput { mbps, limits: None });
    let latency = &record.latency_ms;
    Track {
        group: format!("shaper {}", record.arm),
        phase: record.phase,
        labels: vec![("arm", record.arm.to_string())],
        started_ms: record.started_ms,
        ramp_ms: if record.phase == Phase::Idle { 0.0 } else { run.settings.ramp_ms },
        measured_ms: record.measured_ms,
        percentiles: vec![("p50", &latency.p50), ("p95", &latency.p95), ("p99", &latency.p99)],
        n: latency.n,
        loss: &record.probe_loss,
        up: goodput(record.up_mbps),
        down: goodput(record.down_mbps),
        bulk_retransmit_pct: record.bulk_retransmit_pct,
        tail: tail(&record.samples, &idle(run, record)),
        instrument: &record.instrument,
        samples: &record.samples,
    }
}

/// Round trips of the idle phase of the same arm; empty for that phase itself.
fn idle(run: &Run, record: &PhaseRecord) -> Vec<f64> {
    let idle = run.phase(record.arm, Phase::Idle).filter(|_| record.phase != Phase::Idle);
    idle.map(|idle| {
        points(&idle.samples).filter(|point| point.fate != Fate::Lost).filter_map(|p| p.rtt_ms).collect()
    })
    .unwrap_or_default()
}

fn differences(run: &Run) -> Vec<Difference<'_>> {
    let comparisons = run.verdict.iter().flat_map(|verdict| &verdict.comparisons);
    comparisons.map(|comparison| difference(run, comparison)).collect()
}

/// The differences that the two intervals allow together. Whether this range holds zero is what the verdict asks.
fn difference<'a>(run: &Run, comparison: &'a Comparison) -> Difference<'a> {
    let limits = |arm: Arm| {
        let latency = &run.phase(arm, comparison.phase)?.latency_ms;
        let percentile = match comparison.percentile.as_str() {
            "p50" => &latency.p50,
            "p95" => &latency.p95,
            _ => &latency.p99,
        };
        Some((percentile.lo, percentile.hi))
    };
    let (off_lo, off_hi) = limits(Arm::Off).unwrap_or_default();
    let (on_lo, on_hi) = limits(Arm::On).unwrap_or_default();
    let minus = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
    Difference { comparison, lo_ms: minus(on_lo, off_hi), hi_ms: minus(on_hi, off_lo) }
}

fn facts(run: &Run) -> Vec<(String, String)> {
    let mut facts = named_values(&[
        serde_json::to_value(&run.settings),
        serde_json::to_value(&run.versions),
        serde_json::to_value(&run.machine),
    ]);
    facts.extend(run.shaper.iter().map(|shaper| ("shaper said".to_owned(), shaper.ready.clone())));
    facts
}
