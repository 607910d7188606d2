//! A seeded generator of labelled latency traces: every label of the classifier, many parameters of each.
//!
//! Nothing is random but the seed: the same seed gives the same trace everywhere.

mod draws;
mod network;
mod random;

use network::{Ladder, Queue};
use random::Random;
use stats::{Probe, TailLabel};

/// One trace with what is true of it.
pub struct Trace {
    /// Probes in time order.
    pub probes: Vec<Probe>,
    /// Round trips of the idle line, empty when there was no idle phase, in ms.
    pub idle_rtt_ms: Vec<f64>,
    /// What made the tail.
    pub label: TailLabel,
    /// Other labels that a careful reader could give on this much evidence.
    pub also_acceptable: &'static [TailLabel],
    /// The kind of trace within its label.
    pub family: &'static str,
    /// The timeout of the retransmissions in it.
    pub rto_ms: Option<f64>,
}

impl Trace {
    /// Whether a label is right or defensible for this trace.
    pub fn accepts(&self, label: TailLabel) -> bool {
        self.label == label || self.also_acceptable.contains(&label)
    }
}

const FAMILIES: &[(&str, TailLabel)] = &[
    ("wired", TailLabel::Clean),
    ("fair queue", TailLabel::Clean),
    ("jittery", TailLabel::Clean),
    ("one outlier", TailLabel::Clean),
    ("short clean", TailLabel::Clean),
    ("fifo", TailLabel::QueueBuildup),
    ("ramp", TailLabel::QueueBuildup),
    ("bloat 300 ms", TailLabel::QueueBuildup),
    ("bloat 1 s", TailLabel::QueueBuildup),
    ("plateau", TailLabel::QueueBuildup),
    ("small buffer", TailLabel::QueueBuildup),
    ("short queue", TailLabel::QueueBuildup),
    ("independent loss", TailLabel::LossRetransmit),
    ("Gilbert loss", TailLabel::LossRetransmit),
    ("loss and jitter", TailLabel::LossRetransmit),
    ("short loss", TailLabel::LossRetransmit),
    ("few losses", TailLabel::LossRetransmit),
    ("fifo, 1 s or 3 s", TailLabel::Mixed),
    ("fifo, short RTO", TailLabel::Mixed),
    ("ramp and loss", TailLabel::Mixed),
    ("plateau and loss", TailLabel::Mixed),
    ("short mixed", TailLabel::Mixed),
    ("Wi-Fi", TailLabel::Spikes),
    ("scan", TailLabel::Spikes),
    ("isolated", TailLabel::Spikes),
    ("two routes", TailLabel::BimodalRoute),
    ("four routes", TailLabel::BimodalRoute),
    ("flap", TailLabel::BimodalRoute),
    ("far route", TailLabel::BimodalRoute),
    ("too few", TailLabel::Insufficient),
    ("too few, queue", TailLabel::Insufficient),
    ("too few, routes", TailLabel::Insufficient),
];

/// The trace of a seed: families in turn, so that any range of seeds holds all labels.
pub fn trace(seed: u64) -> Trace {
    let (family, label) = FAMILIES[(seed % FAMILIES.len() as u64) as usize];
    Build::new(seed, family, label).finish()
}

/// The number of families.
pub const FAMILY_COUNT: u64 = FAMILIES.len() as u64;

struct Build {
    random: Random,
    family: &'static str,
    label: TailLabel,
    base_ms: f64,
    /// Mean of the exponential noise on top of everything, in ms.
    noise_ms: f64,
    times_ms: Vec<f64>,
}

impl Build {
    fn new(seed: u64, family: &'static str, label: TailLabel) -> Self {
        let mut random = Random::new(seed);
        let length = match family {
            f if f.starts_with("short") => random.between(24.0, 45.0),
            f if f.starts_with("too few") => random.between(3.0, 19.9),
            _ => random.log_between(100.0, 720.0),
        };
        let interval_ms = random.pick(&[50.0, 100.0, 200.0]);
        let times_ms = schedule(&mut random, length as usize, interval_ms);
        let base_ms = random.log_between(4.0, 120.0);
        let noise_ms = noise(&mut random, family);
        Self { random, family, label, base_ms, noise_ms, times_ms }
    }

    fn finish(mut self) -> Trace {
        let extra = self.extra();
        let ladder = self.ladder();
        let mut probes: Vec<Probe> = (0..self.times_ms.len())
            .map(|i| {
                let rtt_ms = self.base_ms + extra[i] + self.random.exponential(self.noise_ms);
                Probe { at_ms: self.times_ms[i], rtt_ms: Some(rtt_ms), retransmits: None }
            })
            .collect();
        let mut hit = usize::MAX;
        let rto_ms = ladder.map(|ladder| {
            let share = self.loss_share();
            let mean_burst = if self.family == "Gilbert loss" { self.random.between(1.3, 4.0) } else { 1.0 };
            hit = network::retransmit(&mut self.random, &mut probes, ladder, share, mean_burst);
            ladder.rto_ms
        });
        let idle_rtt_ms = self.idle(&extra);
        Trace {
            probes,
            idle_rtt_ms,
            label: self.label,
            also_acceptable: also_acceptable(self.label, self.family, hit),
            family: self.family,
            rto_ms,
        }
    }

