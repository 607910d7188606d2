//! The noise floor: what the instrument would call a difference where there is none.

use super::walsh::location;

/// The smallest change that can be told from the instrument's own error, and where it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// By the control's paired differences (loopback or idle target), `None` when there are too few.
    pub control: Option<f64>,
    /// By the paired differences of user-space time minus kernel time on the real targets.
    pub user_minus_kernel: Option<f64>,
    /// The clock's resolution.
    pub resolution: f64,
}

impl Floor {
    /// From the control's paired differences, those of user minus kernel time (either may be empty) and the
    /// clock's resolution, all in the unit of the compared statistic.
    pub fn new(control: &[f64], user_minus_kernel: &[f64], resolution: f64) -> Self {
        Self { control: reach(control), user_minus_kernel: reach(user_minus_kernel), resolution }
    }

    /// The largest of them; `None` when neither kind of differences gave one.
    pub fn value(&self) -> Option<f64> {
        let measured = match (self.control, self.user_minus_kernel) {
            (Some(control), Some(user)) => control.max(user),
            (one, other) => one.or(other)?,
        };
        Some(measured.max(self.resolution))
    }
}

/// How far from zero the 95 % interval of the differences reaches: the same statistic as for the arms.
fn reach(differences: &[f64]) -> Option<f64> {
    location(differences)?.interval.map(|(low, high)| low.abs().max(high.abs()))
}
