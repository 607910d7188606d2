//! The Hodges-Lehmann estimate with its exact interval and the exact signed-rank test.

/// Below this many rounds no 95 % interval exists: 2/2^5 is more than 5 %.
pub const MIN_ROUNDS: usize = 6;

/// The estimate and the two intervals of a location, all from the Walsh averages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Location {
    /// The median of the Walsh averages (Hodges and Lehmann 1963).
    pub(super) estimate: f64,
    /// The 95 % interval; `None` below six rounds.
    pub(super) interval: Option<(f64, f64)>,
    /// The 90 % interval: its ends are one-sided 95 % bounds. `None` below five rounds.
    pub(super) interval_90: Option<(f64, f64)>,
}

/// Estimates the centre of symmetric differences; `None` without any.
pub(super) fn location(differences: &[f64]) -> Option<Location> {
    let averages = walsh_averages(differences);
    let middle = averages.len().checked_sub(1)?;
    let estimate = f64::midpoint(averages[middle / 2], averages[middle.div_ceil(2)]);
    let null = Null::untied(differences.len());
    let interval = |tail: f64| {
        let cut = null.largest_with_tail(tail)?;
        Some((averages[cut], averages[averages.len() - 1 - cut]))
    };
    Some(Location { estimate, interval: interval(0.025), interval_90: interval(0.05) })
}

/// Means of all pairs, each value with itself included, sorted.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(i, &a)| differences[i..].iter().map(move |&b| f64::midpoint(a, b)))
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// The exact two-sided p of Wilcoxon's signed-rank test; 1 where nothing is left.
///
/// Zeros are left out and tied sizes share their mean rank, against the distribution without ties: so the test
/// rejects exactly when the interval excludes zero, which the Walsh averages do not know of ties either.
pub fn signed_rank_p(differences: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    sizes.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut positive, mut negative, mut before) = (0.0, 0.0, 0.0);
    for tied in sizes.chunk_by(|a, b| a.abs() == b.abs()) {
        let mean_rank = before + (tied.len() + 1) as f64 / 2.0;
        before += tied.len() as f64;
        let up = tied.iter().filter(|d| **d > 0.0).count() as f64;
        positive += mean_rank * up;
        negative += mean_rank * (tied.len() as f64 - up);
    }
    (2.0 * Null::untied(sizes.len()).at_most(f64::min(positive, negative).ceil() as usize)).min(1.0)
}

/// The distribution of the sum of positive ranks when each sign is a fair coin.
struct Null {
    /// Probability of each sum.
    probabilities: Vec<f64>,
}

impl Null {
    /// For the ranks 1 to n.
    fn untied(n: usize) -> Self {
        let mut probabilities = vec![1.0];
        for rank in 1..=n {
            let mut next = vec![0.0; probabilities.len() + rank];
            for (sum, probability) in probabilities.iter().enumerate() {
                next[sum] += 0.5 * probability;
                next[sum + rank] += 0.5 * probability;
            }
            probabilities = next;
        }
        Self { probabilities }
    }

    fn at_most(&self, sum: usize) -> f64 {
        self.probabilities.iter().take(sum + 1).sum()
    }

    /// The largest sum that, with all below it, has no more than `tail`; it is also the index of the Walsh
    /// average that bounds the interval.
    fn largest_with_tail(&self, tail: f64) -> Option<usize> {
        let mut below = 0.0;
        // Sums of halves are exact enough: no probability here comes closer to a tail than 1e-12.
        let inside = self.probabilities.iter().take_while(|&&p| {
            below += p;
            below <= tail + 1e-12
        });
        inside.count().checked_sub(1)
    }
}

/// Adjusted p of a family, in the order given (Holm 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((p[i] * (p.len() - rank) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_critical_values() {
        // Wilcoxon's table, two-sided 5 %: the largest sum of ranks that rejects.
        for (n, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (16, 29), (20, 52)] {
            assert_eq!(Null::untied(n).largest_with_tail(0.025), Some(critical), "{n}");
        }
        assert_eq!(Null::untied(5).largest_with_tail(0.025), None);
    }

    #[test]
    fn the_interval_excludes_zero_exactly_when_the_test_rejects() {
        for shift in 0..60 {
            let differences: Vec<f64> = [-3.1, 0.7, 2.2, -1.4, 5.3, 0.2, -0.9, 1.8]
                .iter()
                .map(|d| d + 0.1 * f64::from(shift))
                .collect();
            let (low, high) = location(&differences).unwrap().interval.unwrap();
            assert_eq!(low > 0.0 || high < 0.0, signed_rank_p(&differences) <= 0.05, "{shift}");
        }
    }

    #[test]
    fn holm_multiplies_and_never_decreases() {
        assert_eq!(holm(&[0.03, 0.01, 0.04]), [0.06, 0.03, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        assert_eq!(location(&[]), None);
        assert_eq!(signed_rank_p(&[]), 1.0);
        assert_eq!(signed_rank_p(&[0.0; 9]), 1.0);
        let five = location(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((five.estimate, five.interval, five.interval_90), (3.0, None, Some((1.0, 5.0))));
    }
}
