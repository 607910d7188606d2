//! Colours: as drawn for light pages and paper, and what the style sheet makes of them on dark screens.
//!
//! The data colours are those of Okabe and Ito, which people with any common colour blindness tell apart; no plot tells
//! by colour alone.

use super::UNITS;
use plotters::style::{Color, RGBAColor, RGBColor, ShapeStyle};
use std::fmt::Write;

/// A colour on light and on dark ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct Colour {
    light: (u8, u8, u8),
    dark: (u8, u8, u8),
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour { light, dark }
}

/// Words.
pub(in crate::render) const INK: Colour = colour((0x24, 0x29, 0x2E), (0xE2, 0xE6, 0xEA));
/// The frame.
pub(in crate::render) const AXIS: Colour = colour((0x6B, 0x72, 0x7A), (0x8E, 0x98, 0xA2));
/// Lines at the ticks.
pub(super) const GRID: Colour = colour((0xDF, 0xE3, 0xE7), (0x33, 0x3A, 0x41));
/// The ramp, gaps and the noise floor.
pub(in crate::render) const SHADE: Colour = colour((0xB8, 0xBF, 0xC6), (0x6C, 0x76, 0x80));
/// A probe that was sent again.
pub(in crate::render) const SENT_AGAIN: Colour = colour((0xC8, 0x4E, 0x00), (0xFF, 0x96, 0x4F));
/// A probe that was answered at once, and the first arm.
pub(in crate::render) const ANSWERED: Colour = colour((0x00, 0x6A, 0xA8), (0x5C, 0xB8, 0xF2));
/// Goodput towards the server.
pub(super) const UP: Colour = colour((0xA8, 0x3A, 0x7C), (0xE3, 0x97, 0xC1));
/// Goodput towards here.
pub(in crate::render) const DOWN: Colour = colour((0x00, 0x7F, 0x5F), (0x35, 0xC4, 0x9B));

/// Lines of the arms or targets of one plot, in turn.
pub(in crate::render) const SERIES: [Colour; 6] = [
    SENT_AGAIN,
    ANSWERED,
    DOWN,
    UP,
    colour((0x9A, 0x6A, 0x00), (0xE8, 0xB6, 0x3A)),
    colour((0x54, 0x57, 0xA6), (0xA9, 0xAC, 0xF5)),
];

/// Every colour that a plot may hold.
const ALL: [Colour; 10] = [INK, AXIS, GRID, SHADE, SENT_AGAIN, ANSWERED, UP, DOWN, SERIES[4], SERIES[5]];

impl Colour {
    pub(super) const fn ink(self) -> RGBColor {
        RGBColor(self.light.0, self.light.1, self.light.2)
    }

    /// A line of this many nominal half-pixels.
    pub(super) fn line(self, width: u32) -> ShapeStyle {
        self.ink().stroke_width(width)
    }

    pub(super) fn filled(self) -> ShapeStyle {
        self.ink().filled()
    }

    /// See-through, for areas.
    pub(super) fn wash(self, opacity: f64) -> ShapeStyle {
        let wash: RGBAColor = self.ink().mix(opacity);
        wash.filled()
    }

    /// `#RRGGBB` as plotters writes it.
    pub(in crate::render) fn hex(self) -> String {
        hex(self.light)
    }
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Rules that colour the marks of the keys.
pub(in crate::render) fn light_rules() -> String {
    ALL.map(|colour| format!(".key [data-ink=\"{0}\"]{{color:{0}}}", hex(colour.light))).concat()
}

/// Rules that turn the drawn colours into those for dark ground.
pub(in crate::render) fn dark_rules() -> String {
    ALL.iter().fold(String::new(), |mut rules, colour| {
        let (light, dark) = (hex(colour.light), hex(colour.dark));
        // Writing to a String cannot fail.
        let _ = write!(
            rules,
            "svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}.key [data-ink=\"{light}\"]{{color:{dark}}}"
        );
        rules
    })
}

/// Pixels at the nominal size.
pub(super) const fn pixels(count: i32) -> i32 {
    count * UNITS
}
