//! Axes: linear, logarithmic, and signed logarithmic for differences, with round ticks.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// How values are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
    /// asinh(x / unit): linear near zero, logarithmic far from it, on both sides.
    Signed {
        unit: f64,
    },
}

/// An axis from one value to another. Values beyond it are drawn at its ends.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
    suffix: &'static str,
}

/// Nothing this tool measures is beyond; keeps arithmetic finite for any document.
const LARGEST: f64 = 1e12;
/// Below this ratio of the largest to the smallest value a logarithmic axis says nothing more.
const LOG_FROM_RATIO: f64 = 4.0;
/// Values below this are not told apart on a logarithmic axis: one microsecond in ms.
const SMALLEST: f64 = 1e-3;

impl Axis {
    /// From `from` to a round value at or above `to`.
    pub(in crate::render) fn linear(from: f64, to: f64) -> Self {
        let (from, to) = ordered(from, to);
        let step = round_step((to - from) / 5.0);
        let ticks: Vec<f64> = (0..=12)
            .map(|i| (from / step).ceil() * step + f64::from(i) * step)
            .take_while(|tick| *tick <= to + step * 1e-6)
            .collect();
        Self { scale: Scale::Linear, from, to, ticks, suffix: "" }
    }

    /// For latencies: logarithmic where they span a factor, else linear; a little room at both ends.
    pub(in crate::render) fn latency(values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|v| v.is_finite()).map(|v| v.clamp(SMALLEST, LARGEST));
        let (least, most) = finite.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
        let (least, most) = if least <= most { (least, most) } else { (1.0, 10.0) };
        if most / least < LOG_FROM_RATIO {
            let room = ((most - least) * 0.08).max(most * 1e-3);
            return Self::linear((least - room).max(0.0), most + room);
        }
        let (from, to) = (least / 1.15, most * 1.15);
        Self { scale: Scale::Log, from, to, ticks: log_ticks(from, to), suffix: "" }
    }

    /// A count of samples: logarithmic, so that one sample is still seen.
    pub(in crate::render) fn count(most: usize) -> Self {
        let to = (most.max(2) as f64) * 1.3;
        Self { scale: Scale::Log, from: 0.6, to, ticks: log_ticks(0.6, to), suffix: "" }
    }

    /// For differences: both sides of zero alike, linear within `unit`.
    pub(in crate::render) fn signed(extent: f64, unit: f64) -> Self {
        let extent = extent.clamp(SMALLEST, LARGEST) * 2.5;
        let unit = unit.clamp(SMALLEST, extent);
        let positive = decades(unit, extent, 4);
        let negative = positive.iter().rev().map(|tick| -tick);
        let ticks = negative.chain([0.0]).chain(positive.iter().copied()).collect();
        Self { scale: Scale::Signed { unit }, from: -extent, to: extent, ticks, suffix: "" }
    }

    /// Rows from the top: no ticks.
    pub(in crate::render) fn rows(count: usize) -> Self {
        Self { scale: Scale::Linear, from: count as f64, to: 0.0, ticks: Vec::new(), suffix: "" }
    }

    /// The same with a tenth more at its end, for words.
    pub(in crate::render) fn headroom(self) -> Self {
        let to = match self.scale {
            Scale::Linear => self.to + 0.1 * (self.to - self.from),
            Scale::Log => self.to * (self.to / self.from).powf(0.1),
            Scale::Signed { .. } => self.to,
        };
        Self { to, ..self }
    }

    /// The same with a unit after each number.
    pub(in crate::render) fn suffix(self, suffix: &'static str) -> Self {
        Self { suffix, ..self }
    }

    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    pub(super) const fn from(&self) -> f64 {
        self.from
    }

    pub(super) const fn to(&self) -> f64 {
        self.to
    }

    /// Whether equal factors are equal distances.
    pub(in crate::render) fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// Where a value lies, 0 at the start and 1 at the end of the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let stretch = |v: f64| match self.scale {
            Scale::Linear => v,
            Scale::Log => v.max(SMALLEST).ln(),
            Scale::Signed { unit } => (v / unit).asinh(),
        };
        let (from, to) = (stretch(self.from), stretch(self.to));
        ((stretch(value) - from) / (to - from)).clamp(0.0, 1.0)
    }

    /// The value at a place.
    pub(super) fn value(&self, place: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.from + (self.to - self.from) * place,
            Scale::Log => self.from * (self.to / self.from).powf(place),
            Scale::Signed { unit } => {
                let (from, to) = ((self.from / unit).asinh(), (self.to / unit).asinh());
                (from + (to - from) * place).sinh() * unit
            }
        }
    }
}

