//! The report as one HTML file: no network, no script, no font from elsewhere. Pure; the same runs give the same bytes.

mod figures;
mod tables;

use super::svg::{PlotError, palette};
use super::view::View;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
/// Lets nothing be fetched and nothing run, whatever a document's texts hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The whole page for one run or several.
///
/// # Errors
/// When a plot cannot be drawn.
pub fn render(views: &[View<'_>]) -> Result<String, PlotError> {
    let title = views.first().map_or_else(|| "accel".to_owned(), title);
    let runs = views.iter().enumerate().map(|(i, view)| run(i + 1, view)).collect::<Result<Vec<_>, _>>()?;
    let dark = format!("@media screen and (prefers-color-scheme:dark){{{}}}", palette::dark_rules());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                // Keeps browsers from asking for /favicon.ico.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(palette::light_rules())) (PreEscaped(dark)) }
            }
            body {
                a.skip href="#results" { "Skip to the results" }
                main { @for run in &runs { (run) } }
                footer { p {
                    "Written by accel " (env!("CARGO_PKG_VERSION")) " from the run document, which holds every sample. "
                    "This page asks nothing of any network."
                } }
            }
        }
    };
    Ok(format!("{}\n", page.into_string()))
}

/// `accel lab, 2026-01-01 00:00:00 UTC`.
fn title(view: &View<'_>) -> String {
    format!("accel {}, {}", view.command, time_of_day(view.started_unix_ms))
}

fn time_of_day(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(
        || "at an unknown time".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

fn run(number: usize, view: &View<'_>) -> Result<Markup, PlotError> {
    let first = number == 1;
    let figures = figures::all(view)?;
    Ok(html! {
        article aria-labelledby={ "run-" (number) } {
            header {
                h1 id={ "run-" (number) } { (title(view)) }
                p { (view.heading) }
            }
            section id=[first.then_some("results")] {
                h2 { "Verdict" }
                @for (i, text) in view.conclusion.iter().enumerate() { p.verdict[i == 0] { (text) } }
                @if !view.warnings.is_empty() {
                    ul.warnings aria-label="Warnings" { @for warning in view.warnings { li { "Warning: " (warning) } } }
                }
            }
            section { h2 { "Results" } (tables::results(view)) }
            (figures)
            section {
                h2 { "The instrument's own error" }
                p { (view.instrument) }
                (tables::instrument(view))
            }
            section { h2 { "Settings" } (tables::facts(view)) }
        }
    })
}
