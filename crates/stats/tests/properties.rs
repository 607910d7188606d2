//! What must hold for every series: checked on many seeded random ones, with ties, losses and odd lengths.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use stats::{Percentile, Series, loss};
use units::Ratio;

const PERCENTILES: [f64; 7] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// A series of 0 to 400 samples on a coarse grid (many ties), sticky, with up to a fifth of it lost.
fn series(seed: u64) -> Vec<f64> {
    let mut random = Pcg64Mcg::new(u128::from(seed) * 0x9E37_79B9 + 1);
    let length = random.next_u64() % 400;
    let (grid, sticky, lossy) = (1 + random.next_u64() % 50, random.next_u64() % 8, random.next_u64() % 20);
    let mut level = 0;
    (0..length)
        .map(|_| {
            if random.next_u64() % 8 >= sticky {
                level = random.next_u64() % grid;
            }
            if random.next_u64() % 100 < lossy { f64::INFINITY } else { level as f64 }
        })
        .collect()
}

fn percentiles(samples: &[f64]) -> Vec<Percentile> {
    let series = Series::new(samples.to_vec()).unwrap();
    PERCENTILES.iter().map(|&p| series.percentile(Ratio::new(p).unwrap())).collect()
}

fn or_infinity(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::INFINITY)
}

#[test]
fn the_value_lies_within_its_interval_and_grows_with_p() {
    for seed in 0..500 {
        let samples = series(seed);
        let results = percentiles(&samples);
        for result in &results {
            let value = or_infinity(result.value);
            assert!(result.lo.is_none_or(|lo| lo <= value), "seed {seed}: {result:?}");
            assert!(result.hi.is_none_or(|hi| value <= hi), "seed {seed}: {result:?}");
            assert!(result.n_eff <= samples.len().max(2) as f64, "seed {seed}: {result:?}");
        }
        let growing = results.windows(2).all(|w| or_infinity(w[0].value) <= or_infinity(w[1].value));
        assert!(growing || samples.is_empty(), "seed {seed}: {results:?}");
    }
}

#[test]
fn the_value_does_not_depend_on_the_order_but_the_interval_does() {
    let mut interval_changed = 0;
    for seed in 0..200 {
        let samples = series(seed);
        let mut ascending = samples.clone();
        ascending.sort_by(f64::total_cmp);
        for (given, sorted) in percentiles(&samples).iter().zip(percentiles(&ascending)) {
            assert_eq!(given.value, sorted.value, "seed {seed}");
            interval_changed += usize::from((given.lo, given.hi) != (sorted.lo, sorted.hi));
        }
    }
    assert!(interval_changed > 100, "sorting a series destroys its time structure: {interval_changed}");
}

#[test]
fn shifting_and_scaling_the_series_shifts_and_scales_the_result() {
    for seed in 0..200 {
        let samples = series(seed);
        // Powers of two keep the arithmetic exact.
        let moved: Vec<f64> = samples.iter().map(|v| v * 4.0 + 64.0).collect();
        for (plain, moved) in percentiles(&samples).iter().zip(percentiles(&moved)) {
            let map = |v: Option<f64>| v.map(|v| v * 4.0 + 64.0);
            assert_eq!((map(plain.value), map(plain.lo), map(plain.hi)), (moved.value, moved.lo, moved.hi));
            assert_eq!((plain.n_eff, plain.grade), (moved.n_eff, moved.grade));
        }
    }
}

#[test]
fn more_loss_never_lowers_the_share() {
    for seed in 0..200 {
        let mut lost: Vec<bool> = series(seed).iter().map(|v| v.is_infinite()).collect();
        let before = loss(&lost).share;
        let Some(kept) = lost.iter().position(|&l| !l) else { continue };
        lost[kept] = true;
        assert!(loss(&lost).share > before, "seed {seed}");
    }
}
