//! A limit that changes over one round trip instead of at once.

use std::time::Duration;
use units::Timestamp;

/// Bytes that a connection may have under way, moving from one value to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    from: u64,
    to: u64,
    since: Timestamp,
    /// How long the way takes.
    span: Duration,
}

impl Limit {
    /// From what the peer may send now to `to`.
    pub fn new(now: Timestamp, from: u64, to: u64, span: Duration) -> Self {
        Self { from, to, since: now, span }
    }

    /// The value at `now`.
    pub fn at(&self, now: Timestamp) -> u64 {
        let (gone, span) = ((now - self.since).as_nanos(), self.span.as_nanos());
        if gone >= span {
            return self.to;
        }
        let way = u128::from(self.from.abs_diff(self.to)) * gone / span;
        let way = way as u64; // at most the difference of two u64
        if self.from < self.to { self.from + way } else { self.from - way }
    }

    /// The value that it moves to.
    pub fn target(&self) -> u64 {
        self.to
    }

    /// Towards another value, from where it is.
    pub fn aim(&mut self, now: Timestamp, to: u64, span: Duration) {
        if to != self.to {
            *self = Self::new(now, self.at(now), to, span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_evenly_up_and_down() {
        let ms = Timestamp::from_millis;
        let mut limit = Limit::new(ms(0), 100_000, 20_000, Duration::from_millis(40));
        assert_eq!([0, 10, 20, 40, 90].map(|at| limit.at(ms(at))), [100_000, 80_000, 60_000, 20_000, 20_000]);
        limit.aim(ms(20), 120_000, Duration::from_millis(20));
        assert_eq!([20, 30, 40].map(|at| limit.at(ms(at))), [60_000, 90_000, 120_000]);
        limit.aim(ms(30), 120_000, Duration::from_millis(20));
        assert_eq!(limit.at(ms(30)), 90_000, "the same aim changes nothing");
    }
}
