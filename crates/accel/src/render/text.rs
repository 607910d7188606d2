//! The run document for people: one table, one verdict, what it cost, and the instrument's own error.

mod cell;
pub mod measure;
mod notes;
mod table;
mod wrap;

use crate::run::{Arm, Phase, PhaseRecord, Run};
use crate::statement::mbps_text;
use crate::verdict::{Outcome, Verdict};
pub(super) use cell::{loss_interval, percent};
pub(crate) use cell::{percentile_interval, percentile_value};
use console::Style as Paint;
pub(super) use notes::notes;
use wrap::wrap;

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; at least 80 are used.
    pub width: usize,
    /// Whether escape sequences for colours are understood and wanted.
    pub colour: bool,
}

/// The whole report of a lab run.
pub fn render(run: &Run, style: Style) -> String {
    let width = style.width.max(80);
    let mut parts = vec![wrap(&heading(run), width), table::table(run, width)];
    parts.push(notes(run).iter().map(|note| wrap(note, width)).collect::<Vec<_>>().join("\n"));
    let mut conclusion: Vec<String> = conclusion(run).iter().map(|text| wrap(text, width)).collect();
    if let (Some(verdict), Some(first)) = (&run.verdict, conclusion.first_mut()) {
        *first = paint(verdict, style.colour).apply_to(&*first).to_string();
    }
    conclusion.push(wrap(&instrument(run), width));
    conclusion.extend(run.warnings.iter().map(|warning| wrap(&format!("Warning: {warning}"), width)));
    parts.push(conclusion.join("\n"));
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// The verdict, then what it cost.
pub(super) fn conclusion(run: &Run) -> Vec<String> {
    match &run.verdict {
        Some(verdict) => vec![headline(verdict), cost(run, verdict)],
        None => vec!["Verdict: none, since only one arm was measured.".to_owned()],
    }
}

/// What was measured, in one paragraph.
pub(super) fn heading(run: &Run) -> String {
    let s = &run.settings;
    format!(
        "Emulated line: {} Mbit/s up, {} Mbit/s down, base RTT {} ms, each way a FIFO of {} ms, loss {} %, jitter {} ms. \
         Load: {} {} flows per direction. Probe: a TCP handshake every {} ms on average ({} % of the line), timed by \
         the kernel.",
        s.up_mbps,
        s.down_mbps,
        s.rtt_ms,
        s.buffer_ms,
        s.loss_pct,
        s.jitter_ms,
        s.flows,
        s.congestion_control,
        s.probe_period_ms,
        s.probe_load_pct
    )
}

fn paint(verdict: &Verdict, colour: bool) -> Paint {
    let upload = verdict.comparisons.iter().find(|c| c.phase == Phase::Upload && c.percentile == "p95");
    let paint = Paint::new().bold().force_styling(colour);
    match upload.map(|c| c.outcome) {
        Some(Outcome::Lower) => paint.green(),
        Some(Outcome::Higher) => paint.red(),
        _ => paint.yellow(),
    }
}

fn headline(verdict: &Verdict) -> String {
    format!(
        "Verdict: {} (One run of each arm: the emulated line does not drift, so here they may be compared.)",
        verdict.sentence
    )
}

fn cost(run: &Run, verdict: &Verdict) -> String {
    let goodput = |phase: Phase, pick: fn(&PhaseRecord) -> Option<f64>| {
        let at = |arm| run.phase(arm, phase).and_then(pick).map_or("?".to_owned(), mbps_text);
        format!("{} to {} Mbit/s", at(Arm::Off), at(Arm::On))
    };
    let cost = &verdict.cost;
    let idle = cost.idle_added_ms.map_or("not measured".to_owned(), |ms| format!("{ms:+.2} ms"));
    format!(
        "Cost, shaper off to on: upload {} ({}); download {} ({}); bidirectional, up {} and down {}; idle p50 {idle} \
         ({}).",
        goodput(Phase::Upload, |p| p.up_mbps),
        change(cost.up_goodput_lost_pct),
        goodput(Phase::Download, |p| p.down_mbps),
        change(cost.down_goodput_lost_pct),
        goodput(Phase::Bidirectional, |p| p.up_mbps),
        goodput(Phase::Bidirectional, |p| p.down_mbps),
        idle_words(cost.idle_outcome),
    )
}

/// A loss of 5 % is a change of -5.0 %.
fn change(lost_pct: Option<f64>) -> String {
    // Adding zero turns a rounded -0.0 into 0.0.
    let tenths = |lost: f64| (-lost * 10.0).round() / 10.0 + 0.0;
    lost_pct.map_or("unknown".to_owned(), |lost| format!("{:+.1} %", tenths(lost)))
}

const fn idle_words(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Lower) => "lower",
        Some(Outcome::Higher) => "higher",
        Some(Outcome::NoDifferenceShown) => "no difference shown",
        Some(Outcome::TooFewSamples) => "too few independent samples to compare",
        Some(Outcome::NotCredible) => "within the instrument's own error",
        None => "not compared",
    }
}

/// The worst phase's figures: a run is as good as its worst phase.
pub(super) fn instrument(run: &Run) -> String {
    let worst = |figure: fn(&PhaseRecord) -> f64| run.phases.iter().map(figure).fold(0.0, f64::max);
    let sum = |figure: fn(&PhaseRecord) -> u64| run.phases.iter().map(figure).sum::<u64>();
    let scheduler = run.phases.first().map_or("unknown", |p| p.instrument.scheduler.as_str());
    let n: usize = run.phases.iter().map(|p| p.samples.t_ms.len()).sum();
    format!(
        "Instrument, p99 of the worst phase, {n} probes in all: started {:.2} ms late, program's clock {:.2} ms above \
         the kernel's, line's delivery {:.2} ms late; largest loop gap {:.2} ms; {} probes missed; scheduling {scheduler}.",
        worst(|p| p.instrument.start_lateness_ms.p99),
        worst(|p| p.instrument.user_minus_kernel_ms.map_or(0.0, |s| s.p99)),
        worst(|p| p.line.relay_lateness_ms.p99),
        worst(|p| p.instrument.largest_loop_gap_ms),
        sum(|p| p.instrument.missed),
    )
}
