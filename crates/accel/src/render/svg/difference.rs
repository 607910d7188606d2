//! What an arm changed: a row for each phase and percentile, with its interval, the noise floor shaded.

use super::palette;
use super::{Axis, Labels, Plot, PlotError, SMALL_LETTER, canvas, chart, letters, palette::pixels};
use crate::render::view::Difference;
use crate::verdict::Outcome;
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels for a row.
const ROW: i32 = 19;

pub(in crate::render) fn difference(rows: &[Difference<'_>]) -> Result<Plot, PlotError> {
    let values = rows.iter().flat_map(|row| [row.comparison.difference_ms, row.lo_ms, row.hi_ms]);
    let extent = values.flatten().map(f64::abs).filter(|v| v.is_finite()).fold(1.0, f64::max);
    let floors = rows.iter().map(|row| row.comparison.floor_ms).filter(|floor| *floor > 0.0);
    let unit = floors.fold(f64::INFINITY, f64::min).clamp(0.01, 1.0);
    let axis = Axis::signed(extent, unit);
    let height = 56 + ROW * i32::try_from(rows.len()).unwrap_or(i32::MAX / ROW).clamp(1, 200);
    let svg = canvas(height, |area| {
        let labels = Labels { x: "difference, ms (log scale both ways)", y: "", left: 112 };
        let mut chart = chart(area, (&axis, &Axis::rows(rows.len())), &labels)?;
        for (i, row) in rows.iter().enumerate() {
            let middle = i as f64 + 0.5;
            let floor = row.comparison.floor_ms;
            let band = [(-floor, i as f64), (floor, i as f64 + 1.0)];
            chart.draw_series([Rectangle::new(band, palette::SHADE.wash(0.45))])?;
            let style = colour(row.comparison.outcome);
            let span =
                |from: f64, to: f64, at: f64| PathElement::new(vec![(from, at), (to, at)], style.line(4));
            if row.lo_ms.is_some() || row.hi_ms.is_some() {
                let (lo, hi) = (row.lo_ms.unwrap_or(axis.from()), row.hi_ms.unwrap_or(axis.to()));
                chart.draw_series([span(lo, hi, middle)])?;
                // A limit that the data give has an end; one they do not give runs off the plot.
                let ends = [row.lo_ms, row.hi_ms].into_iter().flatten();
                chart.draw_series(ends.map(|end| {
                    PathElement::new(vec![(end, middle - 0.2), (end, middle + 0.2)], style.line(4))
                }))?;
            }
            let dot =
                row.comparison.difference_ms.map(|ms| Circle::new((ms, middle), pixels(4), style.filled()));
            chart.draw_series(dot)?;
        }
        chart.draw_series([PathElement::new(
            vec![(0.0, 0.0), (0.0, rows.len() as f64)],
            palette::AXIS.line(2),
        )])?;
        write_names(area, rows)
    })?;
    Ok(Plot { svg, marks: rows.len(), samples: rows.len() })
}

/// `upload p95` to the left of each row.
fn write_names(area: &super::Area<'_>, rows: &[Difference<'_>]) -> Result<(), PlotError> {
    let words = letters(SMALL_LETTER, palette::INK).pos(Pos::new(HPos::Right, VPos::Center));
    let (_, height) = area.dim_in_pixel();
    let plot_height = f64::from(height) - f64::from(pixels(6 + 6 + 40));
    for (i, row) in rows.iter().enumerate() {
        let name = format!("{} {}", row.comparison.phase, row.comparison.percentile);
        let y = f64::from(pixels(6)) + plot_height * (i as f64 + 0.5) / rows.len() as f64;
        area.draw(&Text::new(name, (pixels(112), y.round() as i32), words.clone()))?;
    }
    Ok(())
}

const fn colour(outcome: Outcome) -> palette::Colour {
    match outcome {
        Outcome::Lower => palette::DOWN,
        Outcome::Higher => palette::SENT_AGAIN,
        Outcome::NoDifferenceShown | Outcome::TooFewSamples | Outcome::NotCredible => palette::AXIS,
    }
}
