//! Does a 95 % interval hold the truth in 95 % of the runs? Simulated traces with fixed seeds, whose true
//! percentiles are known, each cut into short runs as a measurement would see them.
//!
//! Beside it stands the naive percentile bootstrap over pooled samples. It is not resampled here: the bootstrap
//! distribution of an order statistic is exactly binomial, so its limit for many resamples is the order
//! statistic of the binomial rank that takes all n samples for independent.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use stats::Series;
use units::Ratio;

const RUNS: usize = 400;
/// A 12 s phase probed every 20 ms.
const SAMPLES: usize = 600;
/// Three standard errors of a share over 400 runs below 95 %.
const REQUIRED_PCT: f64 = 92.0;

fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Standard normal by Box and Muller.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Noise with an exponentially fading memory of ten samples, as of a queue under mixed traffic.
fn autoregressive(random: &mut Pcg64Mcg, length: usize) -> Vec<f64> {
    const MEMORY: f64 = 0.9;
    let mut level = normal(random);
    let mut next = || {
        level = MEMORY * level + (1.0 - MEMORY * MEMORY).sqrt() * normal(random);
        level
    };
    (0..length).map(|_| next()).collect()
}

/// A FIFO filled by four loss-based flows: windows grow until the buffer overflows, then each flow that lost a
/// packet (a fair coin) backs off; a cycle takes about 2 s.
fn fifo_sawtooth(random: &mut Pcg64Mcg, length: usize) -> Vec<f64> {
    const BUFFER_MS: f64 = 500.0;
    let mut windows_ms = [90.0, 110.0, 120.0, 130.0];
    let mut next = || {
        for window in &mut windows_ms {
            *window += 0.5 * uniform(random);
        }
        if windows_ms.iter().sum::<f64>() > BUFFER_MS {
            let losers = random.next_u64();
            for (flow, window) in windows_ms.iter_mut().enumerate() {
                *window *= if losers >> flow & 1 == 1 { 0.7 } else { 1.0 };
            }
        }
        windows_ms.iter().sum::<f64>() + normal(random)
    };
    (0..length).map(|_| next()).collect()
}

fn independent(random: &mut Pcg64Mcg, length: usize) -> Vec<f64> {
    (0..length).map(|_| normal(random).exp()).collect()
}

fn quantile(samples: &[f64], p: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() as f64 * p).ceil() as usize).max(1) - 1]
}

/// The naive bootstrap's interval: normal limits of the binomial rank, n taken as independent.
fn naive_holds(run: &[f64], p: f64, truth: f64) -> bool {
    let n = run.len() as f64;
    let half = 1.96 * (n * p * (1.0 - p)).sqrt();
    let limit = |rank: f64| quantile(run, (rank / n).clamp(0.0, 1.0));
    limit(n * p - half) <= truth && truth <= limit(n * p + half)
}

/// What became of the runs, in percent of all runs.
#[derive(Debug)]
struct Coverage {
    /// Our interval was bounded on both sides.
    bounded: f64,
    /// Our interval held the truth; a side not bounded by the data holds everything on that side.
    ours: f64,
    naive: f64,
}

fn coverage(trace: &[f64], p: f64) -> Coverage {
    let truth = quantile(trace, p);
    let (mut bounded, mut ours, mut naive) = (0, 0, 0);
    // Every second stretch, so that one run says little about the next.
    for run in trace.chunks_exact(SAMPLES).step_by(2) {
        let result = Series::new(run.to_vec()).unwrap().percentile(Ratio::new(p).unwrap());
        bounded += usize::from(result.lo.is_some() && result.hi.is_some());
        ours += usize::from(result.lo.is_none_or(|lo| lo <= truth) && result.hi.is_none_or(|hi| truth <= hi));
        naive += usize::from(naive_holds(run, p, truth));
    }
    let share = |hits: usize| 100.0 * hits as f64 / RUNS as f64;
    Coverage { bounded: share(bounded), ours: share(ours), naive: share(naive) }
}

fn measure(name: &str, trace: fn(&mut Pcg64Mcg, usize) -> Vec<f64>) -> [Coverage; 3] {
    let trace = trace(&mut Pcg64Mcg::new(20_260_101), 2 * RUNS * SAMPLES);
    [0.5, 0.9, 0.95].map(|p| {
        let result = coverage(&trace, p);
        println!("{name:<14} p{:<2.0} {result:5.1?}", p * 100.0);
        assert!(result.ours >= REQUIRED_PCT, "{name} at {p}: {result:?} of {RUNS} runs");
        assert!(p > 0.5 || result.bounded >= 95.0, "{name}: no bounds would cover everything, {result:?}");
        result
    })
}

#[test]
fn holds_on_autoregressive_noise_where_the_naive_bootstrap_fails() {
    let [median, p90, p95] = measure("autoregressive", autoregressive);
    assert!([&median, &p90, &p95].iter().all(|c| c.naive < 60.0), "{median:?} {p90:?} {p95:?}");
    assert!([&median, &p90, &p95].iter().all(|c| c.ours <= 99.0), "too wide: {median:?} {p90:?} {p95:?}");
}

/// A nearly periodic trace averages out better than its correlation says, so the interval is on the wide side.
#[test]
fn holds_on_a_fifo_sawtooth_where_the_naive_bootstrap_fails() {
    let [median, _, _] = measure("FIFO sawtooth", fifo_sawtooth);
    assert!(median.naive < 60.0, "{median:?}");
}

#[test]
fn holds_on_independent_samples_as_the_naive_bootstrap_does() {
    let [median, _, p95] = measure("independent", independent);
    assert!(median.naive > 92.0 && p95.naive > 92.0, "{median:?} {p95:?}");
}
