//! The tables, for 80 columns.

use super::super::cell::{loss_interval, percentile_interval, percentile_value};
use crate::measurement::{Bounded, Measurement, Percentiles, PhaseRecord, Row};
use crate::run::{LossRecord, PercentileRecord};
use crate::statement::ms_text;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// Longest name of a target in a table; the heading has it whole.
const NAME_COLUMNS: usize = 16;

/// Latency and loss of one phase, a row per target and probe.
pub(super) fn latency(phase: &PhaseRecord) -> String {
    let header = [
        "target\n  probe",
        "n",
        "p50 ms\n95 % CI",
        "p90 ms\n95 % CI",
        "p95 ms\n95 % CI",
        "p99 ms\n95 % CI",
        "lost %\n95 % CI",
    ];
    let rows = phase.rows.iter().map(|row| {
        let l = &row.latency_ms;
        let mut cells = vec![format!("{}\n  {}", name(&row.target), row.kind), l.n.to_string()];
        cells.extend([&l.p50, &l.p90, &l.p95, &l.p99].map(stacked));
        cells.push(loss(&row.loss));
        cells
    });
    lay_out(&header, &[0], rows)
}

/// Jitter and the cause of the tail, for all phases.
pub(super) fn variation(run: &Measurement) -> String {
    let header = [
        "phase\n  probe",
        "target",
        "p95 - p50\nms, 90 % CI",
        "successive\nms, 95 % CI",
        "every\nms",
        "tail",
    ];
    let rows = rows(run).map(|(phase, row)| {
        vec![
            format!("{}\n  {}", phase.phase, row.kind),
            name(&row.target),
            bounded(row.jitter.pdv_ms),
            bounded(row.jitter.successive_ms),
            format!("{}", row.jitter.probe_period_ms),
            row.tail.label.clone(),
        ]
    });
    lay_out(&header, &[0, 1, 5], rows)
}

/// Datagrams by direction; `None` where there were none.
pub(super) fn ways(run: &Measurement) -> Option<String> {
    let header =
        ["phase", "way", "IP\nbytes", "lost %\n95 % CI", "delay p50\nms", "delay p90\nms", "delay p99\nms"];
    let mut cells = Vec::new();
    for (phase, row) in rows(run) {
        let Some(ways) = &row.ways else { continue };
        for (name, way) in [("up", &ways.up), ("down", &ways.down)] {
            let mut line = vec![phase.phase.to_string(), name.to_owned(), ways.ip_bytes.to_string()];
            line.push(loss(&way.loss));
            let above = &way.above_smallest_ms;
            line.extend([&above.p50, &above.p90, &above.p99].map(stacked));
            cells.push(line);
        }
    }
    let table = (!cells.is_empty()).then(|| lay_out(&header, &[0, 1], cells.into_iter()))?;
    Some(format!("{table}\ndelay: above the smallest of the phase, since the two clocks do not agree"))
}

/// Name resolution by phase; `None` where it was not asked for.
pub(super) fn names(run: &Measurement) -> Option<String> {
    let header =
        ["phase", "name", "n", "p50 ms\n95 % CI", "p90 ms\n95 % CI", "p95 ms\n95 % CI", "failed", "missed"];
    let rows: Vec<Vec<String>> = run
        .phases
        .iter()
        .flat_map(|phase| phase.names.iter().map(move |row| (phase, row)))
        .map(|(phase, row)| {
            let Percentiles { p50, p90, p95, n, .. } = &row.latency_ms;
            let mut cells = vec![phase.phase.to_string(), name(&row.name), n.to_string()];
            cells.extend([p50, p90, p95].map(stacked));
            cells.extend([row.failed.to_string(), row.missed.to_string()]);
            cells
        })
        .collect();
    (!rows.is_empty()).then(|| lay_out(&header, &[0, 1], rows.into_iter()))
}

fn rows(run: &Measurement) -> impl Iterator<Item = (&PhaseRecord, &Row)> {
    run.phases.iter().flat_map(|phase| phase.rows.iter().map(move |row| (phase, row)))
}

/// The columns numbered in `left` hold text, the others numbers.
fn lay_out(header: &[&str], left: &[usize], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    let cell = |(column, text): (usize, String)| {
        let alignment = if left.contains(&column) { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(alignment)
    };
    table.set_header(header.iter().map(|text| (*text).to_owned()).enumerate().map(cell));
    table.add_rows(rows.map(|row| row.into_iter().enumerate().map(cell).collect::<Vec<_>>()));
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.trim_fmt()
}

fn name(name: &str) -> String {
    if name.chars().count() <= NAME_COLUMNS {
        return name.to_owned();
    }
    name.chars().take(NAME_COLUMNS - 1).chain(['…']).collect()
}

fn stacked(percentile: &PercentileRecord) -> String {
    format!("{}\n{}", percentile_value(percentile), percentile_interval(percentile))
}

fn loss(loss: &LossRecord) -> String {
    let value = loss.value_pct.map_or("-".to_owned(), |pct| format!("{pct:.2}"));
    format!("{value}\n{}", loss_interval(loss).replace(" limit", "\nlimit"))
}

fn bounded(figure: Bounded) -> String {
    let value = figure.value.map_or("-".to_owned(), ms_text);
    let interval = match (figure.lo, figure.hi) {
        (Some(lo), Some(hi)) => format!("{}–{}", ms_text(lo), ms_text(hi)),
        (Some(lo), None) => format!("≥ {}", ms_text(lo)),
        (None, _) => "no limits".to_owned(),
    };
    format!("{value}\n{interval}")
}
