//! Data rates in bits per second.

use crate::Bytes;
use std::fmt;
use std::ops::{Div, Mul};
use std::str::FromStr;
use std::time::Duration;

/// A data rate in bit/s. Zero is allowed as a value (an interface may be down); dividing by it gives
/// [`Duration::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No data at all.
    pub const ZERO: Self = Self(0);

    /// `bits` bit/s.
    pub const fn bits_per_s(bits: u64) -> Self {
        Self(bits)
    }

    /// `kbit` thousand bit/s.
    pub const fn kbit_per_s(kbit: u64) -> Self {
        Self(kbit.saturating_mul(1_000))
    }

    /// `mbit` million bit/s.
    pub const fn mbit_per_s(mbit: u64) -> Self {
        Self(mbit.saturating_mul(1_000_000))
    }

    /// A rate from a floating number of Mbit/s, rounded to the nearest bit/s; `None` for a negative number, for
    /// NaN and for more than a u64 can hold.
    pub fn from_mbit_f64(mbit: f64) -> Option<Self> {
        let bits = (mbit * 1e6).round();
        (bits >= 0.0 && bits < u64::MAX as f64).then_some(Self(bits as u64))
    }

    /// This rate in bit/s.
    pub const fn as_bits_per_s(self) -> u64 {
        self.0
    }

    /// This rate in Mbit/s.
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whether nothing can pass.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The rate at which `bytes` arrived within `span`; zero for an empty span.
    pub fn of(bytes: Bytes, span: Duration) -> Self {
        let nanos = span.as_nanos();
        if nanos == 0 {
            return Self::ZERO;
        }
        Self(saturate(u128::from(bytes.get()) * 8 * 1_000_000_000 / nanos))
    }

    /// This rate times a factor, rounded to the nearest bit/s; a negative factor or NaN gives zero.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round().max(0.0) as u64)
    }
}

const fn saturate(n: u128) -> u64 {
    if n > u64::MAX as u128 { u64::MAX } else { n as u64 }
}

/// Time on the wire, rounded up to the nanosecond so that a pacer never runs fast.
impl Div<Rate> for Bytes {
    type Output = Duration;
    fn div(self, rate: Rate) -> Duration {
        if rate.0 == 0 {
            return Duration::MAX;
        }
        // Every packet takes this path: bits * 1e9 fits a u64 up to 2.3 GB, so the 128-bit division is rare.
        let bits = self.get().saturating_mul(8);
        match bits.checked_mul(1_000_000_000) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(rate.0)),
            None => Duration::from_nanos(saturate(
                (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate.0)),
            )),
        }
    }
}

/// The bytes that fit into a span, rounded down.
impl Mul<Duration> for Rate {
    type Output = Bytes;
    fn mul(self, span: Duration) -> Bytes {
        let bit_nanos = u128::from(self.0).saturating_mul(span.as_nanos());
        Bytes::new(saturate(bit_nanos / 8 / 1_000_000_000))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits >= 1_000_000 => write!(f, "{:.1} Mbit/s", self.as_mbit_f64()),
            bits if bits >= 1_000 => write!(f, "{:.1} kbit/s", bits as f64 / 1e3),
            bits => write!(f, "{bits} bit/s"),
        }
    }
}

/// Why a text is not a rate. The message says what to type instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseRateError {
    /// The number is missing or malformed.
    Number(String),
    /// The unit is missing.
    NoUnit(String),
    /// The unit can mean bits or bytes (`mbps`, `MBps`, `MB/s`).
    Ambiguous {
        /// What was typed.
        text: String,
        /// The rate if bits were meant.
        as_bits: String,
        /// The rate if bytes were meant.
        as_bytes: String,
    },
    /// The unit is unknown.
    Unit(String),
    /// Zero, negative, below one bit/s or beyond what 64 bits hold.
    Range(String),
}

impl fmt::Display for ParseRateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) => {
                write!(f, "'{text}' is not a rate; write a number and a unit, such as 20mbit")
            }
            Self::NoUnit(text) => write!(f, "'{text}' has no unit; did you mean {text}mbit or {text}kbit?"),
            Self::Ambiguous { text, as_bits, as_bytes } => write!(
                f,
                "'{text}' can be read in two ways; write {as_bits} if you mean bits, {as_bytes} if you mean bytes"
            ),
            Self::Unit(text) => write!(f, "'{text}' has an unknown unit; use bit, kbit, mbit or gbit"),
            Self::Range(text) => {
                write!(f, "'{text}' is out of range; a rate is at least 1 bit/s and at most 18446744073gbit")
            }
        }
    }
}

impl std::error::Error for ParseRateError {}

