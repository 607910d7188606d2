//! The two distributions the intervals need: the binomial and Student's t.

use crate::TAIL;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

/// The 97.5 % quantile of the standard normal distribution.
pub(crate) const NORMAL_975: f64 = 1.959_963_984_540_054;

/// The probability of at least `k` successes among `n` trials of probability `p`, for fractional `k` and `n`
/// by the incomplete beta function: `I_p(k, n - k + 1)` (DLMF 8.17.5).
pub(crate) fn binomial_at_least(k: f64, n: f64, p: f64) -> f64 {
    if k <= 0.0 {
        return 1.0;
    }
    if k >= n + 1.0 {
        return 0.0;
    }
    beta_reg(k, n - k + 1.0, p)
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, fractional ones included.
///
/// Infinite for less than one hundredth of a degree, where the quantile leaves what an `f64` can hold.
pub(crate) fn student_975(freedom: f64) -> f64 {
    if freedom < 0.01 {
        return f64::INFINITY;
    }
    if freedom > 1e4 {
        // Abramowitz and Stegun 26.7.5, first term: exact to 1e-7 here, where the inversion loses digits.
        return NORMAL_975 + (NORMAL_975.powi(3) + NORMAL_975) / (4.0 * freedom);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - TAIL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_tables() {
        // Two-sided 95 % points of Student's t: NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
        for (freedom, expected) in [(1.0, 12.706), (2.0, 4.303), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042)] {
            assert!((student_975(freedom) - expected).abs() < 5e-4, "{freedom}: {}", student_975(freedom));
        }
        assert!((student_975(1e6) - NORMAL_975).abs() < 1e-5);
        assert!(
            (student_975(10_001.0) - student_975(9_999.0)).abs() < 1e-5,
            "the expansion joins the inversion"
        );
    }

    #[test]
    fn whole_trials_give_the_binomial_sum() {
        // P(at least 1 of 6) and P(all 6 of 6) at one half.
        assert!((binomial_at_least(1.0, 6.0, 0.5) - 63.0 / 64.0).abs() < 1e-12);
        assert!((binomial_at_least(6.0, 6.0, 0.5) - 1.0 / 64.0).abs() < 1e-12);
        assert_eq!(binomial_at_least(0.0, 6.0, 0.5), 1.0);
        assert_eq!(binomial_at_least(7.0, 6.0, 0.5), 0.0);
    }
}
