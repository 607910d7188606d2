//! A histogram of durations in fixed memory. Own code instead of a package, since recording is a handful of
//! instructions on the path of every packet and the memory is a plain array.

use std::time::Duration;

/// Each power of two is divided into this many parts, so that a value is known to 1/16 of itself.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 4;
/// The whole range of u64 nanoseconds: 16 exact values, then 60 powers of two.
const BUCKETS: usize = PARTS * (64 - PART_BITS as usize + 1);

/// Counts of durations on a scale that is linear within and logarithmic between powers of two nanoseconds.
/// Quantiles are exact to 1 part in 32. Counts only grow; the difference of two snapshots is a histogram again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0 }
    }
}

impl Histogram {
    /// Adds one duration.
    pub fn record(&mut self, span: Duration) {
        self.record_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds one duration in nanoseconds.
    #[inline]
    pub(crate) fn record_nanos(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
    }

    /// Number of durations recorded.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The duration at quantile `q` (0 to 1, nearest rank): the middle of its bucket. `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((q.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(index, count)| {
            seen += count;
            (seen >= rank).then(|| Duration::from_nanos(middle(index)))
        })
    }

    /// What was recorded since `earlier`, a snapshot of this histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (count, before) in difference.counts.iter_mut().zip(earlier.counts.iter()) {
            *count = count.saturating_sub(*before);
        }
        difference.total = difference.counts.iter().sum();
        difference
    }
}

/// The bucket of a value: the position of its highest bit and the `PART_BITS` bits below.
fn bucket(nanos: u64) -> usize {
    if nanos < PARTS as u64 {
        return nanos as usize;
    }
    let shift = 63 - nanos.leading_zeros() - PART_BITS;
    let part = (nanos >> shift) as usize - PARTS;
    PARTS * (shift as usize + 1) + part
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let shift = bucket / PARTS - 1;
    let lowest = ((PARTS + bucket % PARTS) as u64) << shift;
    lowest + (1_u64 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_one_to_a_hundred_milliseconds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for ms in 1..=100 {
            histogram.record(Duration::from_millis(ms));
        }
        for (q, exact) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            let got = histogram.quantile(q).unwrap().as_secs_f64() * 1e3;
            assert!((got / exact - 1.0).abs() < 1.0 / 32.0, "q {q}: {got}");
        }
        assert_eq!(histogram.len(), 100);
    }

    #[test]
    fn the_difference_of_snapshots_holds_what_came_between() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_secs(1));
        let before = histogram.clone();
        histogram.record(Duration::from_micros(10));
        let between = histogram.since(&before);
        assert_eq!(between.len(), 1);
        assert_eq!(between.quantile(1.0), between.quantile(0.0));
        assert!(between.quantile(0.5).unwrap() < Duration::from_micros(11));
    }

    proptest! {
        #[test]
        fn every_value_falls_into_a_bucket_around_it(nanos: u64) {
            let at = bucket(nanos);
            prop_assert!(at < BUCKETS);
            prop_assert!(middle(at).abs_diff(nanos) <= nanos / 32 + 1);
            prop_assert!(nanos == u64::MAX || bucket(nanos + 1) >= at);
        }
    }
}
