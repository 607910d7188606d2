//! A kernel density of the body that can be evaluated fast at any shift.

/// At most this many order statistics stand for the body.
const MAX_POINTS: usize = 256;
/// Finer than any clock and timer here; keeps the density of a constant series finite.
const MIN_BANDWIDTH_MS: f64 = 0.3;

/// The density of a sample, with a kernel that falls off exponentially on both sides.
///
/// The right side may fall off slower: that is the body delayed by a timer that fires late.
pub(super) struct Density {
    points: Vec<f64>,
    left_ms: f64,
    right_ms: f64,
    /// For each point, the sum over all points at or below of the right flank's weight there.
    from_below: Vec<f64>,
    /// The same from above with the left flank.
    from_above: Vec<f64>,
}

impl Density {
    /// The density of a sorted, non-empty sample whose values come late by `late_ms` in the mean.
    pub(super) fn new(sorted: &[f64], late_ms: f64) -> Self {
        let points = thin(sorted);
        let left_ms = bandwidth(sorted);
        let right_ms = left_ms + late_ms;
        let from_below = accumulate(points.iter().copied(), right_ms);
        let mut from_above = accumulate(points.iter().rev().map(|v| -v), left_ms);
        from_above.reverse();
        Self { points, left_ms, right_ms, from_below, from_above }
    }

    /// Silverman's bandwidth, in ms.
    pub(super) fn bandwidth_ms(&self) -> f64 {
        self.left_ms
    }

    /// The density at a value, per ms.
    pub(super) fn at(&self, value: f64) -> f64 {
        let next = self.points.partition_point(|&p| p <= value);
        let below = next
            .checked_sub(1)
            .map_or(0.0, |i| self.from_below[i] * (-(value - self.points[i]) / self.right_ms).exp());
        let above = self
            .points
            .get(next)
            .map_or(0.0, |p| self.from_above[next] * (-(p - value) / self.left_ms).exp());
        (below + above) / (self.points.len() as f64 * (self.left_ms + self.right_ms))
    }
}

/// Running sums of `exp(-distance / scale)` over all earlier points.
fn accumulate(ascending: impl Iterator<Item = f64>, scale: f64) -> Vec<f64> {
    let mut last = None;
    ascending
        .map(|point| {
            let sum =
                last.map_or(1.0, |(before, sum): (f64, f64)| 1.0 + sum * (-(point - before) / scale).exp());
            last = Some((point, sum));
            sum
        })
        .collect()
}

/// Evenly spaced order statistics.
pub(super) fn thin(sorted: &[f64]) -> Vec<f64> {
    let n = sorted.len();
    if n <= MAX_POINTS {
        return sorted.to_vec();
    }
    (0..MAX_POINTS).map(|i| sorted[(i * n + n / 2) / MAX_POINTS]).collect()
}

/// Silverman's rule of thumb (1986, equation 3.31) on the interquartile range.
fn bandwidth(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let spread = sorted[n * 3 / 4] - sorted[n / 4];
    (0.9 * spread / 1.34 * (n as f64).powf(-0.2)).max(MIN_BANDWIDTH_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(points: &[f64], left: f64, right: f64, value: f64) -> f64 {
        let kernel = |u: f64| if u < 0.0 { (u / left).exp() } else { (-u / right).exp() };
        points.iter().map(|p| kernel(value - p)).sum::<f64>() / (points.len() as f64 * (left + right))
    }

    #[test]
    fn the_running_sums_equal_the_sum_over_all_kernels() {
        let points: Vec<f64> = [1.0, 1.0, 2.5, 4.0, 9.0, 30.0].to_vec();
        let density = Density::new(&points, 4.0);
        for value in [-3.0, 0.5, 1.0, 2.0, 8.9, 12.0, 31.0, 70.0] {
            let expected = direct(&points, density.left_ms, density.right_ms, value);
            assert!((density.at(value) - expected).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn it_integrates_to_one() {
        let points: Vec<f64> = (0..1000).map(|i| f64::from(i % 37)).collect::<Vec<_>>();
        let mut sorted = points;
        sorted.sort_by(f64::total_cmp);
        let density = Density::new(&sorted, 16.0);
        let total: f64 = (-2000..10_000).map(|i| density.at(f64::from(i) * 0.05) * 0.05).sum();
        assert!((total - 1.0).abs() < 0.01, "{total}");
    }
}
