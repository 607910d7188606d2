//! Step 2b: are the samples above a gap the body, delayed by a timer? Against two other explanations.

use super::density::{Density, thin};
use super::ladder::{Ladder, MAX_LOSSES};

/// How a hypothesis about the timer explains the samples above a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explanation {
    pub(super) ladder: Ladder,
    /// Natural logarithm of the Bayes factor against the better of the other explanations.
    pub(super) ln_bayes_factor: f64,
    /// The share of the samples above that lie on a rung.
    pub(super) explained: f64,
}

/// Within every explanation, one sample in ten may be anything.
const STRAY: f64 = 0.1;
/// A second route is not farther than this: half-way around the Earth and back, with detours.
const FARTHEST_ROUTE_MS: f64 = 450.0;
/// Nor nearer than this to be one.
const NEAREST_ROUTE_MS: f64 = 2.0;

/// A queue on two routes at once is rare: the odds against it, where the body is sticky as a queue's is.
const ROUTE_BESIDE_QUEUE: f64 = 0.05;

/// Weighs the samples `above` a gap against the sorted body beneath it; `sticky` when neighbours in the body
/// cling together.
pub(super) fn weigh(body: &[f64], above: &[f64], sticky: bool) -> Option<Explanation> {
    let base = *body.first()?;
    let share = above.len() as f64 / (above.len() + body.len()) as f64;
    let samples = thin(above);
    // Thinned samples carry the weight of those they stand for.
    let diffuse = Diffuse::new(base, body[body.len() - 1], above[above.len() - 1]);
    let stray: Vec<f64> = samples.iter().map(|&v| diffuse.scale_free(v)).collect();
    let rare = if sticky { ROUTE_BESIDE_QUEUE } else { 1.0 };
    let route =
        ln_second_route(body, &samples, &stray) + ln_share_as_route(above.len(), body.len()) + f64::ln(rare);
    let loss = ln_share_as_loss(share);
    let others = (diffuse.ln_likelihood(&samples, &stray) + loss).max(route);
    let mut total = LogSum::default();
    let mut best: Option<(f64, Ladder)> = None;
    let mut density: Option<(f64, Density)> = None;
    let mut ladders = Ladder::all();
    ladders.sort_by(|a, b| a.late_ms.total_cmp(&b.late_ms));
    for ladder in ladders {
        let current = match density.take() {
            Some((late, current)) if late == ladder.late_ms => current,
            _ => Density::new(body, ladder.late_ms),
        };
        let ln = loss + ladder.prior.ln() + ln_ladder(&ladder, &current, &samples, &stray, share);
        density = Some((ladder.late_ms, current));
        total.add(ln);
        if best.is_none_or(|(so_far, _)| ln > so_far) {
            best = Some((ln, ladder));
        }
    }
    let (_, ladder) = best?;
    let explained = explained(&ladder, &Density::new(body, ladder.late_ms), &samples, &stray, share);
    Some(Explanation { ladder, ln_bayes_factor: total.ln() - others, explained })
}

/// How likely a share of the probes is above the gap if that is the share of losses: any order of magnitude
/// from one in 500 to the most that is looked for.
fn ln_share_as_loss(share: f64) -> f64 {
    const LOWEST: f64 = 0.002;
    const HIGHEST: f64 = 0.42;
    -(share.max(LOWEST) * (HIGHEST / LOWEST).ln()).ln()
}

/// The same if it is the share of a second route: any share from one in ten to nine in ten.
fn ln_share_as_route(above: usize, below: usize) -> f64 {
    const LOWEST: f64 = 0.1;
    let (above, below) = (above as f64, below as f64);
    let share = above / (above + below);
    let short_of_lowest = if share < LOWEST {
        above * (LOWEST / share).ln() + below * ((1.0 - LOWEST) / (1.0 - share)).ln()
    } else {
        0.0
    };
    short_of_lowest - (1.0 - 2.0 * LOWEST).ln()
}

/// The body delayed by one to four lost attempts. Attempts are lost as often as first ones, or in bursts three
/// times as often: the two guesses count half each.
fn ln_ladder(ladder: &Ladder, body: &Density, samples: &[f64], stray: &[f64], loss: f64) -> f64 {
    let mut total = LogSum::default();
    for again in repeat_guesses(loss) {
        let ln: f64 = samples
            .iter()
            .zip(stray)
            .map(|(&v, stray)| ((1.0 - STRAY) * on_rungs(ladder, body, v, again) + STRAY * stray).ln())
            .sum();
        total.add(ln - std::f64::consts::LN_2);
    }
    total.ln()
}

fn repeat_guesses(loss: f64) -> [f64; 2] {
    [loss.clamp(0.01, 0.5), (3.0 * loss + 0.05).clamp(0.05, 0.6)]
}

