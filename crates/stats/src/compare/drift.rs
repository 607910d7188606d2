//! Did the line change during the run? No interval covers that, so it has to be said.

/// Blocks of the run whose medians are ranked.
const BLOCKS: usize = 10;
/// Kendall's S of ten untied values beyond which a trend has p <= 1 % (two-sided; Kendall 1970, table 1).
const CRITICAL: i32 = 27;

/// Whether the medians of ten blocks of a run rise or fall throughout (Mann 1945): a trend that samples as
/// correlated as a queue's hardly give. Lost probes are infinite. False for fewer than 100 samples.
pub fn drifts(in_time: &[f64]) -> bool {
    let length = in_time.len() / BLOCKS;
    if length < 10 {
        return false;
    }
    let medians: Vec<f64> = in_time.chunks_exact(length).take(BLOCKS).map(median).collect();
    let sign = |a: f64, b: f64| i32::from(b > a) - i32::from(b < a);
    let s: i32 = (0..BLOCKS)
        .flat_map(|i| (i + 1..BLOCKS).map(move |j| (i, j)))
        .map(|(i, j)| sign(medians[i], medians[j]))
        .sum();
    s.abs() >= CRITICAL
}

fn median(block: &[f64]) -> f64 {
    let mut block = block.to_vec();
    let middle = block.len() / 2;
    *block.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_seen_and_a_cycle_is_not() {
        let noise = |i: u32| f64::from(i * 7919 % 997) / 100.0;
        let rising: Vec<f64> = (0..500).map(|i| noise(i) + 0.05 * f64::from(i)).collect();
        let cycling: Vec<f64> = (0..500).map(|i| noise(i) + f64::from(i % 125)).collect();
        assert!(drifts(&rising) && !drifts(&cycling) && !drifts(&rising[..90]));
        assert!(!drifts(&[f64::INFINITY; 200]));
    }
}
