//! Further draws that only the traces need.

use super::random::Random;

impl Random {
    /// Uniform in the logarithm between two positive numbers.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// One of a list.
    pub fn pick(&mut self, from: &[f64]) -> f64 {
        from[(self.uniform() * from.len() as f64) as usize]
    }
}
