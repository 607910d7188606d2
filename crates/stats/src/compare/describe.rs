//! Two single runs side by side: a description, never a verdict.

use crate::{Percentile, Series};
use units::Ratio;

/// The same percentile of two runs, and their difference.
///
/// The interval is about these two runs only: whatever changed between them, the tweak or the hour, is in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// The percentile of A.
    pub a: Percentile,
    /// The percentile of B.
    pub b: Percentile,
    /// B minus A; `None` where one has no value.
    pub difference: Option<f64>,
    /// Lower end of the difference's 95 % interval, from both runs' effective sizes; `None` where one is open.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
}

/// Describes the difference of one percentile between two runs.
///
/// The interval joins the two runs' own by the method of variance estimates recovery (Zou and Donner 2008,
/// equation 3): each side adds up the squared distances to the limits that push it outward.
pub fn describe(a: &Series, b: &Series, p: Ratio) -> Description {
    let (a, b) = (a.percentile(p), b.percentile(p));
    let difference = a.value.zip(b.value).map(|(a, b)| b - a);
    let lo = || Some(difference? - (b.value? - b.lo?).hypot(a.hi? - a.value?));
    let hi = || Some(difference? + (b.hi? - b.value?).hypot(a.value? - a.lo?));
    Description { a, b, difference, lo: lo(), hi: hi() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_wider_than_either_run() {
        let noise = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 16) / 6554.0;
        let a = Series::new((0..400).map(noise).collect()).unwrap();
        let b = Series::new((400..800).map(|i| noise(i) + 3.0).collect()).unwrap();
        let d = describe(&a, &b, Ratio::from_percent(50.0).unwrap());
        let (lo, hi) = (d.lo.unwrap(), d.hi.unwrap());
        assert!(lo < 3.0 && 3.0 < hi && (lo..=hi).contains(&d.difference.unwrap()), "{d:?}");
        assert!(hi - lo > d.a.hi.unwrap() - d.a.lo.unwrap());
        let none = Series::new(Vec::new()).unwrap();
        assert_eq!(describe(&a, &none, Ratio::from_percent(50.0).unwrap()).difference, None);
    }
}
