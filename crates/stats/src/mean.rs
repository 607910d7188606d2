//! The mean of a quantity that was measured over a span of time, with its interval from the means of blocks.

use crate::distribution::student_975;

/// A mean with its 95 % interval, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockMean {
    /// Mean of the blocks.
    pub mean: f64,
    /// Lower limit.
    pub lo: f64,
    /// Upper limit.
    pub hi: f64,
    /// Blocks counted.
    pub blocks: usize,
}

/// Fewer blocks than this give no interval worth printing: Student's t is above 3 then.
const MIN_BLOCKS: usize = 4;

/// The mean over blocks of equal length, in time order, with Student's interval on their scatter: neighbouring values
/// of a rate are correlated, means of blocks much longer than the correlation hardly are (method of batch means,
/// Conway 1963). `None` with fewer than four blocks or one that is not finite. A lower limit below zero is
/// none of a quantity that cannot be negative: the caller cuts it.
pub fn block_mean(blocks: &[f64]) -> Option<BlockMean> {
    if blocks.len() < MIN_BLOCKS || blocks.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = blocks.len() as f64;
    let mean = blocks.iter().sum::<f64>() / n;
    let variance = blocks.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_975(n - 1.0) * (variance / n).sqrt();
    Some(BlockMean { mean, lo: mean - half, hi: mean + half, blocks: blocks.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // NIST/SEMATECH e-Handbook, section 1.3.6.7.2: t(9) = 2.262; these ten have s^2 = 55/6.
        let blocks: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = block_mean(&blocks).unwrap();
        let half = 2.262 * (55.0 / 60.0_f64).sqrt();
        assert_eq!((found.mean, found.blocks), (5.5, 10));
        assert!((found.hi - 5.5 - half).abs() < 1e-3 && (5.5 - found.lo - half).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_steady_rate_has_no_width_and_few_blocks_no_interval() {
        assert_eq!(block_mean(&[3.0; 5]), Some(BlockMean { mean: 3.0, lo: 3.0, hi: 3.0, blocks: 5 }));
        assert_eq!(block_mean(&[3.0; 3]), None);
        assert_eq!(block_mean(&[1.0, 2.0, f64::NAN, 3.0]), None);
    }
}
