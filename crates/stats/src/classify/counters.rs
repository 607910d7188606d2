//! Step 0: what the system counted. Where there are counters, shape is not asked.

use super::gap::Gap;
use super::retransmission::Retransmissions;
use super::{Probe, answer, ladder};

/// Counters on at least this share of the answered probes make them the evidence.
const ENOUGH_COUNTED: f64 = 0.5;

/// The retransmissions by the system's own count; `None` where too few probes carry one.
pub(super) fn retransmissions(probes: &[Probe]) -> Option<Retransmissions> {
    let answered = probes.iter().filter(|probe| answer(probe).is_some()).count();
    let counted = probes.iter().filter(|p| answer(p).is_some() && p.retransmits.is_some()).count();
    if answered == 0 || (counted as f64) < ENOUGH_COUNTED * answered as f64 {
        return None;
    }
    let retransmitted: Vec<bool> =
        probes.iter().map(|p| answer(p).is_some() && p.retransmits.is_some_and(|count| count > 0)).collect();
    let mut found = Retransmissions { retransmitted, ..Retransmissions::none(probes.len()) };
    if found.count() > 0 {
        let once = once_retransmitted(probes);
        let body = sorted(
            probes
                .iter()
                .zip(&found.retransmitted)
                .filter(|(_, again)| !**again)
                .filter_map(|(p, _)| answer(p)),
        );
        found.rto_ms = ladder::timeout_of(&once, &body);
        found.gap = gap_beneath(&once, &body);
    }
    Some(found)
}

/// Round trips of the probes that were sent again exactly once, sorted.
fn once_retransmitted(probes: &[Probe]) -> Vec<f64> {
    sorted(probes.iter().filter(|p| p.retransmits == Some(1)).filter_map(answer))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The empty range between the body and the first cluster, where there is one.
fn gap_beneath(once: &[f64], body: &[f64]) -> Option<Gap> {
    let to_ms = *once.first()?;
    let below = body.partition_point(|&rtt| rtt < to_ms);
    // A few of the body may lie higher, in a long queue; then there is no empty range.
    (below == body.len()).then(|| body.last().map(|&from_ms| Gap { from_ms, to_ms }))?
}
