//! Do neighbours agree more than chance would have it? The runs test of Wald and Wolfowitz (1940).

/// Standard deviations of the runs test from which neighbours cling together.
pub(super) const STICKY_Z: f64 = 3.0;

/// How the members of a yes/no series cling together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    /// Standard deviations by which the number of runs falls short of what independent samples give.
    pub(super) z: f64,
    /// Runs over the expected number of them.
    pub(super) ratio: f64,
}

/// Counts the runs of equal neighbours.
pub(super) fn runs(series: &[bool]) -> Runs {
    let n = series.len() as f64;
    let yes = series.iter().filter(|&&v| v).count() as f64;
    let no = n - yes;
    if yes < 1.0 || no < 1.0 {
        return Runs { z: 0.0, ratio: 1.0 };
    }
    let count = series.chunk_by(|a, b| a == b).count() as f64;
    let expected = 1.0 + 2.0 * yes * no / n;
    let variance = (expected - 1.0) * (expected - 2.0) / (n - 1.0);
    let z = if variance > 0.0 { (expected - count) / variance.sqrt() } else { 0.0 };
    Runs { z, ratio: count / expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stick_and_alternation_does_not() {
        let blocks: Vec<bool> = (0..100).map(|i| i / 10 % 2 == 0).collect();
        assert!(runs(&blocks).z > 5.0);
        let alternating: Vec<bool> = (0..100).map(|i| i % 2 == 0).collect();
        assert!(runs(&alternating).z < -5.0);
        assert_eq!(runs(&[true; 5]).z, 0.0);
        assert_eq!(runs(&[]).ratio, 1.0);
    }
}
