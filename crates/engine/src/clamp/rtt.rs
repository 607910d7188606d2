//! The smallest round trip of the last minutes.

use std::time::Duration;
use units::Timestamp;

/// A minimum is kept for one to two spans of this length.
const SPAN: Duration = Duration::from_secs(300);

/// Minimum over a window that moves on by whole spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BaseRtt {
    span_start: Timestamp,
    /// Of the present span and of the one before.
    minima: [Option<Duration>; 2],
}

impl BaseRtt {
    pub fn on_sample(&mut self, now: Timestamp, rtt: Duration) {
        if self.minima == [None; 2] {
            self.span_start = now;
        }
        let age = now - self.span_start;
        if age >= SPAN {
            self.minima = [None, if age < SPAN * 2 { self.minima[0] } else { None }];
            self.span_start = now;
        }
        self.minima[0] = Some(self.minima[0].map_or(rtt, |min| min.min(rtt)));
    }

    pub fn get(&self) -> Option<Duration> {
        self.minima.iter().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_is_forgotten_after_five_to_ten_minutes() {
        let mut base = BaseRtt::default();
        let at = |s: u64| Timestamp::from_millis(s * 1_000);
        base.on_sample(at(1_000), Duration::from_millis(20));
        base.on_sample(at(1_001), Duration::from_millis(50));
        assert_eq!(base.get(), Some(Duration::from_millis(20)));
        base.on_sample(at(1_301), Duration::from_millis(50));
        assert_eq!(base.get(), Some(Duration::from_millis(20)));
        base.on_sample(at(1_602), Duration::from_millis(50));
        assert_eq!(base.get(), Some(Duration::from_millis(50)));
    }
}
