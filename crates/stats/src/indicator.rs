//! A yes/no series packed into bits, so that its autocorrelation is counted and not summed.
//!
//! The centred sum at a lag is `both - mean (early + late) + mean² (n - lag)`, where `both` counts the pairs that
//! are yes twice, and `early` and `late` the yeses that have a partner after or before them. All three are counts:
//! exact, and 64 samples to a word.

/// A yes/no series in time order.
pub(crate) struct Indicator {
    words: Vec<u64>,
    len: usize,
    yes: usize,
}

impl Indicator {
    /// Packs a series.
    pub(crate) fn new(series: &[bool]) -> Self {
        let words: Vec<u64> = series
            .chunks(64)
            .map(|chunk| chunk.iter().enumerate().fold(0, |word, (i, &yes)| word | u64::from(yes) << i))
            .collect();
        Self { words, len: series.len(), yes: series.iter().filter(|&&yes| yes).count() }
    }

    /// The mean square deviation times the length; zero for a constant series.
    pub(crate) fn centred_square(&self) -> f64 {
        self.centred_product(0)
    }

    /// The sum over all pairs at this lag of the product of their deviations from the mean.
    pub(crate) fn centred_product(&self, lag: usize) -> f64 {
        if self.len == 0 {
            return 0.0;
        }
        let mean = self.yes as f64 / self.len as f64;
        let ends = (self.yes - self.count(self.len - lag, self.len)) + (self.yes - self.count(0, lag));
        self.both(lag) as f64 - mean * ends as f64 + mean * mean * (self.len - lag) as f64
    }

    /// Pairs at this lag of which both are yes.
    fn both(&self, lag: usize) -> u64 {
        let (skip, shift) = (lag / 64, lag % 64);
        let late = &self.words[skip.min(self.words.len())..];
        let shifted = late.iter().enumerate().map(|(i, &word)| {
            let next = late.get(i + 1).copied().unwrap_or(0);
            if shift == 0 { word } else { word >> shift | next << (64 - shift) }
        });
        self.words.iter().zip(shifted).map(|(early, late)| u64::from((early & late).count_ones())).sum()
    }

    /// Yeses from `start` to before `end`.
    pub(crate) fn count(&self, start: usize, end: usize) -> usize {
        let below = |limit: usize| -> usize {
            let whole: u32 = self.words[..limit / 64].iter().map(|word| word.count_ones()).sum();
            let rest =
                if limit.is_multiple_of(64) { 0 } else { self.words[limit / 64] & ((1 << (limit % 64)) - 1) };
            (whole + rest.count_ones()) as usize
        };
        below(end) - below(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_sum_over_deviations_gives() {
        for n in [1, 2, 63, 64, 65, 128, 200, 333] {
            let series: Vec<bool> = (0..n).map(|i: usize| i * i % 7 < 3 || i % 50 > 40).collect();
            let mean = series.iter().filter(|&&yes| yes).count() as f64 / n as f64;
            let centred: Vec<f64> = series.iter().map(|&yes| f64::from(u8::from(yes)) - mean).collect();
            let packed = Indicator::new(&series);
            for lag in 0..=n {
                let sum: f64 = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum();
                assert!((packed.centred_product(lag) - sum).abs() < 1e-9, "{n} {lag}");
            }
        }
    }
}
