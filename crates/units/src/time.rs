//! A point in time on one clock.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since the epoch of the clock that produced it.
///
/// Which clock that is, the caller knows: pure code only compares and subtracts. Arithmetic saturates at both
/// ends, so an early `now` gives a zero span instead of a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The clock's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every real time; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The point `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This point moved back by `span`, not before the epoch.
    pub const fn saturating_back(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

/// A span in whole nanoseconds, saturated at 584 years.
const fn nanos(span: Duration) -> u64 {
    let n = span.as_nanos();
    if n > u64::MAX as u128 { u64::MAX } else { n as u64 }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

/// The span between two points; zero when the right side is later.
impl Sub for Timestamp {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::ZERO - Timestamp::MAX, Duration::ZERO);
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(1).saturating_back(Duration::from_secs(1)), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn units_agree() {
        assert_eq!(Timestamp::from_millis(3), Timestamp::from_micros(3_000));
        assert_eq!(Timestamp::from_micros(3).as_nanos(), 3_000);
        assert_eq!(Timestamp::from_millis(1_500).as_secs_f64(), 1.5);
    }
}
