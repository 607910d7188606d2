//! A measurement for people: a table per phase, the variation, the grade, and the instrument's own error.

mod grade;
mod table;

use super::Style;
use super::wrap::wrap;
use crate::measurement::{Goodput, LoadSetting, Measurement, PhaseRecord, ProbeKind, Row};
use crate::statement::ms_text;

/// The whole report.
pub fn render(run: &Measurement, style: Style) -> String {
    let width = style.width.max(80);
    let mut parts = vec![wrap(&heading(run), width)];
    for phase in &run.phases {
        parts.push(format!("{}\n{}", wrap(&phase_line(phase), width), table::latency(phase)));
    }
    parts.push(format!("Variation and tail\n{}", table::variation(run)));
    parts.extend(table::ways(run).map(|table| format!("Datagrams, each way by itself\n{table}")));
    parts.extend(table::names(run).map(|table| format!("Name resolution (getaddrinfo)\n{table}")));
    parts.push(lines(&notes(run), width));
    parts.push(lines(&grade::sentences(run), width));
    let mut rest = vec![instrument(run)];
    rest.extend(run.warnings.iter().map(|warning| format!("Warning: {warning}")));
    parts.push(lines(&rest, width));
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// The grade, how sure it is, and other scales, as paragraphs.
pub(in crate::render) fn conclusion(run: &Measurement) -> Vec<String> {
    grade::sentences(run)
}

fn lines(sentences: &[String], width: usize) -> String {
    sentences.iter().map(|sentence| wrap(sentence, width)).collect::<Vec<_>>().join("\n")
}

pub(in crate::render) fn heading(run: &Measurement) -> String {
    let s = &run.settings;
    let others = |n: usize| if n == 0 { String::new() } else { format!(", {n} other addresses") };
    let targets: Vec<String> = s
        .targets
        .iter()
        .map(|t| {
            let address = if t.name == t.address { String::new() } else { format!(" = {}", t.address) };
            format!("{}{address} ({}{})", t.name, family(&t.address), others(t.others))
        })
        .collect();
    let load = s.load.as_ref().map_or(String::new(), |load| {
        let LoadSetting { server, flows, congestion_control, .. } = load;
        format!(" Load: {flows} {congestion_control} flows per direction with {server}, first {} ms not measured.", s.ramp_ms)
    });
    format!(
        "Targets, pinned: {}. Probe: a TCP handshake every {} ms on average (foreign targets: 100 ms at least), timed by the \
         kernel; all probes take {} kbit/s each way.{load}",
        targets.join("; "),
        s.probe_period_ms,
        s.probe_load_kbps.round()
    )
}

fn family(address: &str) -> &'static str {
    if address.starts_with('[') { "IPv6" } else { "IPv4" }
}

fn phase_line(phase: &PhaseRecord) -> String {
    let mut line = format!("{}, {:.1} s", phase.phase, phase.measured_ms / 1e3);
    for (name, rate) in [("down", &phase.down), ("up", &phase.up)] {
        line.extend(rate.as_ref().map(|rate| format!("; {name} {}", goodput(rate))));
    }
    line.extend(phase.bulk_retransmit_pct.map(|pct| format!("; bulk segments sent again {pct:.2} %")));
    line.extend((phase.data_mb > 0.0).then(|| format!("; {:.1} MB moved", phase.data_mb)));
    line.extend(phase.cut_short.as_ref().map(|why| format!("; cut short: {why}")));
    line
}

fn goodput(rate: &Goodput) -> String {
    let interval = match (rate.lo_mbps, rate.hi_mbps) {
        (Some(lo), Some(hi)) => format!("95 % CI {lo:.1}–{hi:.1}"),
        _ => "too short for limits".to_owned(),
    };
    format!("{:.1} Mbit/s ({interval})", rate.mbps)
}

/// Rows with handshakes, which every phase has.
fn handshakes(run: &Measurement) -> impl Iterator<Item = (&PhaseRecord, &Row)> {
    run.phases
        .iter()
        .flat_map(|phase| phase.rows.iter().map(move |row| (phase, row)))
        .filter(|(_, row)| row.kind == ProbeKind::Handshake)
}

