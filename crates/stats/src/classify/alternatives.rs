//! Step 2c: what else the samples above a gap could be: a second route, or anything.

use super::density::{Density, thin};

/// Within every explanation, one sample in ten may be anything.
const STRAY: f64 = 0.1;
/// A second route is not farther than this: half-way around the Earth and back, with detours.
const FARTHEST_ROUTE_MS: f64 = 450.0;
/// Nor nearer than this to be one.
const NEAREST_ROUTE_MS: f64 = 2.0;

/// A queue on two routes at once is rare: the odds against it, where the body is sticky as a queue's is.
const ROUTE_BESIDE_QUEUE: f64 = 0.05;

/// The samples above a gap, thinned, with the body beneath it.
pub(super) struct Observed<'a> {
    /// Sorted, not empty.
    pub(super) body: &'a [f64],
    samples: Vec<f64>,
    /// For each sample its density if it strays.
    stray: Vec<f64>,
    diffuse: Diffuse,
    above: usize,
}

impl<'a> Observed<'a> {
    /// `None` when one side is empty.
    pub(super) fn new(body: &'a [f64], above: &[f64]) -> Option<Self> {
        let diffuse = Diffuse::new(*body.first()?, *body.last()?, *above.last()?);
        let samples = thin(above);
        let stray = samples.iter().map(|&value| diffuse.scale_free(value)).collect();
        Some(Self { body, samples, stray, diffuse, above: above.len() })
    }

    /// The log likelihood of the samples under a density, some of them straying.
    pub(super) fn ln_likelihood(&self, density: impl Fn(f64) -> f64) -> f64 {
        let with_strays =
            |(&value, stray): (&f64, &f64)| ((1.0 - STRAY) * density(value) + STRAY * stray).ln();
        self.samples.iter().zip(&self.stray).map(with_strays).sum()
    }

    /// The share of the samples that a density explains better than straying does.
    pub(super) fn share_explained(&self, density: impl Fn(f64) -> f64) -> f64 {
        let better = |&(&value, stray): &(&f64, &f64)| (1.0 - STRAY) * density(value) > STRAY * stray;
        self.samples.iter().zip(&self.stray).filter(better).count() as f64 / self.samples.len() as f64
    }

    /// The better of the log-uniform and the log-normal tail, the latter averaged over place and spread.
    pub(super) fn ln_anything(&self) -> f64 {
        let uniform: f64 = self.stray.iter().map(|density| density.ln()).sum();
        let mut normal = LogSum::default();
        let shapes = self.diffuse.log_normals();
        for &(middle, spread) in &shapes {
            let ln = self.ln_likelihood(|value| self.diffuse.log_normal(value, middle, spread));
            normal.add(ln - (shapes.len() as f64).ln());
        }
        uniform.max(normal.ln())
    }

    /// The body shifted by one free distance of 2 to 450 ms, of any order of magnitude a priori.
    pub(super) fn ln_second_route(&self, sticky: bool) -> f64 {
        let density = Density::new(self.body, 0.0);
        let middle = self.samples[self.samples.len() / 2] - self.body[self.body.len() / 2];
        let quarters = |sorted: &[f64]| sorted[sorted.len() * 3 / 4] - sorted[sorted.len() / 4];
        let reach = quarters(&self.samples).max(quarters(self.body)).max(4.0 * density.bandwidth_ms());
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
            let prior = width / (shift.max(NEAREST_ROUTE_MS) * magnitudes);
            total.add(self.ln_likelihood(|value| density.at(value - shift)) + prior.ln());
        }
        let rare = if sticky { ROUTE_BESIDE_QUEUE } else { 1.0 };
        total.ln() + ln_share_as_route(self.above, self.body.len()) + f64::ln(rare)
    }
}

/// How likely a share of the probes is above the gap if that is the share of a second route: any share from one in
/// ten to nine in ten.
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

    /// Places and spreads of the log-normal alternatives.
    fn log_normals(&self) -> Vec<(f64, f64)> {
        let middle = |centre: u32| {
            let share = (f64::from(centre) + 0.5) / f64::from(Self::CENTRES);
            self.ln_low + share * (self.ln_high - self.ln_low)
        };
        (0..Self::CENTRES).flat_map(|c| Self::SPREADS.map(|spread| (middle(c), spread))).collect()
    }

    /// Log-normal in the distance from the base.
    fn log_normal(&self, value: f64, middle: f64, spread: f64) -> f64 {
        let distance = (value - self.base).max(1.0);
        let z = (distance.ln() - middle) / spread;
        (-0.5 * z * z).exp() / (distance * spread * std::f64::consts::TAU.sqrt())
    }
}

/// The logarithm of a sum of numbers given by their logarithms.
pub(super) struct LogSum {
    largest: f64,
    scaled: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self { largest: f64::NEG_INFINITY, scaled: 0.0 }
    }
}

impl LogSum {
    pub(super) fn add(&mut self, ln: f64) {
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

    pub(super) fn ln(&self) -> f64 {
        self.largest + self.scaled.ln()
    }
}
