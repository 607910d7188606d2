//! The plots, each with a caption, a key and a text alternative.

use crate::render::svg::{self, Plot, PlotError, Scales, gap_words, palette};
use crate::render::text::percentile_value;
use crate::render::view::{Fate, Track, View};
use crate::run::Phase;
use crate::statement::ms_text;
use maud::{Markup, PreEscaped, html};

/// All plots of a run, in sections.
pub(super) fn all(view: &View<'_>) -> Result<Markup, PlotError> {
    let groups = groups(view);
    Ok(html! {
        @if !view.differences.is_empty() { (differences(view)?) }
        (timelines(view, &groups)?)
        (distributions(view, &groups)?)
        (histograms(view)?)
    })
}

/// The arms or targets in the order in which they were measured.
fn groups<'a>(view: &'a View<'_>) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for track in &view.tracks {
        if !groups.contains(&track.group.as_str()) {
            groups.push(&track.group);
        }
    }
    groups
}

/// The drawing is one image to a reader of the screen; the words beside it say what it shows.
fn figure(title: &str, alternative: &str, plot: &Plot, key: &Markup, caption: &Markup) -> Markup {
    html! {
        figure {
            h3 { (title) }
            div.plot role="img" aria-label=(alternative) { (PreEscaped(&plot.svg)) }
            (key)
            figcaption { (caption) }
        }
    }
}

/// One entry of a key: a mark in its colour and what it means.
fn entry(mark: &str, ink: palette::Colour, meaning: &str) -> Markup {
    let hex = ink.hex();
    html! { li { span data-ink=(hex) aria-hidden="true" { (mark) } " " (meaning) } }
}

fn differences(view: &View<'_>) -> Result<Markup, PlotError> {
    let plot = svg::difference(&view.differences)?;
    let said: Vec<String> = view
        .differences
        .iter()
        .filter_map(|row| {
            let c = row.comparison;
            Some(format!("{} {} {:+.2} ms", c.phase, c.percentile, c.difference_ms?))
        })
        .collect();
    let alternative = format!("Difference of latency, {}: {}.", view.contrast, said.join("; "));
    let key = html! { ul.key {
        (entry("●", palette::DOWN, "lower"))
        (entry("●", palette::SENT_AGAIN, "higher"))
        (entry("●", palette::AXIS, "no difference shown, too few samples, or below the floor"))
        (entry("▒", palette::SHADE, "the instrument's own error"))
    } };
    let caption = html! {
        "The bar holds every difference that the 95 % intervals of both arms allow together, which is wider than a 95 % "
        "interval of the difference. It runs off the plot where the data give no limit."
    };
    Ok(html! { section {
        h2 { "Difference" }
        div.plots { (figure(&format!("Latency, {}", view.contrast), &alternative, &plot, &key, &caption)) }
        (super::tables::differences(view))
    } })
}

