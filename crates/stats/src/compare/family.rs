//! Verdicts for a table of endpoints, corrected for their number.

use super::paired::{Change, Comparison, compare};
use super::sign_flips::step_down_max_t;
use super::walsh::holm;
use super::{Floor, MIN_ROUNDS};

/// Endpoints that may be called primary: at eight pairs Holm's method can still find something in three.
pub const MAX_PRIMARY: usize = 3;
/// The family's error rate.
const ALPHA: f64 = 0.05;

/// Which way is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latency, jitter, loss.
    Lower,
    /// Goodput.
    Higher,
}

/// One row of the table: a target, a phase and a statistic.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// B minus A of each pair of rounds; NaN where an arm has no value.
    pub differences: Vec<f64>,
    /// The instrument's own differences of the same statistic.
    pub floor: Floor,
    /// Which way is up.
    pub better: Better,
    /// Chosen for the headline before the run; of more than [`MAX_PRIMARY`] the later ones are not.
    pub primary: bool,
}

/// What can be said of B against A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// B is better, beyond the floor and after correction.
    Better,
    /// B is worse, beyond the floor and after correction.
    Worse,
    /// No difference shown; if there is one, it is smaller than the bound (95 %), where there is a bound.
    NoDifferenceShown {
        /// In the endpoint's unit; `None` below six rounds.
        bound: Option<f64>,
    },
    /// Statistically different but within what the instrument shows without a change.
    NotCredible,
}

impl Verdict {
    /// The word for it in run documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceShown { .. } => "no_difference_shown",
            Self::NotCredible => "not_credible",
        }
    }
}

/// An endpoint's comparison and verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The endpoint on its own.
    pub comparison: Comparison,
    /// Corrected p: by Holm among the primary endpoints, by step-down max |T| over the whole table otherwise.
    pub p_adjusted: f64,
    /// After correction.
    pub verdict: Verdict,
    /// The endpoint on its own would have shown a change; the number of endpoints took it away.
    pub lost_to_correction: bool,
}

/// Judges all endpoints of a session together.
pub fn family(endpoints: &[Endpoint]) -> Vec<Finding> {
    let comparisons: Vec<Comparison> = endpoints.iter().map(|e| compare(&e.differences, &e.floor)).collect();
    let adjusted = adjusted(endpoints, &comparisons);
    endpoints
        .iter()
        .zip(comparisons)
        .zip(adjusted)
        .map(|((endpoint, comparison), p_adjusted)| finding(endpoint.better, comparison, p_adjusted))
        .collect()
}

fn adjusted(endpoints: &[Endpoint], comparisons: &[Comparison]) -> Vec<f64> {
    let rounds = endpoints.iter().map(|e| e.differences.len()).min().unwrap_or(0);
    let rows: Vec<Vec<f64>> =
        (0..rounds).map(|round| endpoints.iter().map(|e| e.differences[round]).collect()).collect();
    let mut adjusted = step_down_max_t(&rows);
    adjusted.resize(endpoints.len(), 1.0);
    let primary: Vec<usize> =
        (0..endpoints.len()).filter(|&i| endpoints[i].primary).take(MAX_PRIMARY).collect();
    let p: Vec<f64> = primary.iter().map(|&i| comparisons[i].p).collect();
    for (&i, p) in primary.iter().zip(holm(&p)) {
        adjusted[i] = p;
    }
    adjusted
}

fn finding(better: Better, comparison: Comparison, p_adjusted: f64) -> Finding {
    let shown = comparison.change != Change::NoneShown;
    let lost_to_correction = shown && p_adjusted > ALPHA;
    let none_shown = Verdict::NoDifferenceShown { bound: comparison.bound };
    let verdict = match (comparison.change, better) {
        _ if lost_to_correction => none_shown,
        (Change::NoneShown, _) => none_shown,
        (Change::NotCredible, _) => Verdict::NotCredible,
        (Change::Lower, Better::Lower) | (Change::Higher, Better::Higher) => Verdict::Better,
        (Change::Lower, Better::Higher) | (Change::Higher, Better::Lower) => Verdict::Worse,
    };
    Finding { comparison, p_adjusted, verdict, lost_to_correction }
}

/// How many endpoints Holm's method can judge with this many pairs and still find something: the smallest p of
/// the signed-rank test is `2 / 2^rounds`.
pub fn largest_holm_family(rounds: usize) -> usize {
    if rounds < MIN_ROUNDS {
        return 0;
    }
    (ALPHA * 2_f64.powi(rounds.min(60) as i32 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(shift: f64, primary: bool) -> Endpoint {
        let noise = [0.3, -0.2, 0.1, -0.4, 0.25, 0.0, -0.1, 0.15];
        Endpoint {
            differences: noise.iter().map(|d| d + shift).collect(),
            floor: Floor::new(&noise, &[], 0.01),
            better: Better::Lower,
            primary,
        }
    }

    #[test]
    fn a_family_that_is_too_large_finds_nothing_by_holm() {
        assert_eq!([5, 6, 7, 8, 9, 10].map(largest_holm_family), [0, 1, 3, 6, 12, 25]);
    }

    #[test]
    fn lower_is_better_for_latency_and_worse_for_goodput() {
        let mut table = vec![endpoint(-5.0, true), endpoint(5.0, true), endpoint(0.0, false)];
        let verdicts: Vec<Verdict> = family(&table).iter().map(|f| f.verdict).collect();
        assert_eq!(verdicts[..2], [Verdict::Better, Verdict::Worse]);
        assert!(matches!(verdicts[2], Verdict::NoDifferenceShown { bound: Some(bound) } if bound < 0.4));
        table[0].better = Better::Higher;
        assert_eq!(family(&table)[0].verdict, Verdict::Worse);
    }

    #[test]
    fn a_chance_finding_among_many_is_taken_back() {
        // On its own p = 0.0156; among 20 endpoints that flip their own way it is nothing.
        let mut lucky = endpoint(0.0, false);
        lucky.differences = vec![1.0, 2.0, 1.5, 3.0, 0.5, 2.5, 1.2, -0.1];
        let mut table = vec![lucky];
        for i in 0..20_u32 {
            let mut other = endpoint(0.0, false);
            other.differences.iter_mut().enumerate().for_each(|(j, d)| *d = f64::from(mix(i, j as u32)));
            table.push(other);
        }
        let finding = family(&table)[0];
        assert_eq!(finding.comparison.change, Change::Higher);
        assert!(finding.lost_to_correction && finding.p_adjusted > ALPHA, "{finding:?}");
        assert!(matches!(finding.verdict, Verdict::NoDifferenceShown { .. }));
    }

    fn mix(i: u32, j: u32) -> i16 {
        (super::super::coin::mix(u64::from(i) << 32 | u64::from(j)) >> 48) as i16
    }
}
