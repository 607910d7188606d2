//! Amounts of data.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A number of bytes. Sums saturate, differences stop at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The bare number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u32> for Bytes {
    fn from(n: u32) -> Self {
        Self(u64::from(n))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

/// Decimal prefixes, as rates have them: `1500 B`, `48.0 KB`, `20.0 MB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} B"),
            n if n < 10_000_000 => write!(f, "{:.1} KB", n as f64 / 1e3),
            n => write!(f, "{:.1} MB", n as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_differences_stop_at_zero() {
        assert_eq!(Bytes::new(u64::MAX) + Bytes::new(1), Bytes::new(u64::MAX));
        assert_eq!(Bytes::new(1) - Bytes::new(2), Bytes::ZERO);
        assert_eq!([1, 2, 3].map(Bytes::new).into_iter().sum::<Bytes>(), Bytes::new(6));
    }

    #[test]
    fn prints_its_unit() {
        assert_eq!(Bytes::new(1500).to_string(), "1500 B");
        assert_eq!(Bytes::new(48_000).to_string(), "48.0 KB");
        assert_eq!(Bytes::new(20_000_000).to_string(), "20.0 MB");
    }
}
