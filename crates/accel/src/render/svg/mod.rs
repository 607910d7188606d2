//! The plots of the HTML report, drawn by plotters. Pure: the same run gives the same bytes.
//!
//! ```text
//! View -> timeline | cdf | histogram | difference -> Plot { svg, words }
//!              all with: axis (linear, log, signed), palette (light = as drawn, dark = by style sheet), thin
//! ```

mod axis;
mod cdf;
mod difference;
mod histogram;
pub(super) mod palette;
mod thin;
mod timeline;

pub(super) use axis::Axis;
pub(super) use cdf::cdf;
pub(super) use difference::difference;
pub(super) use histogram::{gap_words, histogram};
pub(super) use timeline::{Scales, timeline};

use palette::Colour;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::prelude::{
    Cartesian2d, ChartContext, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, SVGBackend,
};
use plotters::style::{Color, IntoFont, TextStyle};

/// Why a plot could not be drawn.
pub type PlotError = DrawingAreaErrorKind<std::io::Error>;

/// A plot and how faithful it is.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// The `svg` element.
    pub(super) svg: String,
    /// Marks drawn.
    pub(super) marks: usize,
    /// Samples that they stand for.
    pub(super) samples: usize,
}

/// Units of the drawing per pixel of its nominal size: plotters knows whole units only.
const UNITS: i32 = 2;
/// Nominal size in pixels: a phone's width, so that letters stay readable there; wider screens show two in a row.
const WIDTH: i32 = 460;
/// Height of the letters in pixels at the nominal size.
const LETTER: f64 = 13.0;
/// The same for words within a plot.
const SMALL_LETTER: f64 = 11.5;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Draws on an area of the nominal width.
fn canvas(height: i32, draw: impl FnOnce(&Area<'_>) -> Result<(), PlotError>) -> Result<String, PlotError> {
    let mut svg = String::new();
    let size = ((WIDTH * UNITS) as u32, (height * UNITS) as u32);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    draw(&area)?;
    area.present()?;
    drop(area);
    Ok(svg)
}

/// What the axes say.
struct Labels<'a> {
    x: &'a str,
    y: &'a str,
    /// Pixels to the left of the plot.
    left: i32,
}

/// Axes, grid and their words.
fn chart<'a, 'b>(
    area: &'a Area<'b>,
    (x, y): (&Axis, &Axis),
    labels: &Labels<'_>,
) -> Result<Chart<'a, 'b>, PlotError> {
    let below = if labels.x.is_empty() { 20 } else { 40 };
    let mut chart = ChartBuilder::on(area)
        .margin(6 * UNITS)
        .margin_right(14 * UNITS)
        .x_label_area_size(below * UNITS)
        .y_label_area_size(labels.left * UNITS)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_labels(x.ticks().len().max(1))
        .y_labels(y.ticks().len().max(1))
        .bold_line_style(palette::GRID.line(1))
        .axis_style(palette::AXIS.line(1))
        .label_style(letters(LETTER, palette::INK))
        .axis_desc_style(letters(LETTER, palette::INK))
        .x_desc(labels.x)
        .y_desc(labels.y)
        .draw()?;
    Ok(chart)
}

/// Letters of a height in nominal pixels.
fn letters(pixels: f64, colour: Colour) -> TextStyle<'static> {
    // plotters divides by this to come from its own size to that of CSS.
    const PLOTTERS_SIZE: f64 = 1.24;
    let size = pixels * PLOTTERS_SIZE * f64::from(UNITS);
    let style = TextStyle::from(("sans-serif", size).into_font());
    TextStyle { color: colour.ink().to_backend_color(), ..style }
}
