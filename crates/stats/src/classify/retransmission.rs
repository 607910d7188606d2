//! Step 2: which samples are retransmissions, by shape alone.

use super::evidence::{Explanation, weigh};
use super::gap::{Candidate, Gap, candidates};
use super::ladder::Backoff;
use super::stickiness::{STICKY_Z, runs};
use super::{Probe, answer};

/// The retransmitted probes of a run and their timer.
#[derive(Clone, Debug)]
pub(super) struct Retransmissions {
    /// For each probe, whether it was sent again and answered.
    pub(super) retransmitted: Vec<bool>,
    pub(super) rto_ms: Option<f64>,
    pub(super) backoff: Option<Backoff>,
    pub(super) gap: Option<Gap>,
}

impl Retransmissions {
    pub(super) fn none(probes: usize) -> Self {
        Self { retransmitted: vec![false; probes], rto_ms: None, backoff: None, gap: None }
    }

    pub(super) fn count(&self) -> usize {
        self.retransmitted.iter().filter(|&&again| again).count()
    }
}

/// Bayes factors that convince: strong evidence (Kass and Raftery 1995) for two samples and more, twice that
/// for one.
const CONVINCING: f64 = 10.0;
const CONVINCING_FOR_ONE: f64 = 20.0;
const MIN_EXPLAINED: f64 = 0.6;
/// One or two samples need an even less probable gap.
const FEW: usize = 2;
const GAP_OF_FEW: f64 = 0.002;
/// A body smaller than this has no shape to shift.
const MIN_BODY: usize = 10;

/// Finds the cluster of retransmitted probes in the round trips.
pub(super) fn by_shape(probes: &[Probe]) -> Retransmissions {
    let mut sorted: Vec<f64> = probes.iter().filter_map(answer).collect();
    sorted.sort_by(f64::total_cmp);
    let found = candidates(&sorted);
    let lowest_ms = found.iter().map(|candidate| candidate.gap.to_ms).fold(f64::INFINITY, f64::min);
    let sticky = is_sticky(probes, lowest_ms);
    let best = found
        .into_iter()
        .filter(|candidate| sorted.len() - candidate.above >= MIN_BODY)
        .filter_map(|candidate| {
            let (body, above) = sorted.split_at(sorted.len() - candidate.above);
            weigh(body, above, sticky).filter(|e| convinces(&candidate, e)).map(|e| (candidate, e))
        })
        .max_by(|(_, a), (_, b)| a.ln_bayes_factor.total_cmp(&b.ln_bayes_factor));
    let Some((Candidate { gap, .. }, explanation)) = best else { return Retransmissions::none(probes.len()) };
    Retransmissions {
        retransmitted: probes.iter().map(|p| answer(p).is_some_and(|rtt| rtt >= gap.to_ms)).collect(),
        rto_ms: Some(explanation.ladder.rto_ms),
        backoff: Some(explanation.ladder.backoff),
        gap: Some(gap),
    }
}

/// Whether neighbours cling together among the round trips below a limit.
fn is_sticky(probes: &[Probe], below_ms: f64) -> bool {
    let body: Vec<f64> = probes.iter().filter_map(answer).filter(|&rtt| rtt < below_ms).collect();
    let mut sorted = body.clone();
    let middle = sorted.len() / 2;
    if sorted.is_empty() {
        return false;
    }
    let median = *sorted.select_nth_unstable_by(middle, f64::total_cmp).1;
    let above: Vec<bool> = body.iter().map(|&rtt| rtt > median).collect();
    runs(&above).z >= STICKY_Z
}

fn convinces(candidate: &Candidate, explanation: &Explanation) -> bool {
    let needed = if candidate.above == 1 { CONVINCING_FOR_ONE } else { CONVINCING };
    explanation.ln_bayes_factor > needed.ln()
        && explanation.explained >= MIN_EXPLAINED
        && (candidate.above > FEW || candidate.probability < GAP_OF_FEW)
}
