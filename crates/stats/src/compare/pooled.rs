//! Several targets together: what no single one shows, their agreement may.

use super::floor::Floor;
use super::paired::{Change, Comparison, compare};

/// The targets' mean difference and how far they agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The mean over the targets, round by round.
    pub comparison: Comparison,
    /// Targets whose own estimate has the sign of the pooled one.
    pub same_sign: usize,
    /// Targets pooled.
    pub targets: usize,
    /// Every target's own change is below its floor.
    pub all_below_floor: bool,
}

impl Pooled {
    /// "below the floor, same sign on 3 of 3": said where the targets agree on something none of them could be
    /// credited with.
    pub fn agreement_below_floor(&self) -> Option<String> {
        let agrees = self.targets >= 2 && self.same_sign == self.targets && self.all_below_floor;
        agrees.then(|| format!("below the floor, same sign on {} of {}", self.same_sign, self.targets))
    }
}

/// Pools targets: for each its differences B minus A, one for each pair of rounds, and its floor.
///
/// A round counts where every target has a value. The pooled floor is the largest of the targets': an error of
/// the instrument need not average out. `None` without targets.
pub fn pool(targets: &[(&[f64], Floor)]) -> Option<Pooled> {
    let rounds = targets.iter().map(|(differences, _)| differences.len()).min()?;
    let mean = |round: usize| targets.iter().map(|(d, _)| d[round]).sum::<f64>() / targets.len() as f64;
    let means: Vec<f64> = (0..rounds).map(mean).collect();
    let comparison = compare(&means, &largest(targets));
    let single: Vec<Comparison> = targets.iter().map(|(d, floor)| compare(d, floor)).collect();
    let sign = comparison.estimate.unwrap_or(0.0).signum();
    let same_sign =
        single.iter().filter(|c| c.estimate.is_some_and(|e| e != 0.0 && e.signum() == sign)).count();
    let all_below_floor = single.iter().all(|c| {
        !matches!(c.change, Change::Higher | Change::Lower)
            && c.estimate.zip(c.floor).is_some_and(|(estimate, floor)| estimate.abs() <= floor)
    });
    Some(Pooled { comparison, same_sign, targets: targets.len(), all_below_floor })
}

fn largest(targets: &[(&[f64], Floor)]) -> Floor {
    let floors = || targets.iter().map(|(_, floor)| floor);
    Floor {
        control: floors().filter_map(|f| f.control).reduce(f64::max),
        user_minus_kernel: floors().filter_map(|f| f.user_minus_kernel).reduce(f64::max),
        resolution: floors().map(|f| f.resolution).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_below_the_floor_is_said() {
        let control = [0.5, -0.5, 0.4, -0.4, 0.6, -0.6, 0.3, -0.3];
        let floor = Floor::new(&control, &[], 0.001);
        let small = [0.12, 0.08, 0.1, 0.11, 0.09, 0.1, 0.13, 0.07];
        let pooled = pool(&[(&small, floor), (&small, floor), (&small, floor)]).unwrap();
        assert_eq!(pooled.agreement_below_floor().unwrap(), "below the floor, same sign on 3 of 3");
        assert_eq!(pooled.comparison.change, Change::NotCredible);
        let opposite = small.map(|d| -0.5 * d);
        let pooled = pool(&[(&small, floor), (&opposite, floor)]).unwrap();
        assert_eq!((pooled.same_sign, pooled.agreement_below_floor()), (1, None));
        assert_eq!(pool(&[]), None);
    }
}
