//! Durations in bounded memory.

use std::time::Duration;

/// Durations, all of them up to a limit, and from there on every second, fourth, ... one: quantiles are exact up to
/// the limit and rest on at least half of it beyond. Count, minimum and maximum are always exact.
#[derive(Clone, Debug)]
pub struct Samples {
    kept: Vec<Duration>,
    limit: usize,
    /// Every how many-th is kept; a power of two.
    stride: u64,
    count: u64,
    min: Duration,
    max: Duration,
}

impl Samples {
    /// An empty collection that keeps at most `limit` (at least two) durations.
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit: limit.max(2),
            stride: 1,
            count: 0,
            min: Duration::MAX,
            max: Duration::ZERO,
        }
    }

    /// Adds one.
    pub fn record(&mut self, span: Duration) {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() == self.limit {
                let mut index = 0_usize;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.count.is_multiple_of(self.stride) {
                self.kept.push(span);
            }
        }
        self.count += 1;
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest one.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest one.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.max)
    }

    /// The middle one, or the mean of the two in the middle.
    pub fn median(&self) -> Option<Duration> {
        let sorted = self.sorted();
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = if sorted.len().is_multiple_of(2) { sorted[sorted.len() / 2 - 1] } else { upper };
        Some((lower + upper) / 2)
    }

    /// The one at quantile `q` (0 to 1) by nearest rank.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let sorted = self.sorted();
        let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }

    fn sorted(&self) -> Vec<Duration> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64, limit: usize) -> Samples {
        let mut samples = Samples::new(limit);
        for n in 0..count {
            samples.record(Duration::from_millis(n * 7919 % count)); // 0..count, shuffled by a prime
        }
        samples
    }

    #[test]
    fn exact_up_to_the_limit() {
        let samples = of(10, 10);
        assert_eq!(samples.median(), Some(Duration::from_micros(4_500)));
        assert_eq!(samples.quantile(0.9), Some(Duration::from_millis(8)));
        assert_eq!(samples.quantile(0.0), samples.min());
        assert_eq!(samples.quantile(1.0), samples.max());
        assert_eq!(Samples::new(5).median(), None);
        assert_eq!(Samples::new(5).quantile(0.5), None);
    }

    #[test]
    fn close_beyond_it_in_bounded_memory() {
        let samples = of(100_000, 1_000);
        assert!(samples.kept.len() <= 1_000 && samples.kept.len() >= 500);
        assert_eq!(samples.count(), 100_000);
        assert_eq!(samples.max(), Some(Duration::from_millis(99_999)));
        let median = samples.median().map_or(0, |m| m.as_millis());
        assert!((47_000..53_000).contains(&median), "{median}");
    }
}
