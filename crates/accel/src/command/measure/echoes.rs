//! From what the echoes showed to rows of the run document.

use super::bench::PROBE_JITTER;
use super::plan::{PROBE_TIMEOUT, Plan};
use crate::command::lab::records::spread;
use crate::echo::{DatagramSeries, EchoPlan, EchoResult, Fate, StreamSeries};
use crate::measurement::{EchoInstrument, ProbeKind, Row, Ways, row, way};
use crate::probe::{Spread, Window};
use crate::run::{Phase, SampleColumns};
use crate::statement::round;
use std::time::Duration;
use units::{Timestamp, as_ms};

/// The schedule of the echoes in one phase.
pub(super) fn echo_plan(plan: &Plan, phase: Phase, window: Window) -> EchoPlan {
    EchoPlan {
        window,
        period: plan.period,
        jitter: PROBE_JITTER,
        timeout: PROBE_TIMEOUT,
        seed: plan.seed.wrapping_mul(16).wrapping_add(phase as u64),
    }
}

/// How well the echoes' own thread did.
pub(super) fn instrument(result: &EchoResult) -> EchoInstrument {
    let lateness = Spread::of(result.lateness.clone());
    EchoInstrument {
        start_lateness_ms: lateness.map(spread).unwrap_or_default(),
        missed: result.missed as u64,
    }
}

/// IP bytes a second that the echoes put on each way: a frame of 64 bytes and its acknowledgement (52 bytes of headers
/// each), the same in two segments, datagrams of both sizes.
pub(super) fn bytes_per_s(plan: &EchoPlan) -> f64 {
    let rate = |bytes: f64, period: Duration| bytes / period.as_secs_f64();
    rate(168.0, plan.frame_period())
        + rate(220.0, plan.two_writes_period())
        + rate(92.0, plan.period)
        + rate(1_428.0, plan.full_period())
}

/// The rows of all four echoes with the server called `target`; `idle` gives the answers of each kind without load.
pub(super) fn rows<'a>(
    target: &str,
    plan: &EchoPlan,
    result: EchoResult,
    idle: impl Fn(ProbeKind) -> &'a [f64],
) -> Vec<Row> {
    let start = plan.window.start;
    let stream = |kind, series: StreamSeries, period| {
        let samples = columns(start, &series.scheduled, &series.round_trips);
        row(target, kind, samples, period, idle(kind))
    };
    let datagrams = |kind, series: DatagramSeries, period| {
        let samples = columns(start, &series.scheduled, &series.round_trips);
        Row { ways: Some(ways(&series)), ..row(target, kind, samples, period, idle(kind)) }
    };
    vec![
        stream(ProbeKind::Echo, result.frames, plan.frame_period()),
        stream(ProbeKind::EchoTwoWrites, result.two_writes, plan.two_writes_period()),
        datagrams(ProbeKind::DatagramSmall, result.small, plan.period),
        datagrams(ProbeKind::DatagramFull, result.full, plan.full_period()),
    ]
}

fn columns(start: Timestamp, scheduled: &[Timestamp], round_trips: &[Option<Duration>]) -> SampleColumns {
    SampleColumns {
        t_ms: scheduled.iter().map(|at| round(as_ms(at.saturating_since(start)))).collect(),
        kernel_ms: vec![None; scheduled.len()],
        user_ms: round_trips.iter().map(|took| took.map(|took| round(as_ms(took)))).collect(),
        retransmits: vec![0; scheduled.len()],
    }
}

fn ways(series: &DatagramSeries) -> Ways {
    let known = |lost: Fate, among: fn(Fate) -> bool| -> Vec<bool> {
        series.fates.iter().filter(|&&fate| among(fate)).map(|&fate| fate == lost).collect()
    };
    let up = known(Fate::LostUp, |fate| fate != Fate::Unknown);
    let down = known(Fate::LostDown, |fate| matches!(fate, Fate::Answered | Fate::LostDown));
    let ms = |delays: &[Option<i128>]| -> Vec<Option<f64>> {
        // The clocks of two machines may lie years apart: subtracted as whole numbers, before any rounding.
        let smallest = delays.iter().copied().flatten().min().unwrap_or(0);
        delays.iter().map(|delay| delay.map(|ns| (ns - smallest) as f64 / 1e6)).collect()
    };
    Ways {
        ip_bytes: series.ip_bytes,
        up: way(&up, ms(&series.up_ns)),
        down: way(&down, ms(&series.down_ns)),
        unknown: series.fates.iter().filter(|&&fate| fate == Fate::Unknown).count(),
    }
}
