//! What must hold for every input of the classifier and the comparison: checked on many seeded random ones.

#[path = "traces/random.rs"]
mod random;

use random::Random;
use stats::compare::{Change, Floor, compare, holm, pool, signed_rank_p, step_down_max_t};
use stats::{Basis, Probe, TailLabel, classify};

/// Probes without any meaning: wild sizes, ties, losses, counters now and then, values that no clock gives.
fn wild_probes(random: &mut Random) -> Vec<Probe> {
    let length = random.between(0.0, 300.0) as usize;
    let (lossy, counted, scale) = (random.uniform(), random.uniform() < 0.3, random.between(0.0, 12.0).exp());
    let grid = if random.uniform() < 0.3 { scale / 8.0 } else { 1e-6 };
    (0..length)
        .map(|i| {
            let value = (random.exponential(scale) / grid).round() * grid;
            let strange = [f64::NAN, f64::INFINITY, -value, 1e308, 0.0];
            let value = if random.uniform() < 0.02 { strange[i % 5] } else { value };
            Probe {
                at_ms: 50.0 * i as f64,
                rtt_ms: (random.uniform() >= 0.3 * lossy).then_some(value),
                retransmits: counted.then(|| u8::from(random.uniform() < 0.1)),
            }
        })
        .collect()
}

#[test]
fn the_classifier_answers_everything_consistently() {
    for seed in 0..100 {
        let random = &mut Random::new(seed);
        let probes = wild_probes(random);
        let idle: Vec<f64> = (0..(seed % 40)).map(|_| random.exponential(20.0)).collect();
        let result = classify(&probes, &idle);
        assert_eq!(result, classify(&probes, &idle), "seed {seed}: the same input, the same answer");
        assert!(result.n == probes.len() && result.retransmits + result.lost <= result.n, "seed {seed}");
        assert!(!result.why.is_empty() && !result.why.contains('\n'), "seed {seed}: {}", result.why);
        assert_eq!(result.label == TailLabel::Insufficient, result.label.as_str() == "insufficient");
        if result.basis == Basis::Shape && result.retransmits > 0 {
            let gap = result.gap.expect("what shape found stands above a gap");
            assert!(gap.width_ms() >= 25.0 && result.rto_ms.is_some(), "seed {seed}: {result:?}");
        }
        let lossy = result.retransmits > 0 || result.lost >= 2;
        let says_loss = matches!(result.label, TailLabel::LossRetransmit | TailLabel::Mixed);
        assert_eq!(says_loss, lossy && result.n >= 20, "seed {seed}: {result:?}");
    }
}

#[test]
fn a_longer_path_does_not_change_the_label() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let loss_at = random.between(0.0, 30.0) as usize;
        let near: Vec<Probe> = (0..300)
            .map(|i| {
                let again = if i % 31 == loss_at { 1000.0 } else { 0.0 };
                Probe {
                    at_ms: 50.0 * i as f64,
                    rtt_ms: Some(20.0 + random.exponential(0.5) + again),
                    retransmits: None,
                }
            })
            .collect();
        let far: Vec<Probe> =
            near.iter().map(|p| Probe { rtt_ms: p.rtt_ms.map(|rtt| rtt + 80.0), ..*p }).collect();
        let (near, far) = (classify(&near, &[]), classify(&far, &[]));
        assert_eq!(
            (near.label, near.retransmits),
            (TailLabel::LossRetransmit, far.retransmits),
            "seed {seed}"
        );
        assert_eq!(near.label, far.label, "seed {seed}");
    }
}

fn wild_differences(random: &mut Random) -> Vec<f64> {
    let length = random.between(0.0, 20.0) as usize;
    let (shift, coarse) = (random.normal(), random.uniform() < 0.3);
    (0..length)
        .map(|_| {
            let value = shift + random.normal();
            if coarse { value.round() } else { value }
        })
        .collect()
}

#[test]
fn swapping_the_arms_swaps_the_answer() {
    for seed in 0..2000 {
        let random = &mut Random::new(seed);
        let differences = wild_differences(random);
        let control: Vec<f64> = (0..8).map(|_| 0.1 * random.normal()).collect();
        let floor = Floor::new(&control, &[], 0.01);
        let swapped: Vec<f64> = differences.iter().map(|d| -d).collect();
        let (one, other) = (compare(&differences, &floor), compare(&swapped, &floor));
        let expected = match one.change {
            Change::Higher => Change::Lower,
            Change::Lower => Change::Higher,
            same => same,
        };
        assert_eq!((other.change, other.p, other.bound), (expected, one.p, one.bound), "seed {seed}");
        assert_eq!(other.estimate.map(|e| -e), one.estimate, "seed {seed}");
    }
}

#[test]
fn the_estimate_lies_within_the_interval_and_the_bound_beyond_it() {
    for seed in 0..2000 {
        let random = &mut Random::new(seed);
        let differences = wild_differences(random);
        let result = compare(&differences, &Floor::default());
        assert_eq!(result.lo.is_some(), differences.len() >= 6, "seed {seed}");
        if let (Some(estimate), Some(lo), Some(hi), Some(bound)) =
            (result.estimate, result.lo, result.hi, result.bound)
        {
            assert!(lo <= estimate && estimate <= hi && bound >= estimate.abs(), "seed {seed}: {result:?}");
            assert!(bound <= lo.abs().max(hi.abs()), "seed {seed}: {result:?}");
            assert_eq!(lo > 0.0 || hi < 0.0, result.change != Change::NoneShown, "seed {seed}");
        }
        assert!((0.0..=1.0).contains(&result.p), "seed {seed}");
    }
}

#[test]
fn corrections_never_lower_a_p() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let (rounds, endpoints) = (random.between(6.0, 12.0) as usize, random.between(1.0, 8.0) as usize);
        let rows: Vec<Vec<f64>> =
            (0..rounds).map(|_| (0..endpoints).map(|_| random.normal()).collect()).collect();
        let alone = |i: usize| step_down_max_t(&rows.iter().map(|row| vec![row[i]]).collect::<Vec<_>>())[0];
        let together = step_down_max_t(&rows);
        for (i, &p) in together.iter().enumerate() {
            assert!(p >= alone(i) - 1e-12 && p <= 1.0, "seed {seed}, endpoint {i}");
        }
        let p: Vec<f64> = (0..endpoints)
            .map(|i| signed_rank_p(&rows.iter().map(|row| row[i]).collect::<Vec<_>>()))
            .collect();
        assert!(holm(&p).iter().zip(&p).all(|(adjusted, p)| adjusted >= p), "seed {seed}");
    }
}

#[test]
fn pooling_one_target_is_that_target() {
    for seed in 0..500 {
        let random = &mut Random::new(seed);
        let differences = wild_differences(random);
        let floor = Floor::new(&[0.1, -0.1, 0.2, -0.2, 0.1, -0.1], &[], 0.0);
        let pooled = pool(&[(&differences, floor)]).expect("one target");
        assert_eq!(pooled.comparison, compare(&differences, &floor), "seed {seed}");
        assert_eq!(pooled.agreement_below_floor(), None, "one target cannot agree with itself");
    }
}
