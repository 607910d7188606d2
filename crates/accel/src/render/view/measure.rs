//! A run of `accel measure` as a view: a track for each phase, target and kind of probe.

use super::{Goodput, Tail, Track, View, named_values, points, tail};
use crate::measurement::{self, Measurement, PhaseRecord, ProbeKind, Row};
use crate::render::text::measure as words;
use crate::run::Phase;

impl<'a> From<&'a Measurement> for View<'a> {
    fn from(run: &'a Measurement) -> Self {
        let rows = run.phases.iter().flat_map(|phase| phase.rows.iter().map(move |row| (phase, row)));
        Self {
            command: &run.command,
            started_unix_ms: run.started_unix_ms,
            duration_s: run.duration_s,
            heading: words::heading(run),
            warnings: &run.warnings,
            conclusion: words::conclusion(run),
            instrument: words::instrument(run),
            notes: words::notes(run),
            tracks: rows.map(|(phase, row)| track(run, phase, row)).collect(),
            verdict: None,
            differences: Vec::new(),
            facts: named_values(&[
                serde_json::to_value(&run.settings),
                serde_json::to_value(&run.versions),
                serde_json::to_value(&run.machine),
            ]),
            contrast: "",
        }
    }
}

fn track<'a>(run: &Measurement, phase: &'a PhaseRecord, row: &'a Row) -> Track<'a> {
    let latency = &row.latency_ms;
    Track {
        group: format!("{}, {}", row.target, row.kind),
        phase: phase.phase,
        labels: vec![("target", row.target.clone()), ("probe", identifier(row.kind).to_owned())],
        started_ms: phase.started_ms,
        ramp_ms: if phase.phase == Phase::Idle { 0.0 } else { run.settings.ramp_ms },
        measured_ms: phase.measured_ms,
        percentiles: vec![
            ("p50", &latency.p50),
            ("p90", &latency.p90),
            ("p95", &latency.p95),
            ("p99", &latency.p99),
        ],
        n: latency.n,
        loss: &row.loss,
        up: phase.up.map(goodput),
        down: phase.down.map(goodput),
        bulk_retransmit_pct: phase.bulk_retransmit_pct,
        tail: Tail {
            label: row.tail.label.clone(),
            why: row.tail.why.clone(),
            gap: tail(&row.samples, &idle(run, phase, row)).gap,
        },
        instrument: &phase.instrument,
        samples: &row.samples,
    }
}

/// As in the run document.
const fn identifier(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Handshake => "handshake",
        ProbeKind::Echo => "echo",
        ProbeKind::EchoTwoWrites => "echo_two_writes",
        ProbeKind::DatagramSmall => "datagram_small",
        ProbeKind::DatagramFull => "datagram_full",
    }
}

fn goodput(rate: measurement::Goodput) -> Goodput {
    Goodput { mbps: rate.mbps, limits: rate.lo_mbps.zip(rate.hi_mbps) }
}

/// Round trips of the idle phase of the same target and probe; empty for that phase itself.
fn idle(run: &Measurement, phase: &PhaseRecord, row: &Row) -> Vec<f64> {
    let idle = run.phases.iter().filter(|idle| idle.phase == Phase::Idle && phase.phase != Phase::Idle);
    let rows = idle.flat_map(|idle| &idle.rows).filter(|r| r.target == row.target && r.kind == row.kind);
    rows.flat_map(|row| points(&row.samples)).filter_map(|point| point.rtt_ms).collect()
}