/// The density of a value if it lies on the ladder and each attempt fails with probability `again`.
fn on_rungs(ladder: &Ladder, body: &Density, value: f64, again: f64) -> f64 {
    let whole = 1.0 - again.powi(MAX_LOSSES as i32);
    (1..=MAX_LOSSES)
        .map(|losses| {
            let weight = (1.0 - again) * again.powi(losses as i32 - 1) / whole;
            weight * body.at(value - ladder.delay_ms(losses))
        })
        .sum()
}

fn explained(ladder: &Ladder, body: &Density, samples: &[f64], stray: &[f64], loss: f64) -> f64 {
    let again = repeat_guesses(loss)[1];
    let on = samples
        .iter()
        .zip(stray)
        .filter(|&(&v, stray)| (1.0 - STRAY) * on_rungs(ladder, body, v, again) > STRAY * stray);
    on.count() as f64 / samples.len() as f64
}

/// The body shifted by one free distance of 2 to 450 ms, of any order of magnitude a priori.
fn ln_second_route(body: &[f64], samples: &[f64], stray: &[f64]) -> f64 {
    let density = Density::new(body, 0.0);
    let middle = samples[samples.len() / 2] - body[body.len() / 2];
    let reach = (samples[samples.len() * 3 / 4] - samples[samples.len() / 4])
        .max(body[body.len() * 3 / 4] - body[body.len() / 4])
        .max(4.0 * density.bandwidth_ms());
    let (low, high) = ((middle - reach).max(0.0), (middle + reach).min(FARTHEST_ROUTE_MS));
    if low >= high {
        return f64::NEG_INFINITY;
    }
    let steps = ((high - low) / (0.5 * density.bandwidth_ms())).ceil().clamp(8.0, 400.0);
    let width = (high - low) / steps;
    let magnitudes = (FARTHEST_ROUTE_MS / NEAREST_ROUTE_MS).ln();
    let mut total = LogSum::default();
    for step in 0..steps as u32 {
        let shift = low + width * (f64::from(step) + 0.5);
        let ln: f64 = samples
            .iter()
            .zip(stray)
            .map(|(&v, stray)| ((1.0 - STRAY) * density.at(v - shift) + STRAY * stray).ln())
            .sum();
        total.add(ln + (width / (shift.max(NEAREST_ROUTE_MS) * magnitudes)).ln());
    }
    total.ln()
}

/// Anything else: large delays of no particular size.
struct Diffuse {
    base: f64,
    ln_low: f64,
    ln_high: f64,
}

impl Diffuse {
    /// Log-means and log-spreads of the log-normal alternatives.
    const CENTRES: u32 = 24;
    const SPREADS: [f64; 3] = [0.15, 0.4, 0.9];

    fn new(base: f64, body_end: f64, largest: f64) -> Self {
        let low = (body_end - base).max(25.0);
        let high = (2.0 * (largest - base)).max(10_000.0).max(4.0 * low);
        Self { base, ln_low: low.ln(), ln_high: high.ln() }
    }

    /// Log-uniform in the distance from the base.
    fn scale_free(&self, value: f64) -> f64 {
        1.0 / ((value - self.base).max(1.0) * (self.ln_high - self.ln_low))
    }

    /// The better of the log-uniform and the log-normal tail, the latter averaged over place and spread.
    fn ln_likelihood(&self, samples: &[f64], stray: &[f64]) -> f64 {
        let uniform: f64 = stray.iter().map(|d| d.ln()).sum();
        let mut normal = LogSum::default();
        let choices = f64::from(Self::CENTRES) * Self::SPREADS.len() as f64;
        for centre in 0..Self::CENTRES {
            let share = (f64::from(centre) + 0.5) / f64::from(Self::CENTRES);
            let middle = self.ln_low + share * (self.ln_high - self.ln_low);
            for spread in Self::SPREADS {
                normal.add(self.ln_log_normal(samples, stray, middle, spread) - choices.ln());
            }
        }
        uniform.max(normal.ln())
    }

    fn ln_log_normal(&self, samples: &[f64], stray: &[f64], middle: f64, spread: f64) -> f64 {
        let density = |value: f64| {
            let distance = (value - self.base).max(1.0);
            let z = (distance.ln() - middle) / spread;
            (-0.5 * z * z).exp() / (distance * spread * std::f64::consts::TAU.sqrt())
        };
        samples.iter().zip(stray).map(|(&v, stray)| ((1.0 - STRAY) * density(v) + STRAY * stray).ln()).sum()
    }
}

/// The logarithm of a sum of numbers given by their logarithms.
struct LogSum {
    largest: f64,
    scaled: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self { largest: f64::NEG_INFINITY, scaled: 0.0 }
    }
}

impl LogSum {
    fn add(&mut self, ln: f64) {
        if ln == f64::NEG_INFINITY || ln.is_nan() {
            return;
        }
        if ln > self.largest {
            self.scaled = self.scaled * (self.largest - ln).exp() + 1.0;
            self.largest = ln;
        } else {
            self.scaled += (ln - self.largest).exp();
        }
    }

    fn ln(&self) -> f64 {
        self.largest + self.scaled.ln()
    }
}
