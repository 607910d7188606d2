//! How many independent samples an autocorrelated yes/no series is worth.

use crate::distribution::{NORMAL_975, student_975};
use crate::indicator::Indicator;

/// Batches for the second opinion on the autocorrelation time.
const BATCHES: usize = 10;
/// The small-sample correction of tau divides by the share of the run not covered by its window; never by
/// less than this.
const MIN_UNCOVERED: f64 = 0.2;
/// Below one sample nothing can be said; a hair above it keeps the rank formulas finite.
const MIN_EFFECTIVE: f64 = 1.0001;

/// The autocorrelation time of a series and the window it was summed over.
#[derive(Clone, Copy, Debug)]
struct Autocorrelation {
    /// Samples that are worth one independent sample, at least 1.
    tau: f64,
    /// Lags on both sides and the middle: `2 * last lag + 1`.
    window: f64,
}

/// The effective sample size for a percentile, from the indicator "at or below the percentile's value".
///
/// Geyer's estimate with a t factor for the few windows that fit into a short run, capped by batch means.
pub(crate) fn effective_size(indicator: &[bool]) -> f64 {
    let n = indicator.len() as f64;
    let Some(auto) = autocorrelation(indicator) else { return n };
    let factor = (NORMAL_975 / student_975(n / auto.window)).powi(2);
    let geyer = n / auto.tau * factor;
    geyer.min(batch_size(indicator)).max(MIN_EFFECTIVE)
}

/// The effective sample size for a share: without the t factor, which Wilson's interval brings itself.
pub(crate) fn effective_size_of_share(indicator: &[bool]) -> f64 {
    let n = indicator.len() as f64;
    let Some(auto) = autocorrelation(indicator) else { return n };
    (n / auto.tau).min(batch_size(indicator)).max(MIN_EFFECTIVE)
}

/// The integrated autocorrelation time by the initial monotone positive sequence (Geyer 1992, section 3.3):
/// pairs of lags are summed until the first pair that is not positive, none counting more than the one before
/// it. `None` for a constant series, which has no correlation to estimate.
fn autocorrelation(indicator: &[bool]) -> Option<Autocorrelation> {
    let packed = Indicator::new(indicator);
    let n = indicator.len();
    let variance = packed.centred_square();
    if variance <= 0.0 {
        return None;
    }
    let correlation = |lag: usize| packed.centred_product(lag) / variance;
    let (mut sum, mut smallest, mut last_lag) = (0.0, f64::INFINITY, 0);
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair <= 0.0 {
            break;
        }
        smallest = pair.min(smallest);
        sum += smallest;
        last_lag = lag + 1;
    }
    let window = (2 * last_lag + 1) as f64;
    let tau = (2.0 * sum - 1.0).max(1.0) / (1.0 - window / n as f64).max(MIN_UNCOVERED);
    Some(Autocorrelation { tau, window })
}

/// The sample size by the scatter of batch means: sees slow correlation that Geyer's window may cut off.
fn batch_size(indicator: &[bool]) -> f64 {
    let n = indicator.len() as f64;
    let length = indicator.len() / BATCHES;
    let mean = share(indicator);
    let variance = mean * (1.0 - mean);
    if length == 0 || variance <= 0.0 {
        return n;
    }
    let means: Vec<f64> = indicator.chunks_exact(length).take(BATCHES).map(share).collect();
    let middle = means.iter().sum::<f64>() / BATCHES as f64;
    let scatter = means.iter().map(|m| (m - middle).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    n / (length as f64 * scatter / variance).max(1.0)
}

fn share(indicator: &[bool]) -> f64 {
    indicator.iter().filter(|&&yes| yes).count() as f64 / indicator.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_series_counts_in_full() {
        assert_eq!(effective_size(&[true; 40]), 40.0);
        assert_eq!(effective_size_of_share(&[false; 40]), 40.0);
        assert_eq!(effective_size(&[]), 0.0);
    }

    #[test]
    fn an_alternating_series_is_never_worth_more_than_its_samples() {
        let series: Vec<bool> = (0..200).map(|i| i % 2 == 0).collect();
        assert!(effective_size(&series) <= 200.0);
    }

    #[test]
    fn one_step_in_the_middle_is_worth_almost_nothing() {
        let series: Vec<bool> = (0..200).map(|i| i < 100).collect();
        assert!(effective_size(&series) < 3.0, "{}", effective_size(&series));
    }
}
