//! Numbers as they stand in the table.

use crate::run::{LossRecord, PercentileRecord, PhaseRecord};
use crate::statement::{mbps_text, ms_text as ms};

/// The value, with `~` when its interval is rough.
pub(crate) fn percentile_value(p: &PercentileRecord) -> String {
    let mark = if p.grade == "rough" { "~" } else { "" };
    p.value.map_or("-".to_owned(), |value| format!("{mark}{}", ms(value)))
}

/// `20.04–20.06`, `>= 229.2` without an upper limit, `no limits` without any.
pub(crate) fn percentile_interval(p: &PercentileRecord) -> String {
    match (p.lo, p.hi) {
        (Some(lo), Some(hi)) => format!("{}–{}", ms(lo), ms(hi)),
        (Some(lo), None) => format!("≥ {}", ms(lo)),
        (None, Some(hi)) => format!("≤ {}", ms(hi)),
        (None, None) => "no limits".to_owned(),
    }
}

/// `0.14 %`, `-` when there was nothing to lose.
pub(in crate::render) fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |pct| format!("{pct:.2} %"))
}

/// `0.0–1.3` in percent, or `no upper limit` where so short a run cannot give one.
pub(in crate::render) fn loss_interval(loss: &LossRecord) -> String {
    match (loss.lo_pct, loss.hi_pct) {
        (Some(lo), Some(hi)) => format!("{lo:.1}–{hi:.1}"),
        _ => "no upper limit".to_owned(),
    }
}

/// Goodput one way, `-` when nothing was sent.
pub(super) fn goodput(mbps: Option<f64>) -> String {
    mbps.map_or("-".to_owned(), mbps_text)
}

/// Both ways on two lines; nothing for an idle phase.
pub(super) fn goodput_stacked(phase: &PhaseRecord) -> String {
    let line = |name: &str, mbps: Option<f64>| mbps.map(|mbps| format!("{name} {}", mbps_text(mbps)));
    let lines: Vec<String> =
        [line("up", phase.up_mbps), line("down", phase.down_mbps)].into_iter().flatten().collect();
    if lines.is_empty() { "-".to_owned() } else { lines.join("\n") }
}
