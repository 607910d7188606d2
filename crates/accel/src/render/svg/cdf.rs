//! Cumulative distribution of one phase: a line for each arm or target.

use super::palette::SERIES;
use super::{Axis, Labels, Plot, PlotError, canvas, chart};
use crate::render::view::Track;
use plotters::element::PathElement;

/// Lines have at most about this many steps: the plot has no more pixels.
const STEPS: f64 = 500.0;

/// Probes that were answered at the first attempt, as the percentiles have it.
pub(in crate::render) fn cdf(tracks: &[(usize, &Track<'_>)]) -> Result<Plot, PlotError> {
    let sorted: Vec<(usize, Vec<f64>)> = tracks
        .iter()
        .map(|(series, track)| {
            let mut values = track.first_attempts();
            values.sort_by(f64::total_cmp);
            (*series, values)
        })
        .collect();
    let latency = Axis::latency(sorted.iter().flat_map(|(_, values)| values.iter().copied()));
    let share = Axis::linear(0.0, 100.0).suffix(" %");
    let lines: Vec<_> = sorted.iter().map(|(series, values)| (*series, steps(values, &latency))).collect();
    let svg = canvas(270, |area| {
        let x = if latency.is_log() { "latency, ms (log scale)" } else { "latency, ms" };
        let labels = Labels { x, y: "answered within", left: 62 };
        let mut chart = chart(area, (&latency, &share), &labels)?;
        for (series, line) in &lines {
            // Later lines are thinner, so that one on top of another hides none.
            let width = if *series % 2 == 0 { 7 } else { 3 };
            let style = SERIES[series % SERIES.len()].line(width);
            chart.draw_series([PathElement::new(line.clone(), style)])?;
        }
        Ok(())
    })?;
    Ok(Plot {
        svg,
        marks: lines.iter().map(|(_, line)| line.len()).sum(),
        samples: sorted.iter().map(|(_, values)| values.len()).sum(),
    })
}

/// Corners of the step function that differ by a pixel or more; the first and the last are always there.
fn steps(sorted: &[f64], latency: &Axis) -> Vec<(f64, f64)> {
    let Some((&first, &last)) = sorted.first().zip(sorted.last()) else { return Vec::new() };
    let mut line = vec![(first, 0.0)];
    let mut drawn = (latency.place(first), 0.0);
    for (i, &value) in sorted.iter().enumerate() {
        let before = i as f64 / sorted.len() as f64;
        let here = (latency.place(value), before);
        if (here.0 - drawn.0) * STEPS < 1.0 && (here.1 - drawn.1) * STEPS < 1.0 {
            continue;
        }
        // Up to where the share was before this value, then across.
        line.push((line[line.len() - 1].0, 100.0 * before));
        line.push((value, 100.0 * before));
        drawn = here;
    }
    line.push((last, 100.0));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_has_few_corners_and_keeps_its_ends() {
        let sorted: Vec<f64> = (0..100_000).map(|i| 20.0 + f64::from(i) / 1000.0).collect();
        let line = steps(&sorted, &Axis::latency(sorted.iter().copied()));
        assert!(line.len() < 2_200, "{}", line.len());
        assert_eq!(line[0], (20.0, 0.0));
        assert_eq!(line[line.len() - 1], (119.999, 100.0));
    }
}