fn timelines(view: &View<'_>, groups: &[&str]) -> Result<Markup, PlotError> {
    let scales = Scales::of(&view.tracks);
    let figures = groups
        .iter()
        .map(|group| {
            let tracks: Vec<&Track<'_>> = view.tracks.iter().filter(|t| t.group == *group).collect();
            svg::timeline(&tracks, &scales).map(|plot| timeline(group, &tracks, &plot, &scales))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(html! { section { h2 { "Latency and goodput over time" } div.plots { @for f in &figures { (f) } } } })
}

fn timeline(group: &str, tracks: &[&Track<'_>], plot: &Plot, scales: &Scales) -> Markup {
    let sum = |fate| tracks.iter().map(|t| t.count(fate)).sum::<usize>();
    let medians: Vec<String> = tracks.iter().map(|t| format!("{} {} ms", t.phase, median(t))).collect();
    let alternative = format!(
        "Latency of each probe and goodput over time, {group}. Median by phase: {}. Sent again: {}; lost: {}.",
        medians.join(", "),
        sum(Fate::SentAgain),
        sum(Fate::Lost)
    );
    let key = html! { ul.key {
        (entry("●", palette::ANSWERED, "answered at the first attempt"))
        (entry("▲", palette::SENT_AGAIN, "sent again"))
        (entry("✕", palette::INK, "lost (at the upper edge)"))
        (entry("▒", palette::SHADE, "ramp, not measured"))
    } };
    let caption = html! {
        (plot.marks) " marks for " (plot.samples) " probes; probes closer than a pixel or so share one, one that stands "
        "alone is always drawn."
        @if scales.latency_is_log() { " Latency on a logarithmic axis." }
        " Goodput is that of the whole measured part, counted by the receiver."
    };
    figure(group, &alternative, plot, &key, &caption)
}

fn median(track: &Track<'_>) -> String {
    track.percentiles.first().map_or_else(|| "-".to_owned(), |(_, p50)| percentile_value(p50))
}

fn distributions(view: &View<'_>, groups: &[&str]) -> Result<Markup, PlotError> {
    let mut figures = Vec::new();
    for phase in Phase::ALL {
        let number = |track: &Track<'_>| groups.iter().position(|group| *group == track.group).unwrap_or(0);
        let tracks: Vec<(usize, &Track<'_>)> =
            view.tracks.iter().filter(|t| t.phase == phase && t.n > 0).map(|t| (number(t), t)).collect();
        if !tracks.is_empty() {
            figures.push(distribution(phase, &tracks, &svg::cdf(&tracks)?));
        }
    }
    Ok(html! { section { h2 { "Distribution by phase" } div.plots { @for f in &figures { (f) } } } })
}

fn distribution(phase: Phase, tracks: &[(usize, &Track<'_>)], plot: &Plot) -> Markup {
    let figures = |track: &Track<'_>| -> String {
        let each = track.percentiles.iter().map(|(name, p)| format!("{name} {} ms", percentile_value(p)));
        format!("{}: {}", track.group, each.collect::<Vec<_>>().join(", "))
    };
    let said: Vec<String> = tracks.iter().map(|(_, track)| figures(track)).collect();
    let alternative = format!("Cumulative distribution of latency, {phase}. {}.", said.join(". "));
    let key = html! { ul.key {
        @for (series, track) in tracks {
            // The same widths as in the plot.
            @let mark = if series % 2 == 0 { "━" } else { "─" };
            (entry(mark, palette::SERIES[series % palette::SERIES.len()], &format!("{} (n {})", track.group, track.n)))
        }
    } };
    let caption = html! { "Probes answered at the first attempt, as in the percentiles." };
    figure(&phase.to_string(), &alternative, plot, &key, &caption)
}

fn histograms(view: &View<'_>) -> Result<Markup, PlotError> {
    // The arms of a phase side by side.
    let by_phase =
        Phase::ALL.into_iter().flat_map(|phase| view.tracks.iter().filter(move |t| t.phase == phase));
    let figures = by_phase
        .filter(|track| !track.samples.t_ms.is_empty())
        .map(|track| svg::histogram(track).map(|plot| histogram(track, &plot)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(
        html! { section { h2 { "Histograms and what made the tail" } div.plots { @for f in &figures { (f) } } } },
    )
}

fn histogram(track: &Track<'_>, plot: &Plot) -> Markup {
    let (again, lost) = (track.count(Fate::SentAgain), track.count(Fate::Lost));
    let largest = track.points().filter_map(|point| point.rtt_ms).fold(0.0, f64::max);
    let gap = gap_words(track).map_or_else(String::new, |words| format!(". Gap: {words}."));
    let alternative = format!(
        "Histogram of latency, {}: {} probes answered, median {} ms, largest {} ms; {again} of them sent again; {lost} lost{gap}",
        track.title(),
        plot.samples,
        median(track),
        ms_text(largest)
    );
    let key = html! { @if again > 0 { ul.key {
        (entry("■", palette::ANSWERED, "answered at the first attempt"))
        (entry("■", palette::SENT_AGAIN, "sent again"))
        @if track.tail.gap.is_some() { (entry("▒", palette::SHADE, "gap: no answer took so long")) }
    } } };
    let caption = html! {
        strong { (track.tail.label.replace('_', " ")) } ": " (track.tail.why) (gap)
        @if lost > 0 { " " (lost) " lost probes have no place here." }
    };
    figure(&track.title(), &alternative, plot, &key, &caption)
}