    /// Delay above the base without noise for each probe, in ms.
    fn extra(&mut self) -> Vec<f64> {
        let random = &mut self.random;
        let times = &self.times_ms;
        match self.family {
            "fifo" | "short queue" | "too few, queue" => {
                Queue::fifo(random, 30.0, 350.0).delays(random, times)
            }
            "ramp" | "ramp and loss" => Queue::ramp(random, 60.0, 350.0).delays(random, times),
            "bloat 300 ms" => Queue::fifo(random, 250.0, 350.0).delays(random, times),
            "bloat 1 s" => Queue::fifo(random, 800.0, 1200.0).delays(random, times),
            "small buffer" => Queue::fifo(random, 22.0, 60.0).delays(random, times),
            "plateau" | "plateau and loss" => network::plateau(random, times),
            "fifo, 1 s or 3 s" | "short mixed" => Queue::fifo(random, 50.0, 350.0).delays(random, times),
            "fifo, short RTO" => Queue::fifo(random, 40.0, 130.0).delays(random, times),
            "Wi-Fi" => network::wifi(random, times),
            "scan" => network::scan(random, times),
            "isolated" => network::isolated(random, times),
            "two routes" => network::routes(random, times.len(), 2, 4.0, 90.0),
            "four routes" | "too few, routes" => network::routes(random, times.len(), 4, 20.0, 90.0),
            "far route" => network::routes(random, times.len(), 2, 90.0, 300.0),
            "flap" => network::flap(random, times.len()),
            "one outlier" => network::outlier(random, times.len()),
            _ => vec![0.0; times.len()],
        }
    }

    fn ladder(&mut self) -> Option<Ladder> {
        let timeouts: &[f64] = match (self.label, self.family) {
            (TailLabel::LossRetransmit, _) => &[200.0, 250.0, 300.0, 1000.0, 1000.0, 3000.0],
            (TailLabel::Mixed, "fifo, short RTO") => &[200.0, 250.0, 300.0],
            (TailLabel::Mixed, _) => &[1000.0, 1000.0, 3000.0],
            _ => return None,
        };
        let rto_ms = self.random.pick(timeouts);
        let linear = rto_ms == 1000.0 && self.random.chance(0.5);
        Some(Ladder { rto_ms, linear })
    }

    fn loss_share(&mut self) -> f64 {
        let n = self.times_ms.len() as f64;
        match self.family {
            "few losses" => self.random.between(1.0, 2.5) / n,
            "short loss" | "short mixed" => self.random.between(0.1, 0.2),
            _ => self.random.log_between((4.0 / n).max(0.01), 0.15),
        }
    }

    /// The idle phase; left out now and then, unless a queue can only be told by it.
    fn idle(&mut self, extra: &[f64]) -> Vec<f64> {
        let mut sorted = extra.to_vec();
        sorted.sort_by(f64::total_cmp);
        let swing_ms = sorted[sorted.len() * 9 / 10] - sorted[sorted.len() / 10];
        let queue = matches!(self.label, TailLabel::QueueBuildup | TailLabel::Mixed);
        if self.random.chance(0.4) && !(queue && swing_ms < 25.0) {
            return Vec::new();
        }
        let length = self.random.between(20.0, 118.0) as usize;
        let routes = self.label == TailLabel::BimodalRoute && self.family != "flap";
        let extra = if routes { self.extra() } else { vec![0.0; length] };
        (0..length)
            .map(|i| {
                let idle = extra.get(i).copied().unwrap_or(0.0);
                self.base_ms + idle + self.random.exponential(self.noise_ms)
            })
            .collect()
    }
}

/// An open-loop schedule, each gap between half and one and a half intervals.
fn schedule(random: &mut Random, length: usize, interval_ms: f64) -> Vec<f64> {
    let mut at_ms = 0.0;
    (0..length)
        .map(|_| {
            at_ms += interval_ms * random.between(0.5, 1.5);
            at_ms
        })
        .collect()
}

fn noise(random: &mut Random, family: &str) -> f64 {
    match family {
        "loss and jitter" => random.between(4.0, 14.0),
        "jittery" => random.between(1.0, 4.0),
        "fair queue" => random.between(0.8, 2.2),
        "Wi-Fi" | "scan" | "isolated" => random.between(0.5, 2.5),
        "two routes" | "four routes" | "too few, routes" => random.log_between(0.1, 0.6),
        _ => random.log_between(0.05, 2.0),
    }
}

/// One or two losses in a run can be read as something else.
fn also_acceptable(label: TailLabel, family: &str, losses: usize) -> &'static [TailLabel] {
    match (label, family) {
        (_, "one outlier") => &[TailLabel::Insufficient, TailLabel::Spikes],
        (_, "short clean") => &[TailLabel::Insufficient],
        (TailLabel::LossRetransmit, _) if losses <= 2 => {
            &[TailLabel::Clean, TailLabel::Insufficient, TailLabel::Spikes]
        }
        (TailLabel::Mixed, _) if losses <= 2 => &[TailLabel::QueueBuildup],
        _ => &[],
    }
}