fn ordered(from: f64, to: f64) -> (f64, f64) {
    let sane = |v: f64| if v.is_finite() { v.clamp(-LARGEST, LARGEST) } else { 0.0 };
    let (from, to) = (sane(from), sane(to));
    if to > from { (from, to) } else { (from, from + 1.0) }
}

/// 1, 2 or 5 times a power of ten, at least `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= raw * 0.999);
    step.unwrap_or(10.0) * power
}

/// Powers of ten within the range, thinned to at most `most`.
fn decades(from: f64, to: f64, most: usize) -> Vec<f64> {
    let (first, last) = (from.log10().ceil() as i32, to.log10().floor() as i32);
    let count = usize::try_from(last - first + 1).unwrap_or(0);
    let step = count.div_ceil(most).max(1);
    // The outermost one stays.
    let mut ticks: Vec<f64> = (first..=last).rev().step_by(step).map(|power| 10_f64.powi(power)).collect();
    ticks.reverse();
    ticks
}

/// 1, 2, 5, 10, ... where there is room, else powers of ten.
fn log_ticks(from: f64, to: f64) -> Vec<f64> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let all = |digits: &'static [f64]| -> Vec<f64> {
        let each =
            (first..=last).flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        each.filter(|tick| (from..=to).contains(tick)).collect()
    };
    const MOST: usize = 7;
    let candidates: [&'static [f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let fitting = candidates.into_iter().map(all).find(|ticks| ticks.len() <= MOST);
    fitting.unwrap_or_else(|| decades(from, to, MOST))
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (self.place(*value) * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are no lines between the ticks.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        // Twelve digits hide the last bit of a product such as 3 * 0.1; adding zero turns -0 into 0.
        let shown = (value * 1e6).round() / 1e6 + 0.0;
        let sign = if shown > 0.0 && matches!(self.scale, Scale::Signed { .. }) { "+" } else { "" };
        format!("{sign}{shown}{}", self.suffix).replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_few_and_within_the_axis() {
        for (from, to) in [(0.0, 38.2), (19.96, 20.13), (0.0, 1e-3), (0.0, 1e11), (5.0, 5.0)] {
            let axis = Axis::linear(from, to);
            assert!((2..=7).contains(&axis.ticks.len()), "{axis:?}");
            assert!(axis.ticks.iter().all(|tick| axis.place(*tick) >= 0.0), "{axis:?}");
        }
        for (from, to) in [(20.0, 520.0), (1.0, 4.1), (0.02, 63_000.0), (0.0, 1e12)] {
            let axis = Axis::latency([from, to].into_iter());
            assert!((2..=8).contains(&axis.ticks.len()), "{axis:?}");
        }
    }

    #[test]
    fn place_and_value_are_inverse() {
        for axis in
            [Axis::linear(1.0, 9.0), Axis::latency([2.0, 900.0].into_iter()), Axis::signed(480.0, 1.0)]
        {
            for step in 0..=10 {
                let place = f64::from(step) / 10.0;
                assert!((axis.place(axis.value(place)) - place).abs() < 1e-9, "{axis:?} at {place}");
            }
        }
    }

    #[test]
    fn a_signed_axis_has_zero_in_its_middle_and_signs_its_numbers() {
        let axis = Axis::signed(480.0, 1.0);
        assert!((axis.place(0.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.format_ext(&-100.0), "−100");
        assert_eq!(axis.format_ext(&10.0), "+10");
    }
}
