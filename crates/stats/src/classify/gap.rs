//! Step 1: gaps beneath the largest samples that a smooth tail would hardly leave.

/// A range without samples, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The largest sample beneath it.
    pub from_ms: f64,
    /// The smallest sample above it.
    pub to_ms: f64,
}

impl Gap {
    /// Its width in ms.
    pub fn width_ms(self) -> f64 {
        self.to_ms - self.from_ms
    }
}

/// A gap with the samples above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) gap: Gap,
    /// How many samples lie above.
    pub(super) above: usize,
    /// The probability of such a gap under a smooth tail.
    pub(super) probability: f64,
}

/// No retransmission timer is shorter than its margin above the base: 200 ms (Linux's minimum), less slack.
const MIN_ABOVE_BASE_MS: f64 = 150.0;
const MIN_WIDTH_MS: f64 = 25.0;
/// More than this share of first attempts lost and the rest is no body any more.
const MAX_SHARE_ABOVE: f64 = 0.42;
const MAX_PROBABILITY: f64 = 0.02;
/// Shape of the generalised Pareto tail: heavier than exponential, finite variance (Pickands 1975).
const TAIL_SHAPE: f64 = 0.25;
/// No run has more gaps worth a look; keeps the work bounded on wild data.
const MAX_CANDIDATES: usize = 12;

/// The least probable gaps of a sorted series.
pub(super) fn candidates(sorted: &[f64]) -> Vec<Candidate> {
    let n = sorted.len();
    if n < 2 {
        return Vec::new();
    }
    let base = sorted[n / 50];
    let first = n - ((n as f64 * MAX_SHARE_ABOVE) as usize).min(n - 1);
    // Sums from the bottom, so that each mean excess is one subtraction.
    let median = sorted[n / 2];
    let mut excess_sum: f64 = sorted[n / 2..first].iter().map(|v| v - median).sum();
    let mut found = Vec::new();
    for split in first..n {
        let gap = Gap { from_ms: sorted[split - 1], to_ms: sorted[split] };
        let count = (split - n / 2).max(1);
        if gap.width_ms() >= MIN_WIDTH_MS && gap.to_ms >= base + MIN_ABOVE_BASE_MS {
            let scale = (excess_sum / count as f64).max(0.05) * (1.0 - TAIL_SHAPE);
            let above = n - split;
            let probability = probability(gap, median, scale, above);
            if probability <= MAX_PROBABILITY {
                found.push(Candidate { gap, above, probability });
            }
        }
        excess_sum += sorted[split] - median;
    }
    found.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    found.truncate(MAX_CANDIDATES);
    found
}

/// The probability that the `above` exceedances over the gap's lower end all stay above its upper end, under a
/// generalised Pareto tail over the median: exceedances over a higher threshold are of the same family with a
/// scale that grows by the shape (Davison and Smith 1990, section 2).
fn probability(gap: Gap, median: f64, scale: f64, above: usize) -> f64 {
    let scale_here = scale + TAIL_SHAPE * (gap.from_ms - median).max(0.0);
    (1.0 + TAIL_SHAPE * gap.width_ms() / scale_here).powf(-(above as f64) / TAIL_SHAPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An even body from 20 to 30 ms with a cluster above it.
    fn with_cluster(cluster: &[f64]) -> Vec<f64> {
        (0..200).map(|i| 20.0 + f64::from(i) / 20.0).chain(cluster.iter().copied()).collect()
    }

    #[test]
    fn the_gap_beneath_a_cluster_is_the_least_probable() {
        let found = candidates(&with_cluster(&[1020.0, 1024.0, 1027.0]));
        assert_eq!((found[0].above, found[0].gap), (3, Gap { from_ms: 29.95, to_ms: 1020.0 }));
        assert!(found[0].probability < 1e-6, "{found:?}");
    }

    #[test]
    fn no_timer_is_as_short_as_a_near_cluster() {
        assert!(candidates(&with_cluster(&[120.0, 121.0])).is_empty());
        assert!(
            candidates(&[]).is_empty() && candidates(&[5.0]).is_empty() && candidates(&[5.0; 50]).is_empty()
        );
    }

    #[test]
    fn more_samples_above_make_a_gap_less_probable() {
        let gap = Gap { from_ms: 30.0, to_ms: 230.0 };
        assert!(probability(gap, 25.0, 5.0, 3) < probability(gap, 25.0, 5.0, 2));
        assert!(
            probability(gap, 25.0, 5.0, 2) < probability(gap, 25.0, 50.0, 2),
            "a wide body leaves wide gaps"
        );
    }
}
