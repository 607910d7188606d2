//! Simulated A/B sessions: a line that changes by itself, an arm B that may change it, and what the comparison
//! says. Everything follows from the seed.

use crate::random::Random;
use stats::Series;
use stats::compare::{Change, Floor, Order, compare, order_by_coin};
use units::Ratio;

/// How a line behaves over the whole session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// A fair queue: a few ms of noise, hardly correlated.
    FairQueue,
    /// Four loss-based flows in a FIFO: a sawtooth.
    Fifo,
    /// Radio: heavy, correlated noise.
    Radio,
}

/// What happens to the level of the line meanwhile, whichever arm is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    None,
    /// Each round has its own level.
    LevelShifts,
    /// The level rises steadily through the session.
    Linear,
    /// The level jumps once, somewhere.
    Step,
    /// The level wanders slowly.
    SlowNoise,
    /// The level swings with the period of two pairs.
    Periodic,
}

pub const LINES: [(Line, &str); 3] =
    [(Line::FairQueue, "fair queue"), (Line::Fifo, "FIFO, 4 CUBIC"), (Line::Radio, "Wi-Fi")];
pub const DRIFTS: [(Drift, &str); 6] = [
    (Drift::None, "no drift"),
    (Drift::LevelShifts, "level shifts"),
    (Drift::Linear, "linear"),
    (Drift::Step, "step"),
    (Drift::SlowNoise, "slow noise"),
    (Drift::Periodic, "periodic"),
];

/// Probes per round: 12 s at one in 100 ms.
const PROBES: usize = 120;
/// How far drifts move the level, in ms.
const DRIFT_MS: f64 = 12.0;

/// One session: pairs of rounds in the order of the coin, B lower by `effect_ms`.
pub struct Session {
    /// p95 of B minus p95 of A for each pair.
    pub differences: Vec<f64>,
    /// Floor from a control that nothing touches.
    pub floor: Floor,
    /// All samples of each arm: what a naive comparison would take.
    pub pooled: [Vec<f64>; 2],
}

impl Session {
    pub fn new(seed: u64, line: Line, drift: Drift, pairs: usize, effect_ms: f64) -> Self {
        let mut random = Random::new(seed);
        let levels = levels(&mut random, drift, 2 * pairs);
        let mut session =
            Self { differences: Vec::new(), floor: Floor::default(), pooled: Default::default() };
        let mut control = Vec::new();
        for (pair, order) in order_by_coin(seed, pairs).into_iter().enumerate() {
            let mut p95 = [0.0; 2];
            for place in 0..2 {
                let arm = usize::from((order == Order::AThenB) == (place == 1));
                let shift = levels[2 * pair + place] - if arm == 1 { effect_ms } else { 0.0 };
                let samples: Vec<f64> =
                    round(&mut random, line).into_iter().map(|v| (v + shift).max(1.0)).collect();
                session.pooled[arm].extend(&samples);
                p95[arm] = percentile(samples, 95.0);
            }
            session.differences.push(p95[1] - p95[0]);
            control.push(0.05 * random.normal());
        }
        session.floor = Floor::new(&control, &[], 0.001);
        session
    }

    pub fn change(&self) -> Change {
        compare(&self.differences, &self.floor).change
    }
}

/// The naive comparison: pooled p95 of each arm with the interval that takes all samples for independent.
pub fn naive_finds(session: &Session) -> bool {
    let interval = |arm: &[f64]| {
        let mut sorted = arm.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let half = 1.96 * (n * 0.95 * 0.05).sqrt();
        let rank = |r: f64| sorted[(r.max(0.0) as usize).min(sorted.len() - 1)];
        (rank(0.95 * n - half), rank(0.95 * n + half))
    };
    let (a, b) = (interval(&session.pooled[0]), interval(&session.pooled[1]));
    a.1 < b.0 || b.1 < a.0
}

pub fn percentile(samples: Vec<f64>, percent: f64) -> f64 {
    let series = Series::new(samples).expect("simulated samples are numbers");
    series.percentile(Ratio::from_percent(percent).expect("a percentage")).value.expect("nothing is lost")
}

fn levels(random: &mut Random, drift: Drift, rounds: usize) -> Vec<f64> {
    let (size, phase) = (DRIFT_MS * random.between(0.5, 1.5), random.uniform());
    let jump = (rounds as f64 * phase) as usize;
    let mut wander = 0.0;
    (0..rounds)
        .map(|round| {
            let share = round as f64 / rounds as f64;
            match drift {
                Drift::None => 0.0,
                Drift::LevelShifts => size * 0.5 * random.normal(),
                Drift::Linear => 2.0 * size * share,
                Drift::Step => {
                    if round >= jump {
                        size
                    } else {
                        0.0
                    }
                }
                Drift::SlowNoise => {
                    wander = 0.9 * wander + 0.44 * size * random.normal();
                    wander
                }
                Drift::Periodic => size * (std::f64::consts::TAU * (round as f64 / 4.0 + phase)).sin(),
            }
        })
        .collect()
}

/// One round of a line, in ms.
fn round(random: &mut Random, line: Line) -> Vec<f64> {
    match line {
        Line::FairQueue => (0..PROBES).map(|_| 25.0 + random.exponential(1.2)).collect(),
        Line::Fifo => sawtooth(random),
        Line::Radio => {
            let mut level = random.normal();
            let mut next = || {
                level = 0.95 * level + 0.31 * random.normal();
                30.0 + 12.0 * level.exp() + random.exponential(8.0)
            };
            (0..PROBES).map(|_| next()).collect()
        }
    }
}

/// Windows in ms at the link's rate. They grow for some 4 s until the buffer overflows, then each flow that lost a
/// packet, by a fair coin, gives 30 % back: a round sees few cycles, and no two are alike.
fn sawtooth(random: &mut Random) -> Vec<f64> {
    const BUFFER_MS: f64 = 120.0;
    let mut windows: Vec<f64> = (0..4).map(|_| random.between(10.0, 35.0)).collect();
    let mut next = || {
        for window in &mut windows {
            *window += 0.15 * random.between(0.0, 2.0);
        }
        if windows.iter().sum::<f64>() > BUFFER_MS {
            for window in &mut windows {
                *window *= if random.uniform() < 0.5 { 0.7 } else { 1.0 };
            }
        }
        25.0 + windows.iter().sum::<f64>().min(BUFFER_MS) + random.exponential(1.0)
    };
    (0..PROBES).map(|_| next()).collect()
}
