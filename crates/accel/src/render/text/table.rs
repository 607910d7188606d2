//! The table: a row per phase and arm.

use super::cell::{goodput, goodput_stacked, loss_interval, percent, percentile_interval, percentile_value};
use super::notes::{NOT_OURS, NOT_OURS_MARK, queue_is_not_ours};
use crate::run::{Latency, PercentileRecord, PhaseRecord, Run};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// Each interval beside its value where that fits into `width`, else under it.
pub(super) fn table(run: &Run, width: usize) -> String {
    let quick = run.settings.quick;
    let wide = lay_out(wide_header(quick), run.phases.iter().map(|p| wide_row(p, quick)), 2);
    if wide.lines().all(|line| line.chars().count() <= width) {
        return wide;
    }
    lay_out(narrow_header(quick), run.phases.iter().map(|p| narrow_row(p, quick)), 1)
}

fn lay_out(header: Vec<Cell>, rows: impl Iterator<Item = Vec<Cell>>, gap: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
    }
    table.trim_fmt()
}

/// The percentiles shown: a quick run is too short for a p99.
fn shown(latency: &Latency, quick: bool) -> Vec<&PercentileRecord> {
    let all = [&latency.p50, &latency.p95, &latency.p99];
    all[..if quick { 2 } else { 3 }].to_vec()
}

fn percentile_names(quick: bool) -> &'static [&'static str] {
    &["p50", "p95", "p99"][..if quick { 2 } else { 3 }]
}

fn narrow_header(quick: bool) -> Vec<Cell> {
    let mut header = vec![Cell::new("phase\nshaper"), right("n")];
    header.extend(percentile_names(quick).iter().map(|p| right(&format!("{p} ms\n95 % CI"))));
    header.extend([right("goodput\nMbit/s"), right("probes\nlost, %")]);
    header
}

fn narrow_row(phase: &PhaseRecord, quick: bool) -> Vec<Cell> {
    let mark = if queue_is_not_ours(phase) { NOT_OURS_MARK } else { "" };
    let mut row = vec![
        Cell::new(format!("{}\n  {}{mark}", phase.phase, phase.arm)),
        right(&phase.latency_ms.n.to_string()),
    ];
    row.extend(
        shown(&phase.latency_ms, quick)
            .iter()
            .map(|p| right(&format!("{}\n{}", percentile_value(p), percentile_interval(p)))),
    );
    let interval = loss_interval(&phase.probe_loss).replace(" limit", "\nlimit");
    let loss = format!("{}\n{interval}", percent(phase.probe_loss_pct).trim_end_matches(" %"));
    row.extend([right(&goodput_stacked(phase)), right(&loss)]);
    row
}

fn wide_header(quick: bool) -> Vec<Cell> {
    let mut header = vec![Cell::new("phase"), Cell::new("shaper"), right("n")];
    header.extend(percentile_names(quick).iter().map(|p| right(&format!("{p} ms (95 % CI)"))));
    header.extend([right("up / down Mbit/s"), right("probe loss (95 % CI)"), right("bulk resent")]);
    header.push(Cell::new(""));
    header
}

fn wide_row(phase: &PhaseRecord, quick: bool) -> Vec<Cell> {
    let mut row = vec![Cell::new(phase.phase), Cell::new(phase.arm), right(&phase.latency_ms.n.to_string())];
    row.extend(
        shown(&phase.latency_ms, quick)
            .iter()
            .map(|p| right(&format!("{} ({})", percentile_value(p), percentile_interval(p)))),
    );
    let loss = format!("{} ({})", percent(phase.probe_loss_pct), loss_interval(&phase.probe_loss));
    row.extend([
        right(&format!("{} / {}", goodput(phase.up_mbps), goodput(phase.down_mbps))),
        right(&loss),
        right(&percent(phase.bulk_retransmit_pct)),
        Cell::new(if queue_is_not_ours(phase) { NOT_OURS } else { "" }),
    ]);
    row
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
