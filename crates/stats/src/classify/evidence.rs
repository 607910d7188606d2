//! Step 2b: are the samples above a gap the body, delayed by a timer? Against two other explanations.

use super::alternatives::{LogSum, Observed};
use super::density::Density;
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

/// Weighs the samples `above` a gap against the sorted body beneath it; `sticky` when neighbours in the body
/// cling together.
pub(super) fn weigh(body: &[f64], above: &[f64], sticky: bool) -> Option<Explanation> {
    let share = above.len() as f64 / (above.len() + body.len()) as f64;
    let loss = ln_share_as_loss(share);
    let observed = Observed::new(body, above)?;
    let others = (observed.ln_anything() + loss).max(observed.ln_second_route(sticky));
    let (total, ladder) = all_ladders(&observed, share)?;
    let density = Density::new(body, ladder.late_ms);
    Some(Explanation {
        ladder,
        ln_bayes_factor: total + loss - others,
        explained: explained(&ladder, &density, &observed, share),
    })
}

/// The likelihood over all hypotheses about the timer, and the best of them.
fn all_ladders(observed: &Observed<'_>, share: f64) -> Option<(f64, Ladder)> {
    let mut total = LogSum::default();
    let mut best: Option<(f64, Ladder)> = None;
    let mut ladders = Ladder::all();
    // One density serves all ladders that are equally late.
    ladders.sort_by(|a, b| a.late_ms.total_cmp(&b.late_ms));
    for equally_late in ladders.chunk_by(|a, b| a.late_ms == b.late_ms) {
        let density = Density::new(observed.body, equally_late[0].late_ms);
        for &ladder in equally_late {
            let ln = ladder.prior.ln() + ln_ladder(&ladder, &density, observed, share);
            total.add(ln);
            if best.is_none_or(|(so_far, _)| ln > so_far) {
                best = Some((ln, ladder));
            }
        }
    }
    best.map(|(_, ladder)| (total.ln(), ladder))
}

/// How likely a share of the probes is above the gap if that is the share of losses: any order of magnitude
/// from one in 500 to the most that is looked for.
fn ln_share_as_loss(share: f64) -> f64 {
    const LOWEST: f64 = 0.002;
    const HIGHEST: f64 = 0.42;
    -(share.max(LOWEST) * (HIGHEST / LOWEST).ln()).ln()
}

/// The body delayed by one to four lost attempts. Attempts are lost as often as first ones, or in bursts three
/// times as often: the two guesses count half each.
fn ln_ladder(ladder: &Ladder, body: &Density, observed: &Observed<'_>, loss: f64) -> f64 {
    let mut total = LogSum::default();
    for again in repeat_guesses(loss) {
        let ln = observed.ln_likelihood(|value| on_rungs(ladder, body, value, again));
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

/// The share of the samples that rather lie on a rung than stray.
fn explained(ladder: &Ladder, body: &Density, observed: &Observed<'_>, loss: f64) -> f64 {
    let again = repeat_guesses(loss)[1];
    observed.share_explained(|value| on_rungs(ladder, body, value, again))
}