/// What the marks in the tables mean, as far as they occur.
pub(in crate::render) fn notes(run: &Measurement) -> Vec<String> {
    let rows = || run.phases.iter().flat_map(|phase| &phase.rows);
    let mut notes = Vec::new();
    let percentiles = |row: &Row| {
        let l = &row.latency_ms;
        [&l.p50, &l.p90, &l.p95, &l.p99].map(Clone::clone)
    };
    if rows().flat_map(percentiles).any(|p| p.grade == "rough") {
        notes.push("~ rough: fewer than ten independent samples lie beyond this percentile".to_owned());
    }
    notes.extend(too_few(run));
    let failure = run.phases.iter().flat_map(|phase| &phase.names).find_map(|names| names.failure.as_ref());
    notes.extend(failure.map(|why| format!("names: the first lookup without an answer said \"{why}\"")));
    if rows().any(|row| row.kind != ProbeKind::Handshake) {
        notes.push(
            "echo and UDP are timed by the program (the arrival of a datagram by the kernel), without the time that the far \
             end took for a datagram"
                .to_owned(),
        );
    }
    if rows().any(|row| row.loss.lost > 0) {
        notes.push(
            "what was lost or sent again counts as lost and not in the percentiles; n is without it"
                .to_owned(),
        );
    }
    notes
}

/// How long the run should have been for the p99 that has least.
fn too_few(run: &Measurement) -> Option<String> {
    const NEEDED: f64 = 368.0;
    let (phase, row) = handshakes(run)
        .filter(|(_, row)| row.latency_ms.n > 0 && row.latency_ms.p99.hi.is_none())
        .min_by(|(_, a), (_, b)| a.latency_ms.p99.n_eff.total_cmp(&b.latency_ms.p99.n_eff))?;
    let n_eff = row.latency_ms.p99.n_eff.max(1.0);
    let seconds = phase.measured_ms / 1e3 * NEEDED / n_eff;
    Some(format!(
        "≥: too few samples for an upper limit of that p99 (needs {NEEDED:.0} independent ones; the least is {n_eff:.0} of {}, \
         {} to {}: about --seconds {seconds:.0})",
        row.latency_ms.n, phase.phase, row.target
    ))
}

/// The worst phase's figures: a run is as good as its worst phase.
pub(in crate::render) fn instrument(run: &Measurement) -> String {
    let worst = |figure: fn(&PhaseRecord) -> f64| run.phases.iter().map(figure).fold(0.0, f64::max);
    let sum = |figure: fn(&PhaseRecord) -> u64| run.phases.iter().map(figure).sum::<u64>();
    let scheduler = run.phases.first().map_or("unknown", |p| p.instrument.scheduler.as_str());
    let echo = |p: &PhaseRecord| p.echo_instrument.map_or(0.0, |e| e.start_lateness_ms.p99);
    let echoes = if run.phases.iter().any(|p| p.echo_instrument.is_some()) {
        format!(" (echo and UDP {} ms)", ms_text(run.phases.iter().map(echo).fold(0.0, f64::max)))
    } else {
        String::new()
    };
    format!(
        "Instrument, p99 of the worst phase: probes started {} ms late{echoes}, program's clock {} ms above the kernel's, loopback \
         control {} ms; largest loop gap {} ms; {} probes missed, {} late; scheduling {scheduler}; clock {} with {} ns.",
        ms_text(worst(|p| p.instrument.start_lateness_ms.p99)),
        ms_text(worst(|p| p.instrument.user_minus_kernel_ms.map_or(0.0, |s| s.p99))),
        ms_text(worst(|p| p.instrument.control_ms.map_or(0.0, |s| s.p99))),
        ms_text(worst(|p| p.instrument.largest_loop_gap_ms)),
        sum(|p| p.instrument.missed),
        sum(|p| p.instrument.late),
        run.machine.clock,
        run.machine.clock_resolution_ns,
    )
}
