//! One endpoint: the paired differences of the rounds and what they show.

use super::floor::Floor;
use super::walsh::{location, signed_rank_p};

/// What the rounds show of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs of rounds with a difference.
    pub rounds: usize,
    /// Pairs left out because one arm has no finite value.
    pub missing: usize,
    /// Hodges-Lehmann estimate of B minus A; `None` without rounds.
    pub estimate: Option<f64>,
    /// Lower end of the 95 % interval; `None` below six rounds.
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval.
    pub hi: Option<f64>,
    /// The noise floor; `None` where no control was measured.
    pub floor: Option<f64>,
    /// No change larger than this, with 95 % confidence in each direction; `None` below five rounds.
    pub bound: Option<f64>,
    /// Exact two-sided p of the signed-rank test.
    pub p: f64,
    /// What that amounts to.
    pub change: Change,
}

/// Which way B differs from A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// B is higher by more than the floor.
    Higher,
    /// B is lower by more than the floor.
    Lower,
    /// The interval excludes zero, but not the floor.
    NotCredible,
    /// No difference shown.
    NoneShown,
}

impl Change {
    /// The word for it in run documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NotCredible => "not_credible",
            Self::NoneShown => "no_difference_shown",
        }
    }
}

/// B minus A for each pair in which both arms have a value, and the number of pairs without.
pub fn differences(pairs: &[(Option<f64>, Option<f64>)]) -> (Vec<f64>, usize) {
    let finite: Vec<f64> =
        pairs.iter().filter_map(|(a, b)| Some((*b)? - (*a)?)).filter(|d| d.is_finite()).collect();
    let missing = pairs.len() - finite.len();
    (finite, missing)
}

/// Compares by the differences B minus A, one for each pair of rounds; those that are not finite are missing.
pub fn compare(differences: &[f64], floor: &Floor) -> Comparison {
    let finite: Vec<f64> = differences.iter().copied().filter(|d| d.is_finite()).collect();
    let location = location(&finite);
    let interval = location.and_then(|l| l.interval);
    let floor = floor.value();
    Comparison {
        rounds: finite.len(),
        missing: differences.len() - finite.len(),
        estimate: location.map(|l| l.estimate),
        lo: interval.map(|i| i.0),
        hi: interval.map(|i| i.1),
        floor,
        // A claim "smaller than" comes with intervals that could have shown "larger than".
        bound: interval
            .and(location)
            .and_then(|l| l.interval_90)
            .map(|(low, high)| low.abs().max(high.abs())),
        p: signed_rank_p(&finite),
        change: interval.map_or(Change::NoneShown, |interval| change(interval, floor)),
    }
}

fn change((low, high): (f64, f64), floor: Option<f64>) -> Change {
    if low <= 0.0 && high >= 0.0 {
        return Change::NoneShown;
    }
    // Without a control nothing says how large an artefact can be.
    let Some(floor) = floor else { return Change::NotCredible };
    if low > floor {
        Change::Higher
    } else if high < -floor {
        Change::Lower
    } else {
        Change::NotCredible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: [f64; 8] = [0.1, -0.1, 0.05, -0.05, 0.0, 0.1, -0.08, 0.02];

    #[test]
    fn a_change_within_the_floor_is_not_credible() {
        let floor = Floor::new(&QUIET.map(|d| 10.0 * d), &[], 0.001);
        let small = QUIET.map(|d| d + 0.5);
        assert_eq!(compare(&small, &floor).change, Change::NotCredible);
        assert_eq!(compare(&small.map(|d| -4.0 * d), &floor).change, Change::Lower);
    }

    #[test]
    fn without_a_control_nothing_is_credited() {
        let large = QUIET.map(|d| d + 50.0);
        assert_eq!(compare(&large, &Floor::default()).change, Change::NotCredible);
        assert_eq!(compare(&large, &Floor::new(&QUIET, &[], 0.0)).change, Change::Higher);
    }

    #[test]
    fn rounds_without_a_value_are_counted_and_left_out() {
        let pairs =
            [(Some(1.0), Some(3.0)), (None, Some(3.0)), (Some(2.0), None), (Some(f64::INFINITY), Some(1.0))];
        assert_eq!(differences(&pairs), (vec![2.0], 3));
        assert_eq!(compare(&[1.0, f64::NAN], &Floor::default()).missing, 1);
    }
}
