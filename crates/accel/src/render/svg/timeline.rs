//! Latency of every probe over the run, goodput beneath it.

use super::palette::{self, pixels};
use super::thin::thin;
use super::{Area, Axis, Labels, Plot, PlotError, SMALL_LETTER, UNITS, canvas, chart, letters};
use crate::render::view::{Fate, Goodput, Track};
use plotters::element::{Circle, Cross, PathElement, Rectangle, Text, TriangleMarker};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Axes that all timelines of a run share, so that they can be compared at a glance.
#[derive(Clone, Debug)]
pub(in crate::render) struct Scales {
    latency: Axis,
    goodput: Axis,
}

impl Scales {
    pub(in crate::render) fn of(tracks: &[Track<'_>]) -> Self {
        let times = tracks.iter().flat_map(Track::points).filter_map(|point| point.rtt_ms);
        let rates = tracks.iter().flat_map(|t| [t.up, t.down]).flatten().map(|goodput| goodput.mbps);
        Self {
            latency: Axis::latency(times).headroom(),
            goodput: Axis::linear(0.0, 1.25 * rates.fold(0.0, f64::max)),
        }
    }

    pub(in crate::render) fn latency_is_log(&self) -> bool {
        self.latency.is_log()
    }
}

const HEIGHT: i32 = 330;
const LATENCY_HEIGHT: i32 = 220;
const LEFT: i32 = 54;

/// A probe at its place.
struct Mark {
    at_s: f64,
    rtt_ms: f64,
}

/// The tracks of one group.
pub(in crate::render) fn timeline(tracks: &[&Track<'_>], scales: &Scales) -> Result<Plot, PlotError> {
    let start = |t: &&Track<'_>| (t.started_ms - t.ramp_ms) / 1000.0;
    let end = |t: &&Track<'_>| (t.started_ms + t.measured_ms) / 1000.0;
    let from = tracks.iter().map(start).fold(f64::INFINITY, f64::min);
    let to = tracks.iter().map(end).fold(f64::NEG_INFINITY, f64::max);
    let time = Axis::linear(from, to);
    let mut marks = 0;
    let svg = canvas(HEIGHT, |area| {
        let (upper, lower) = area.split_vertically(LATENCY_HEIGHT * UNITS);
        marks = draw_latency(&upper, &time, &scales.latency, tracks)?;
        draw_goodput(&lower, &time, &scales.goodput, tracks)
    })?;
    Ok(Plot { svg, marks, samples: tracks.iter().map(|t| t.samples.t_ms.len()).sum() })
}

fn draw_latency(
    area: &Area<'_>,
    time: &Axis,
    latency: &Axis,
    tracks: &[&Track<'_>],
) -> Result<usize, PlotError> {
    let labels = Labels { x: "", y: "latency, ms", left: LEFT };
    let mut chart = chart(area, (time, latency), &labels)?;
    let (bottom, top) = (latency.from(), latency.to());
    chart.draw_series(tracks.iter().filter(|t| t.ramp_ms > 0.0).map(|t| {
        let ramp = [((t.started_ms - t.ramp_ms) / 1000.0, bottom), (t.started_ms / 1000.0, top)];
        Rectangle::new(ramp, palette::SHADE.wash(0.35))
    }))?;
    let words = letters(SMALL_LETTER, palette::INK).pos(Pos::new(HPos::Left, VPos::Top));
    chart.draw_series(tracks.iter().map(|t| {
        let at = ((t.started_ms - t.ramp_ms) / 1000.0, latency.value(0.995));
        Text::new(t.phase.to_string(), at, words.clone())
    }))?;
    let place = |mark: &Mark| (time.place(mark.at_s), latency.place(mark.rtt_ms));
    let of = |fate| marks(tracks, fate, top);
    let (answered, again, lost) = (of(Fate::FirstAttempt), of(Fate::SentAgain), of(Fate::Lost));
    let (answered, again, lost) = (thin(&answered, place), thin(&again, place), thin(&lost, place));
    let at = |mark: &&Mark| (mark.at_s, mark.rtt_ms);
    let dot = palette::ANSWERED.wash(0.75);
    chart.draw_series(answered.iter().map(|m| Circle::new(at(m), pixels(1), dot)))?;
    let sent_again = palette::SENT_AGAIN.filled();
    chart.draw_series(again.iter().map(|m| TriangleMarker::new(at(m), pixels(4), sent_again)))?;
    chart.draw_series(lost.iter().map(|m| Cross::new(at(m), pixels(3), palette::INK.line(3))))?;
    Ok(answered.len() + again.len() + lost.len())
}

/// Lost probes have no latency: they stand at the upper edge.
fn marks(tracks: &[&Track<'_>], fate: Fate, top: f64) -> Vec<Mark> {
    let each = tracks.iter().flat_map(|track| {
        let chosen = track.points().filter(move |point| point.fate == fate);
        chosen.map(|point| Mark {
            at_s: (track.started_ms + point.t_ms) / 1000.0,
            rtt_ms: point.rtt_ms.unwrap_or(top),
        })
    });
    each.collect()
}

fn draw_goodput(
    area: &Area<'_>,
    time: &Axis,
    goodput: &Axis,
    tracks: &[&Track<'_>],
) -> Result<(), PlotError> {
    let labels = Labels { x: "seconds since the start of the run", y: "Mbit/s", left: LEFT };
    let mut chart = chart(area, (time, goodput), &labels)?;
    for track in tracks {
        let (from, to) = (track.started_ms / 1000.0, (track.started_ms + track.measured_ms) / 1000.0);
        let higher = track.up.map(|up| up.mbps) > track.down.map(|down| down.mbps);
        let both = [("up", track.up, palette::UP, higher), ("down", track.down, palette::DOWN, !higher)];
        for (way, rate, colour, above) in both {
            let Some(Goodput { mbps, limits }) = rate else { continue };
            if let Some((lo, hi)) = limits {
                chart.draw_series([Rectangle::new([(from, lo), (to, hi)], colour.wash(0.3))])?;
            }
            chart.draw_series([PathElement::new(vec![(from, mbps), (to, mbps)], colour.line(5))])?;
            // The words of the lower one of two stand under its line, where there is room.
            let place = goodput.place(mbps);
            let (anchor, shift) =
                if above || place < 0.35 { (VPos::Bottom, 0.05) } else { (VPos::Top, -0.05) };
            let (side, at) = if above { (HPos::Right, to) } else { (HPos::Right, from) };
            let words = letters(SMALL_LETTER, colour).pos(Pos::new(side, anchor));
            chart.draw_series([Text::new(
                format!("{way} {mbps:.1} "),
                (at, goodput.value(place + shift)),
                words,
            )])?;
        }
    }
    Ok(())
}