/// Reads `20mbit`, `1.5gbit`, `500kbit`, `64000bit` (any letter case, an optional `/s`). `30mbps` is refused,
/// and so is `5MB/s`, since they are used for bits and for bytes alike.
impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number_text, unit_text) = (trimmed[..split].trim(), trimmed[split..].to_ascii_lowercase());
        let plain_number = number_text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number: f64 = match number_text.parse() {
            Ok(n) if plain_number => n,
            Ok(n) if n < 0.0 => return Err(ParseRateError::Range(trimmed.to_owned())),
            _ => return Err(ParseRateError::Number(trimmed.to_owned())),
        };
        let unit = unit_text.strip_suffix("/s").unwrap_or(&unit_text);
        let factor = match unit {
            "" => return Err(ParseRateError::NoUnit(trimmed.to_owned())),
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            "bps" | "kbps" | "mbps" | "gbps" | "b" | "kb" | "mb" | "gb" => {
                return Err(ambiguous(trimmed, number, unit));
            }
            _ => return Err(ParseRateError::Unit(trimmed.to_owned())),
        };
        let bits = (number * factor).round();
        if !(1.0..u64::MAX as f64).contains(&bits) {
            return Err(ParseRateError::Range(trimmed.to_owned()));
        }
        Ok(Self(bits as u64))
    }
}

fn ambiguous(text: &str, number: f64, unit: &str) -> ParseRateError {
    let prefix = unit.trim_end_matches("bps").trim_end_matches('b');
    ParseRateError::Ambiguous {
        text: text.to_owned(),
        as_bits: format!("{number}{prefix}bit"),
        as_bytes: format!("{}{prefix}bit", number * 8.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_20_mbit_takes_600_us() {
        assert_eq!(Bytes::new(1500) / Rate::mbit_per_s(20), Duration::from_micros(600));
        assert_eq!(Rate::mbit_per_s(20) * Duration::from_micros(600), Bytes::new(1500));
    }

    #[test]
    fn wire_time_rounds_up_and_never_overflows() {
        assert_eq!(Bytes::new(1) / Rate::bits_per_s(3), Duration::from_nanos(2_666_666_667));
        assert_eq!(Bytes::new(1) / Rate::ZERO, Duration::MAX);
        assert_eq!(Bytes::new(u64::MAX) / Rate::bits_per_s(1), Duration::from_nanos(u64::MAX));
        // Either side of the point where 64 bits no longer hold the scaled numerator.
        let edge = u64::MAX / 8_000_000_000;
        for bytes in [edge, edge + 1] {
            let exact = (u128::from(bytes) * 8_000_000_000).div_ceil(1_000_000_007);
            let got = Bytes::new(bytes) / Rate::bits_per_s(1_000_000_007);
            assert_eq!(got.as_nanos(), exact);
        }
    }

    #[test]
    fn reads_the_usual_spellings() {
        assert_eq!("20mbit".parse(), Ok(Rate::mbit_per_s(20)));
        assert_eq!("1.5 Mbit/s".parse(), Ok(Rate::kbit_per_s(1_500)));
        assert_eq!("1gbit".parse(), Ok(Rate::mbit_per_s(1_000)));
        assert_eq!("128kbit".parse(), Ok(Rate::kbit_per_s(128)));
        assert_eq!("64000bit".parse(), Ok(Rate::kbit_per_s(64)));
    }

    #[test]
    fn mbps_is_refused_with_both_readings() {
        let message = "30mbps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            message,
            "'30mbps' can be read in two ways; write 30mbit if you mean bits, 240mbit if you mean bytes"
        );
    }

    #[test]
    fn nonsense_is_refused_with_advice() {
        for text in ["", "fast", "mbit", "1e3mbit", "inf mbit", "NaNmbit", "--5mbit", "1.2.3mbit"] {
            assert!(
                matches!(text.parse::<Rate>(), Err(ParseRateError::Number(_) | ParseRateError::Unit(_))),
                "{text}"
            );
        }
        for text in ["0mbit", "-5mbit", "99999999999999999999gbit", "0.1bit"] {
            assert!(matches!(text.parse::<Rate>(), Err(ParseRateError::Range(_))), "{text}");
        }
        assert!("20".parse::<Rate>().unwrap_err().to_string().contains("20mbit"));
    }

    #[test]
    fn prints_its_unit() {
        assert_eq!(Rate::mbit_per_s(20).to_string(), "20.0 Mbit/s");
        assert_eq!(Rate::kbit_per_s(512).to_string(), "512.0 kbit/s");
        assert_eq!(Rate::bits_per_s(9).to_string(), "9 bit/s");
    }

    #[test]
    fn rate_of_bytes_in_a_span() {
        assert_eq!(Rate::of(Bytes::new(2_500_000), Duration::from_secs(1)), Rate::mbit_per_s(20));
        assert_eq!(Rate::of(Bytes::new(1), Duration::ZERO), Rate::ZERO);
        assert_eq!(Rate::mbit_per_s(20).scaled(0.95), Rate::mbit_per_s(19));
        assert_eq!(Rate::mbit_per_s(20).scaled(f64::NAN), Rate::ZERO);
    }
}
