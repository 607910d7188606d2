//! The figures as tables with headers that a screen reader can follow.

use crate::render::text::{loss_interval, percent, percentile_interval, percentile_value};
use crate::render::view::{Goodput, Track, View};
use crate::run::Spread;
use crate::verdict::Outcome;
use maud::{Markup, html};

/// A box that scrolls by itself on a narrow screen and can be reached by keyboard.
fn scrolling(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A row per track.
pub(super) fn results(view: &View<'_>) -> Markup {
    let Some(first) = view.tracks.first() else { return html! { p { "No phase was measured." } } };
    let table = html! { table {
        caption { span { "Latency in milliseconds with 95 % intervals; n is the number of probes answered at the first attempt." } }
        thead { tr {
            th scope="col" { "phase" }
            th scope="col" { (group_header(first)) }
            th.number scope="col" { "n" }
            @for (name, _) in &first.percentiles { th.number scope="col" { (name) ", ms" } }
            th.number scope="col" { "goodput up, Mbit/s" }
            th.number scope="col" { "goodput down, Mbit/s" }
            th.number scope="col" { "probes lost, %" }
            th.number scope="col" { "bulk sent again, %" }
            th scope="col" { "tail" }
        } }
        tbody { @for track in &view.tracks { (row(track)) } }
    } };
    html! {
        (scrolling("Results", &table))
        @if !view.notes.is_empty() { ul.notes { @for note in &view.notes { li { (note) } } } }
    }
}

fn group_header(track: &Track<'_>) -> String {
    track.labels.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn row(track: &Track<'_>) -> Markup {
    html! { tr {
        th scope="row" { (track.phase) }
        td { (track.group) }
        td.number { (track.n) }
        @for (_, p) in &track.percentiles {
            td.number { b { (percentile_value(p)) } br; small { (percentile_interval(p)) } }
        }
        td.number { (goodput(track.up)) }
        td.number { (goodput(track.down)) }
        td.number { b { (percent(track.loss.value_pct).trim_end_matches(" %")) } br; small { (loss_interval(track.loss)) } }
        td.number { (percent(track.bulk_retransmit_pct).trim_end_matches(" %")) }
        td { (track.tail.label.replace('_', " ")) }
    } }
}

fn goodput(rate: Option<Goodput>) -> Markup {
    let Some(Goodput { mbps, limits }) = rate else { return html! { "-" } };
    html! { b { (format!("{mbps:.2}")) } @if let Some((lo, hi)) = limits { br; small { (format!("{lo:.2}–{hi:.2}")) } } }
}

/// A row per phase and percentile of the comparison.
pub(super) fn differences(view: &View<'_>) -> Markup {
    let ms = |value: Option<f64>| value.map_or_else(|| "no limit".to_owned(), |ms| format!("{ms:+.2}"));
    let table = html! { table {
        caption { span { "Difference of latency in milliseconds, " (view.contrast) "." } }
        thead { tr {
            th scope="col" { "phase" }
            th scope="col" { "percentile" }
            th.number scope="col" { "difference, ms" }
            th.number scope="col" { "at least" }
            th.number scope="col" { "at most" }
            th.number scope="col" { "floor, ms" }
            th scope="col" { "outcome" }
        } }
        tbody { @for row in &view.differences { tr {
            th scope="row" { (row.comparison.phase) }
            td { (row.comparison.percentile) }
            td.number { b { (row.comparison.difference_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:+.2}"))) } }
            td.number { (ms(row.lo_ms)) }
            td.number { (ms(row.hi_ms)) }
            td.number { (format!("{:.2}", row.comparison.floor_ms)) }
            td { (outcome(row.comparison.outcome)) }
        } } }
    } };
    scrolling("Differences", &table)
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Lower => "lower",
        Outcome::Higher => "higher",
        Outcome::NoDifferenceShown => "no difference shown",
        Outcome::TooFewSamples => "too few independent samples",
        Outcome::NotCredible => "not credible: below the floor",
    }
}

/// How wrong the prober itself was.
pub(super) fn instrument(view: &View<'_>) -> Markup {
    let spread = |spread: Option<Spread>| match spread {
        Some(s) => format!("{:.2} / {:.2} / {:.2}", s.p50, s.p99, s.max),
        None => "-".to_owned(),
    };
    let table = html! { table {
        caption { span { "Times in milliseconds as p50 / p99 / largest." } }
        thead { tr {
            th scope="col" { "phase" }
            th scope="col" { "of" }
            th.number scope="col" { "started late" }
            th.number scope="col" { "connect call" }
            th.number scope="col" { "program minus kernel" }
            th.number scope="col" { "loopback control" }
            th.number scope="col" { "largest loop gap" }
            th.number scope="col" { "missed, late, failed" }
        } }
        tbody { @for track in &view.tracks { @let own = track.instrument; tr {
            th scope="row" { (track.phase) }
            td { (track.group) }
            td.number { (spread(Some(own.start_lateness_ms))) }
            td.number { (spread(Some(own.connect_call_ms))) }
            td.number { (spread(own.user_minus_kernel_ms)) }
            td.number { (spread(own.control_ms)) }
            td.number { (format!("{:.2}", own.largest_loop_gap_ms)) }
            td.number { (own.missed) ", " (own.late) ", " (own.failed) }
        } } }
    } };
    scrolling("The instrument's own error", &table)
}

/// Settings, programs and machine.
pub(super) fn facts(view: &View<'_>) -> Markup {
    let duration = format!("{:.1}", view.duration_s);
    let table = html! { table {
        caption { span { "Names as in the run document; each carries its unit." } }
        thead { tr { th scope="col" { "name" } th scope="col" { "value" } } }
        tbody {
            @for (name, value) in &view.facts { tr { th scope="row" { (name) } td.wrap { (value) } } }
            tr { th scope="row" { "duration_s" } td { (duration) } }
        }
    } };
    scrolling("Settings", &table)
}
