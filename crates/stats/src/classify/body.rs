//! Step 3: what is left when the retransmissions are gone. Two routes, a queue, spikes, or nothing.

use super::routes::{Routes, routes};
use super::stickiness::{STICKY_Z, runs};
use super::{Probe, answer};

/// The probes that came back at the first attempt.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Send times in ms, in time order.
    at_ms: Vec<f64>,
    /// Round trips in ms, in time order.
    in_time: Vec<f64>,
    pub(super) sorted: Vec<f64>,
    /// The path without queue, in ms.
    pub(super) base_ms: f64,
    /// How far round trips scatter on the idle line, in ms; `None` without an idle phase.
    idle_spread_ms: Option<f64>,
}

/// What the body looks like.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Queue(Queue),
    Routes(Routes),
    Spikes(Spikes),
    Plain,
}

/// A queue's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Queue {
    /// Share of the probes that waited.
    pub(super) share: f64,
    /// From here on a probe waited, in ms.
    pub(super) threshold_ms: f64,
    /// The longest time without a probe below the threshold, in s.
    pub(super) longest_s: f64,
}

/// Spikes' figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spikes {
    pub(super) count: usize,
    pub(super) threshold_ms: f64,
}

/// Less than this above the base is no queue worth a name (half an fq_codel target above its own 5 ms).
const MIN_QUEUE_MS: f64 = 8.0;
const IDLE_SPREADS: f64 = 3.0;
const LONG_EXCURSION_S: f64 = 1.5;
/// A queue spends its time anywhere; noise piles up at the bottom. Exponential noise has its median at 0.23 of
/// the way from minimum to p95, a uniform queue at 0.53.
const PILED_UP: f64 = 0.32;
/// Spikes stand this many interquartile ranges above the median (exponential noise: 1 in 2000 beyond 6).
const SPIKE_RANGES: f64 = 7.0;
const MIN_SPIKE_MS: f64 = 12.0;
const MIN_SPIKES: usize = 3;

impl Body {
    pub(super) fn new(probes: &[Probe], retransmitted: &[bool], idle_rtt_ms: &[f64]) -> Self {
        let kept = || probes.iter().zip(retransmitted).filter(|(_, again)| !**again);
        let (at_ms, in_time): (Vec<f64>, Vec<f64>) =
            kept().filter_map(|(probe, _)| answer(probe).map(|rtt| (probe.at_ms, rtt))).unzip();
        let sorted = sorted(in_time.iter().copied());
        let idle = sorted_idle(idle_rtt_ms);
        let lowest = quantile(&sorted, 0.01).unwrap_or(0.0);
        let base_ms = quantile(&idle, 0.05).map_or(lowest, |idle| idle.min(lowest));
        let idle_spread_ms = quantile(&idle, 0.75).zip(quantile(&idle, 0.25)).map(|(high, low)| high - low);
        Self { at_ms, in_time, sorted, base_ms, idle_spread_ms }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// A quantile of the body in ms; zero for an empty one.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        quantile(&self.sorted, p).unwrap_or(0.0)
    }

    /// The first description that fits: routes, queue, spikes. Beside losses a queue is likelier than a second
    /// route: what overflows loses packets.
    pub(super) fn shape(&self, lossy: bool) -> Shape {
        let routes = || routes(&self.in_time, &self.sorted).map(Shape::Routes);
        let queue = || self.queue().map(Shape::Queue);
        let level = if lossy { queue().or_else(routes) } else { routes().or_else(queue) };
        level.or_else(|| self.spikes().map(Shape::Spikes)).unwrap_or(Shape::Plain)
    }

    fn queue(&self) -> Option<Queue> {
        let threshold_ms = self.base_ms + MIN_QUEUE_MS.max(IDLE_SPREADS * self.idle_spread_ms.unwrap_or(0.0));
        let waits: Vec<bool> = self.in_time.iter().map(|&rtt| rtt > threshold_ms).collect();
        let share = waits.iter().filter(|&&w| w).count() as f64 / waits.len().max(1) as f64;
        let median = self.quantile(0.5);
        let around_median: Vec<bool> = self.in_time.iter().map(|&rtt| rtt > median).collect();
        let sticky = runs(&waits).z.max(runs(&around_median).z) >= STICKY_Z;
        let longest_s = self.longest_excursion_s(&waits);
        let always = share >= 0.5 && (sticky || !self.piles_up_at_the_bottom());
        let often = share >= 0.3 && sticky;
        let long = share >= 0.12 && sticky && longest_s >= LONG_EXCURSION_S;
        (always || often || long).then_some(Queue { share, threshold_ms, longest_s })
    }

    fn piles_up_at_the_bottom(&self) -> bool {
        let (low, middle, high) = (self.base_ms, self.quantile(0.5), self.quantile(0.95));
        middle - low < PILED_UP * (high - low)
    }

    /// The longest stretch of waiting probes, in s.
    fn longest_excursion_s(&self, waits: &[bool]) -> f64 {
        let (mut longest, mut start) = (0.0_f64, None);
        for (&at, &waits) in self.at_ms.iter().zip(waits) {
            start = if waits { start.or(Some(at)) } else { None };
            longest = longest.max(start.map_or(0.0, |start: f64| at - start));
        }
        longest / 1000.0
    }

    fn spikes(&self) -> Option<Spikes> {
        let range = self.quantile(0.75) - self.quantile(0.25);
        let threshold_ms = self.quantile(0.5) + MIN_SPIKE_MS.max(SPIKE_RANGES * range);
        let count = self.sorted.len() - self.sorted.partition_point(|&rtt| rtt <= threshold_ms);
        (count >= MIN_SPIKES).then_some(Spikes { count, threshold_ms })
    }
}

fn sorted_idle(idle_rtt_ms: &[f64]) -> Vec<f64> {
    sorted(idle_rtt_ms.iter().copied().filter(|rtt| rtt.is_finite() && *rtt >= 0.0))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The order statistic nearest to a quantile.
pub(super) fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(last as f64 * p).round() as usize])
}
