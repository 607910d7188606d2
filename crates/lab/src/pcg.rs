//! A small seeded random number generator.

/// PCG-XSH-RR 64/32 (M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
/// Random Number Generation", 2014, section 6.3): a 64-bit linear congruential state, of which each step gives
/// 32 permuted bits. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Pcg32 {
    state: u64,
}

/// Multiplier by Knuth and an odd increment, as in the paper.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

impl Pcg32 {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut generator = Self { state: seed.wrapping_add(INCREMENT) };
        generator.next_u32();
        generator
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let xorshifted = (((old >> 18) ^ old) >> 27) as u32;
        xorshifted.rotate_right((old >> 59) as u32)
    }

    /// A number from 0 up to but not including 1, in steps of 2^-32.
    pub fn next_f64(&mut self) -> f64 {
        f64::from(self.next_u32()) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut generator = Pcg32::new(seed);
            std::array::from_fn::<u32, 8, _>(|_| generator.next_u32())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn shares_are_even_and_within_range() {
        let mut generator = Pcg32::new(1);
        let mut tenths = [0u32; 10];
        for _ in 0..100_000 {
            let x = generator.next_f64();
            assert!((0.0..1.0).contains(&x));
            tenths[(x * 10.0) as usize] += 1;
        }
        // Standard deviation of each count is 95: five of them are never exceeded by a fair generator.
        assert!(tenths.iter().all(|&n| n.abs_diff(10_000) < 475), "{tenths:?}");
    }
}
