//! The loss share with its interval.

use crate::effective::effective_size_of_share;
use crate::{MIN_SAMPLES, distribution::student_975};

/// Below this many effective probes a loss share gets no limits: a run that short could not bound even a median.
const MIN_EFFECTIVE_PROBES: f64 = 6.0;
/// Fewer separate losses than this and the interval rests on single events.
const FEW_BURSTS: usize = 5;

/// How much a loss figure's interval is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossGrade {
    /// Five bursts of loss or more.
    Ok,
    /// Fewer than five bursts.
    FewEvents,
    /// So few effective probes that no limits are given.
    Insufficient,
}

impl LossGrade {
    /// The word for it in run documents: `ok`, `few events` or `insufficient`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::FewEvents => "few events",
            Self::Insufficient => "insufficient",
        }
    }
}

/// A loss share with its 95 % interval; shares run from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Probes sent.
    pub n: usize,
    /// Probes lost.
    pub lost: usize,
    /// Runs of consecutive losses.
    pub bursts: usize,
    /// Lost over sent; `None` when nothing was sent.
    pub share: Option<f64>,
    /// Lower limit; `None` when the run was too short to give one.
    pub lo: Option<f64>,
    /// Upper limit; `None` when the run was too short to give one.
    pub hi: Option<f64>,
    /// Independent probes that the series is worth.
    pub n_eff: f64,
    /// What the interval is worth.
    pub grade: LossGrade,
}

/// The loss among probes in time order (`true` = lost).
///
/// Wilson's score interval (Wilson 1927) on the effective number of probes, with Student's t at `bursts + 2`
/// degrees of freedom in place of the normal quantile: losses that came in one burst are one event.
pub fn loss(lost_in_time: &[bool]) -> Loss {
    let n = lost_in_time.len();
    let lost = lost_in_time.iter().filter(|&&l| l).count();
    let bursts = lost_in_time.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    let n_eff = effective_size_of_share(lost_in_time);
    let share = (n > 0).then(|| lost as f64 / n as f64);
    let enough = n >= MIN_SAMPLES && n_eff >= MIN_EFFECTIVE_PROBES;
    let interval =
        share.filter(|_| enough).map(|share| wilson(share, n_eff, student_975((bursts + 2) as f64)));
    let grade = match interval {
        None => LossGrade::Insufficient,
        Some(_) if bursts < FEW_BURSTS => LossGrade::FewEvents,
        Some(_) => LossGrade::Ok,
    };
    Loss { n, lost, bursts, share, lo: interval.map(|i| i.0), hi: interval.map(|i| i.1), n_eff, grade }
}

/// Wilson's score interval around `share`, with `z` standard deviations.
fn wilson(share: f64, n: f64, z: f64) -> (f64, f64) {
    let weight = z * z / n;
    let centre = (share + weight / 2.0) / (1.0 + weight);
    let half = z / (1.0 + weight) * (share * (1.0 - share) / n + weight / (4.0 * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_loss_seen_still_has_an_upper_limit() {
        let clean = loss(&[false; 300]);
        assert_eq!(
            (clean.share, clean.lost, clean.lo, clean.grade),
            (Some(0.0), 0, Some(0.0), LossGrade::FewEvents)
        );
        // Rule of three would say 1 %; two degrees of freedom make it wider.
        assert!((0.01..0.07).contains(&clean.hi.unwrap()), "{clean:?}");
    }

    #[test]
    fn a_short_run_has_a_value_and_no_limit() {
        let short = loss(&[true, false, false]);
        assert_eq!((short.hi, short.grade), (None, LossGrade::Insufficient));
        assert!((short.share.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(loss(&[]).share, None);
    }

    #[test]
    fn a_burst_is_worth_less_than_the_same_losses_scattered() {
        let mut burst = [false; 100];
        burst[40..46].fill(true);
        let mut scattered = [false; 100];
        for lost in scattered.iter_mut().step_by(17) {
            *lost = true;
        }
        let (burst, scattered) = (loss(&burst), loss(&scattered));
        assert_eq!((burst.lost, burst.bursts, scattered.lost, scattered.bursts), (6, 1, 6, 6));
        assert!(burst.hi.unwrap() > scattered.hi.unwrap());
    }

    #[test]
    fn the_interval_holds_the_share_and_stays_within_0_and_1() {
        for lost in 0..=100 {
            let series: Vec<bool> = (0..100).map(|i| i * 37 % 100 < lost).collect();
            let result = loss(&series);
            let share = result.share.unwrap();
            if let (Some(lo), Some(hi)) = (result.lo, result.hi) {
                assert!(0.0 <= lo && lo <= share && share <= hi && hi <= 1.0, "{result:?}");
            }
        }
    }
}
