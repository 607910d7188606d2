//! Shares between 0 and 1: loss, utilisation, probabilities.

use std::fmt;
use std::str::FromStr;

/// A share from 0 to 1, never NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// The share `value`, or `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// `percent` hundredths, or `None` outside 0 to 100.
    pub fn from_percent(percent: f64) -> Option<Self> {
        Self::new(percent / 100.0)
    }

    /// `part` of `whole`; `None` when the whole is zero or smaller than the part.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        (whole > 0 && part <= whole).then(|| Self(part as f64 / whole as f64))
    }

    /// The bare share, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The share in percent, 0 to 100.
    pub fn as_percent(self) -> f64 {
        self.0 * 100.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} %", self.as_percent())
    }
}

/// Why a text is not a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRatioError(String);

impl fmt::Display for ParseRatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a percentage; write a number from 0 to 100, such as 1.5%", self.0)
    }
}

impl std::error::Error for ParseRatioError {}

/// Reads `1.5%` or `1.5` as percent.
impl FromStr for Ratio {
    type Err = ParseRatioError;

    fn from_str(text: &str) -> Result<Self, ParseRatioError> {
        let number = text.trim().trim_end_matches('%').trim_end();
        let percent: Option<f64> = number.parse().ok();
        percent.and_then(Self::from_percent).ok_or_else(|| ParseRatioError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_outside_its_range() {
        assert_eq!(Ratio::new(1.1), None);
        assert_eq!(Ratio::new(f64::NAN), None);
        assert_eq!(Ratio::of(1, 0), None);
        assert_eq!(Ratio::of(3, 2), None);
        assert_eq!(Ratio::of(1, 4), Ratio::new(0.25));
    }

    #[test]
    fn reads_percent() {
        assert_eq!("1.5%".parse(), Ok(Ratio(0.015)));
        assert_eq!("13".parse(), Ok(Ratio(0.13)));
        for text in ["", "x", "101", "-1%", "NaN"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
        assert_eq!(Ratio(0.0125).to_string(), "1.25 %");
    }
}
