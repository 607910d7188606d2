//! The footnotes that the table's marks need.

use crate::run::{Arm, PercentileRecord, PhaseRecord, Run};

/// The mark of rows whose queue the shaper cannot reach.
pub(super) const NOT_OURS_MARK: &str = " *";
/// What the mark means.
pub(super) const NOT_OURS: &str = "download queue: not ours to shape yet";

/// Whether the row's latency comes from a queue at the far side, which no shaper of the client's uploads reaches.
pub(super) fn queue_is_not_ours(phase: &PhaseRecord) -> bool {
    phase.arm == Arm::On && phase.phase.loads_down()
}

/// One line per mark that occurs in the table.
pub(in crate::render) fn notes(run: &Run) -> Vec<String> {
    let percentiles = |p: &PhaseRecord| -> Vec<PercentileRecord> {
        let latency = &p.latency_ms;
        let mut shown = vec![latency.p50.clone(), latency.p95.clone()];
        shown.extend((!run.settings.quick).then(|| latency.p99.clone()));
        shown
    };
    let any = |test: fn(&PercentileRecord) -> bool| run.phases.iter().flat_map(percentiles).any(|p| test(&p));
    let mut notes = Vec::new();
    if run.phases.iter().any(queue_is_not_ours) {
        notes.push(format!("* {NOT_OURS}"));
    }
    if any(|p| p.grade == "rough") {
        notes.push("~ rough: fewer than ten independent samples lie beyond this percentile".to_owned());
    }
    if any(|p| p.lo.is_some() && p.hi.is_none()) {
        notes
            .push(format!("≥ no upper limit from this many samples (independent ones needed: {})", needed()));
    }
    if any(|p| p.lo.is_none() && p.hi.is_none()) {
        notes.push(
            "no limits: the queue swung too slowly, or the phase was too short, for enough independent samples"
                .to_owned(),
        );
    }
    if run.phases.iter().any(|p| p.probe_loss.lost > 0) {
        notes.push(
            "probes whose SYN was sent again count as lost and not in the percentiles; n is without them"
                .to_owned(),
        );
    }
    let loss = run.settings.loss_pct;
    if loss > 0.0 {
        let of_probes = 100.0 * (1.0 - (1.0 - loss / 100.0).powi(2));
        notes.push(format!(
            "the line itself loses {of_probes:.1} % of the probes: {loss} % on the way there and {loss} % on the way back"
        ));
    }
    if run.settings.quick {
        notes.push(
            "quick: too short for a p99, and the unshaped queues are still growing when it ends".to_owned(),
        );
    }
    notes
}

/// `p50 6, p95 72, p99 368`.
fn needed() -> String {
    let of = |percent: f64| {
        let n = units::Ratio::from_percent(percent).and_then(stats::needed_n_eff);
        n.map(|n| format!("p{percent} {n}"))
    };
    [50.0, 95.0, 99.0].into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}
