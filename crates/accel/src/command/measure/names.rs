//! Name resolution during a phase, and its rows of the run document.

use super::plan::Plan;
use crate::measurement::{NameKind, NameRow, percentiles};
use crate::names::{NameProbe, NameSeries};
use crate::probe::Window;
use crate::statement::round;
use platform::clock;
use std::time::Duration;
use units::as_ms;

/// Longest wait for calls that are still under way when the probes of a phase have ended.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// Starts both kinds, where they are wanted. A system without a thread to spare gets no figures of them.
pub(super) fn start(plan: &Plan, window: Window, seed: u64) -> Vec<NameProbe> {
    let Some(domain) = &plan.domain else { return Vec::new() };
    [NameKind::Cached, NameKind::Uncached]
        .into_iter()
        .filter_map(|kind| NameProbe::start(kind, domain, window, seed).ok())
        .collect()
}

/// Ends them.
pub(super) fn finish(plan: &Plan, probes: Vec<NameProbe>, window: Window) -> Vec<NameRow> {
    let deadline = clock::now() + LAST_CALLS;
    let domain = plan.domain.as_deref().unwrap_or_default();
    let row = |probe: NameProbe| {
        let (kind, series) = probe.finish(deadline);
        row(kind, domain, series, window)
    };
    probes.into_iter().map(row).collect()
}

fn row(kind: NameKind, domain: &str, series: NameSeries, window: Window) -> NameRow {
    let took_ms: Vec<Option<f64>> = series.took.iter().map(|took| took.map(|t| round(as_ms(t)))).collect();
    let answered: Vec<f64> = took_ms.iter().copied().flatten().collect();
    NameRow {
        kind,
        name: match kind {
            NameKind::Cached => domain.to_owned(),
            NameKind::Uncached => format!("*.{domain}"),
        },
        latency_ms: percentiles(&answered),
        failed: took_ms.len() - answered.len(),
        failure: series.failure,
        missed: series.missed,
        t_ms: series.begun.iter().map(|at| round(as_ms(at.saturating_since(window.start)))).collect(),
        took_ms,
    }
}
