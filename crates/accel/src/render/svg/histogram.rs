//! Histogram of one track, with the empty range beneath the probes that were sent again.

use super::palette;
use super::{Axis, Labels, Plot, PlotError, SMALL_LETTER, canvas, chart, letters};
use crate::render::view::{Fate, Track};
use crate::statement::ms_text;
use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

const BINS: usize = 48;

/// Every answered probe; those that were sent again in their own colour.
pub(in crate::render) fn histogram(track: &Track<'_>) -> Result<Plot, PlotError> {
    let latency = Axis::latency(track.points().filter_map(|point| point.rtt_ms));
    let (once, again) =
        (counts(track, Fate::FirstAttempt, &latency), counts(track, Fate::SentAgain, &latency));
    let most = once.iter().chain(&again).copied().max().unwrap_or(0);
    let count = Axis::count(most);
    let svg = canvas(230, |area| {
        let x = if latency.is_log() { "latency, ms (log scale)" } else { "latency, ms" };
        let labels = Labels { x, y: "probes (log scale)", left: 54 };
        let mut chart = chart(area, (&latency, &count), &labels)?;
        if let Some(gap) = track.tail.gap {
            let band = [(gap.from_ms, count.from()), (gap.to_ms, count.to())];
            chart.draw_series([Rectangle::new(band, palette::SHADE.wash(0.35))])?;
            let words = letters(SMALL_LETTER, palette::INK).pos(Pos::new(HPos::Center, VPos::Top));
            let middle = latency.value(f64::midpoint(latency.place(gap.from_ms), latency.place(gap.to_ms)));
            chart.draw_series([Text::new("gap".to_owned(), (middle, count.value(0.98)), words)])?;
        }
        chart.draw_series(bars(&once, &latency, &count, palette::ANSWERED.wash(0.85)))?;
        chart.draw_series(bars(&again, &latency, &count, palette::SENT_AGAIN.filled()))?;
        Ok(())
    })?;
    let samples = once.iter().chain(&again).sum();
    let marks = once.iter().chain(&again).filter(|n| **n > 0).count();
    Ok(Plot { svg, marks, samples })
}

/// `nothing between 0.52 and 1021 ms`, where there is a gap.
pub(in crate::render) fn gap_words(track: &Track<'_>) -> Option<String> {
    let gap = track.tail.gap?;
    Some(format!("no answer between {} and {} ms", ms_text(gap.from_ms), ms_text(gap.to_ms)))
}

fn counts(track: &Track<'_>, fate: Fate, latency: &Axis) -> Vec<usize> {
    let mut counts = vec![0; BINS];
    let chosen = track.points().filter(|point| point.fate == fate);
    for rtt in chosen.filter_map(|point| point.rtt_ms) {
        let bin = (latency.place(rtt) * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    counts
}

fn bars<'a>(
    counts: &'a [usize],
    latency: &'a Axis,
    count: &'a Axis,
    style: plotters::style::ShapeStyle,
) -> impl Iterator<Item = Rectangle<(f64, f64)>> + 'a {
    let edge = |bin: usize, inset: f64| latency.value((bin as f64 + inset) / BINS as f64);
    let full = counts.iter().enumerate().filter(|(_, n)| **n > 0);
    full.map(move |(bin, &n)| {
        Rectangle::new([(edge(bin, 0.06), count.from()), (edge(bin, 0.94), n as f64)], style)
    })
}
