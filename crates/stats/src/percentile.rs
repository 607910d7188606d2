//! Percentiles with their interval, effective sample size and grade.

use crate::effective::effective_size;
use crate::rank::ranks;
use crate::{TAIL, rank::Ranks};
use std::fmt;
use units::Ratio;

/// Below this many samples no interval is given: the correlation cannot be estimated.
pub const MIN_SAMPLES: usize = 20;
/// Effective samples expected on the thin side of a percentile for its interval to be more than rough.
const FIRM_EXCEEDANCES: f64 = 10.0;
/// Above this percentile the effective size is also capped by the one here: far out in the tail too few
/// samples are left to see the correlation.
const TAIL_ANCHOR: f64 = 0.9;

/// How much a percentile's interval is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Bounded on both sides, at least ten effective samples beyond the percentile.
    Ok,
    /// Bounded on both sides, by fewer than ten effective samples beyond the percentile.
    Rough,
    /// Too few samples: at least one side is not bounded by the data.
    Insufficient,
}

impl Grade {
    /// The word for it in run documents: `ok`, `rough` or `insufficient`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Rough => "rough",
            Self::Insufficient => "insufficient",
        }
    }
}

/// One percentile of a series, in the series' own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// The order statistic of rank `ceil(n * p)`; `None` for an empty series and where it falls on a lost probe.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval; `None` when the data do not bound it.
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval; `None` when the data do not bound it, as with a lost probe at that rank.
    pub hi: Option<f64>,
    /// Independent samples that the series is worth at this percentile.
    pub n_eff: f64,
    /// What the interval is worth.
    pub grade: Grade,
}

/// A series held a value that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANumber {
    /// Where it stands in the series, counted from zero.
    pub index: usize,
}

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sample {} is not a number", self.index)
    }
}

impl std::error::Error for NotANumber {}

/// Samples in time order; a lost probe is `f64::INFINITY`.
#[derive(Clone, Debug)]
pub struct Series {
    in_time: Vec<f64>,
    sorted: Vec<f64>,
}

impl Series {
    /// Takes samples in the order in which they were sent.
    ///
    /// # Errors
    /// When a sample is not a number.
    pub fn new(in_time: Vec<f64>) -> Result<Self, NotANumber> {
        if let Some(index) = in_time.iter().position(|v| v.is_nan()) {
            return Err(NotANumber { index });
        }
        let mut sorted = in_time.clone();
        sorted.sort_by(f64::total_cmp);
        Ok(Self { in_time, sorted })
    }

    /// The number of samples, lost ones included.
    pub const fn len(&self) -> usize {
        self.in_time.len()
    }

    /// Whether there is no sample at all.
    pub const fn is_empty(&self) -> bool {
        self.in_time.is_empty()
    }

    /// The `p` quantile with its 95 % interval.
    pub fn percentile(&self, p: Ratio) -> Percentile {
        let p = p.get();
        let Some(value) = self.order_statistic(p) else {
            return Percentile { value: None, lo: None, hi: None, n_eff: 0.0, grade: Grade::Insufficient };
        };
        let n_eff = self.effective_size(p);
        let Ranks { lower, upper } = self.bounding_ranks(n_eff, p);
        let lo = lower.and_then(|rank| finite(self.sorted[rank - 1]));
        let hi = upper.and_then(|rank| finite(self.sorted[rank - 1]));
        Percentile {
            value: finite(value),
            lo,
            hi,
            n_eff,
            grade: grade(n_eff, p, lo.is_some() && hi.is_some()),
        }
    }

    fn bounding_ranks(&self, n_eff: f64, p: f64) -> Ranks {
        if self.len() < MIN_SAMPLES {
            return Ranks { lower: None, upper: None };
        }
        ranks(self.len(), n_eff, p)
    }

    fn effective_size(&self, p: f64) -> f64 {
        let own = self.effective_size_at(p);
        if p > TAIL_ANCHOR { own.min(self.effective_size_at(TAIL_ANCHOR)) } else { own }
    }

    fn effective_size_at(&self, p: f64) -> f64 {
        let Some(value) = self.order_statistic(p) else { return 0.0 };
        let below: Vec<bool> = self.in_time.iter().map(|&v| v <= value).collect();
        effective_size(&below)
    }

    /// The order statistic of rank `ceil(n * p)`, at least the first; a product that misses a whole number only
    /// by rounding counts as that number.
    fn order_statistic(&self, p: f64) -> Option<f64> {
        let rank = (self.len() as f64 * p - 1e-9).ceil().max(1.0) as usize;
        self.sorted.get(rank - 1).copied()
    }
}

fn grade(n_eff: f64, p: f64, bounded: bool) -> Grade {
    if !bounded {
        Grade::Insufficient
    } else if n_eff * p.min(1.0 - p) < FIRM_EXCEEDANCES {
        Grade::Rough
    } else {
        Grade::Ok
    }
}

/// How many effective samples a finite interval of the `p` quantile takes: 6 for the median, 36 for p90, 72 for
/// p95, 368 for p99. `None` for 0 and 1, which no number of samples bounds.
pub fn needed_n_eff(p: Ratio) -> Option<u64> {
    let thick_side = p.get().max(1.0 - p.get());
    (thick_side < 1.0).then(|| (TAIL.ln() / thick_side.ln()).ceil() as u64)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(percent: f64) -> Ratio {
        Ratio::from_percent(percent).unwrap()
    }

    fn noise(n: u64) -> Vec<f64> {
        // A full-period multiplicative walk: each residue once, in no order that matters.
        (1..=n).map(|i| (i * 7919 % 10_007) as f64).collect()
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let none = Series::new(Vec::new()).unwrap().percentile(p(50.0));
        assert_eq!((none.value, none.lo, none.hi, none.grade), (None, None, None, Grade::Insufficient));
    }

    #[test]
    fn nineteen_samples_have_a_value_and_no_interval() {
        let few = Series::new(noise(19)).unwrap().percentile(p(50.0));
        assert!(few.value.is_some());
        assert_eq!((few.lo, few.hi, few.grade), (None, None, Grade::Insufficient));
    }

    #[test]
    fn a_nan_is_refused_with_its_place() {
        assert_eq!(Series::new(vec![1.0, f64::NAN]).unwrap_err(), NotANumber { index: 1 });
    }

    #[test]
    fn lost_probes_leave_the_upper_side_open() {
        let mut samples = noise(400);
        for lost in samples.iter_mut().step_by(10) {
            *lost = f64::INFINITY;
        }
        let series = Series::new(samples).unwrap();
        assert!(series.percentile(p(50.0)).hi.is_some());
        let tail = series.percentile(p(95.0));
        assert_eq!((tail.value, tail.hi, tail.grade), (None, None, Grade::Insufficient));
    }

    #[test]
    fn the_sizes_a_finite_limit_needs() {
        assert_eq!([50.0, 90.0, 95.0, 99.0].map(|q| needed_n_eff(p(q)).unwrap()), [6, 36, 72, 368]);
        assert_eq!(needed_n_eff(Ratio::ONE), None);
    }
}
