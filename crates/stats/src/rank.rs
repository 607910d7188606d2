//! Which order statistics bound a percentile (Woodruff 1952; fractional sizes: Korn and Graubard 1998).

use crate::TAIL;
use crate::distribution::binomial_at_least;

/// Ranks from 1 to n of the bounding order statistics; `None` where the data do not bound that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) lower: Option<usize>,
    pub(crate) upper: Option<usize>,
}

/// The ranks between which the `p` quantile lies with 95 % confidence, in a series of `n` samples that is worth
/// `n_eff` independent ones.
///
/// A rank k of n stands for the rank `k * n_eff / n` of an independent sample. The lower one is the largest whose
/// predecessor leaves at most 2.5 % below, the upper one the smallest that leaves at most 2.5 % above; where
/// fractional ranks fall between whole ones, both are taken on the wide side.
pub(crate) fn ranks(n: usize, n_eff: f64, p: f64) -> Ranks {
    let scale = n_eff / n.max(1) as f64;
    let misses_below =
        |rank: usize| 1.0 - binomial_at_least((rank - 1) as f64 * scale + 1.0, n_eff, p) <= TAIL;
    let misses_above = |rank: usize| binomial_at_least(rank as f64 * scale, n_eff, p) <= TAIL;
    let last_below = first_rank(n, |rank| !misses_below(rank)) - 1;
    let first_above = first_rank(n, misses_above);
    Ranks { lower: (last_below > 0).then_some(last_below), upper: (first_above <= n).then_some(first_above) }
}

/// The first rank from 1 to n for which a monotone condition holds; n + 1 if there is none.
fn first_rank(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, n + 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_needs_six_samples() {
        assert_eq!(ranks(5, 5.0, 0.5), Ranks { lower: None, upper: None });
        assert_eq!(ranks(6, 6.0, 0.5), Ranks { lower: Some(1), upper: Some(6) });
    }

    #[test]
    fn a_p99_of_367_samples_has_no_upper_limit() {
        assert_eq!(ranks(367, 367.0, 0.99).upper, None);
        assert_eq!(ranks(368, 368.0, 0.99).upper, Some(368));
    }

    #[test]
    fn fewer_effective_samples_never_narrow_the_interval() {
        for p in [0.5, 0.9, 0.95, 0.99] {
            let mut wide = Ranks { lower: None, upper: None };
            for n_eff in (2..=600).map(f64::from) {
                let narrow = ranks(600, n_eff, p);
                assert!(narrow.lower.unwrap_or(0) + 3 >= wide.lower.unwrap_or(0), "{p} {n_eff}");
                wide = narrow;
            }
            assert!(ranks(600, 600.0, p).lower > ranks(600, 60.0, p).lower);
        }
    }
}
