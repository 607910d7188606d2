//! Random numbers of a seed.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// Draws from the distributions that the traces and arms are made of.
pub struct Random(Pcg64Mcg);

impl Random {
    /// The generator of a seed; neighbouring seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        let mut generator = Pcg64Mcg::new((u128::from(seed) * 0x9E37_79B9_7F4A_7C15) << 1 | 1);
        for _ in 0..8 {
            generator.next_u64();
        }
        Self(generator)
    }

    /// Uniform from 0 to 1, 1 excluded.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform between two numbers.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Standard normal by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
