//! From what the prober and the emulator hand over to the columns of the run document.

use crate::emulator::{DirectionCounters, EmulatorCounters, Lateness};
use crate::probe::{self, Outcome, ProbeResult, Sample, Window};
use crate::run::{DirectionRecord, InstrumentRecord, LineRecord, PhaseRecord, SampleColumns, Spread};
use crate::statement::round;
use lab::LinkStats;
use std::time::Duration;
use units::as_ms;

/// The probes of the real target that were sent and answered, or lost.
pub(super) fn sample_columns(probes: &ProbeResult, window: Window) -> SampleColumns {
    columns_of(probes.real_samples(), window)
}

/// Those of the samples that were sent and answered, or lost.
pub(in crate::command) fn columns_of<'a>(
    samples: impl Iterator<Item = &'a Sample>,
    window: Window,
) -> SampleColumns {
    let mut columns = SampleColumns::default();
    for sample in samples {
        let (user, kernel, retransmits) = match sample.outcome {
            Outcome::Reply { user, kernel, retransmits } => (Some(user), kernel, retransmits),
            Outcome::Late { user, retransmits } => (Some(user), None, retransmits),
            Outcome::Lost { retransmits } => (None, None, retransmits),
            Outcome::Refused { .. } | Outcome::Failed { .. } => continue,
        };
        columns.t_ms.push(ms(sample.scheduled - window.start));
        columns.kernel_ms.push(kernel.map(ms));
        columns.user_ms.push(user.map(ms));
        columns.retransmits.push(retransmits);
    }
    columns
}

/// The prober's own figures.
pub(in crate::command) fn instrument_record(probes: &ProbeResult) -> InstrumentRecord {
    let own = &probes.instrument;
    let is_failed = |outcome| matches!(outcome, Outcome::Refused { .. } | Outcome::Failed { .. });
    InstrumentRecord {
        start_lateness_ms: own.start_lateness.map(spread).unwrap_or_default(),
        largest_loop_gap_ms: ms(own.largest_loop_gap),
        connect_call_ms: own.connect_call.map(spread).unwrap_or_default(),
        user_minus_kernel_ms: own.user_minus_kernel.map(spread),
        control_ms: own.control.map(|control| spread(control.user)),
        missed: own.missed as u64,
        late: own.late as u64,
        failed: probes.real_samples().filter(|s| is_failed(s.outcome)).count() as u64,
        scheduler: own.scheduler.to_string(),
    }
}

/// What the line did between two readings of its counters.
pub(super) fn line_record(before: &EmulatorCounters, after: &EmulatorCounters) -> LineRecord {
    let (up, down) = (lateness(&after.up.lateness), lateness(&after.down.lateness));
    LineRecord {
        up: direction_record(&before.up, &after.up),
        down: direction_record(&before.down, &after.down),
        relay_lateness_ms: Spread {
            p50: up.p50.max(down.p50),
            p99: up.p99.max(down.p99),
            max: up.max.max(down.max),
        },
    }
}

/// Packets that the line has taken in and neither delivered nor dropped.
pub(super) fn under_way(counters: &EmulatorCounters) -> u64 {
    let of = |link: &LinkStats| link.pushed.saturating_sub(link.delivered + link.queue_drops + link.losses);
    of(&counters.up.link) + of(&counters.down.link)
}

/// Both directions of all phases, added up.
pub(super) fn direction_totals(phases: &[PhaseRecord]) -> DirectionRecord {
    let mut total = DirectionRecord::default();
    for direction in phases.iter().flat_map(|p| [&p.line.up, &p.line.down]) {
        total.delivered_packets += direction.delivered_packets;
        total.delivered_bytes += direction.delivered_bytes;
        total.queue_drops += direction.queue_drops;
        total.random_losses += direction.random_losses;
        total.emulation_drops += direction.emulation_drops;
        total.largest_backlog_ms = total.largest_backlog_ms.max(direction.largest_backlog_ms);
    }
    total
}

fn direction_record(before: &DirectionCounters, after: &DirectionCounters) -> DirectionRecord {
    let errors = |c: &DirectionCounters| c.ring_drops + c.send_drops + c.oversized;
    DirectionRecord {
        delivered_packets: after.link.delivered - before.link.delivered,
        delivered_bytes: after.link.delivered_bytes - before.link.delivered_bytes,
        queue_drops: after.link.queue_drops - before.link.queue_drops,
        random_losses: after.link.losses - before.link.losses,
        emulation_drops: errors(after) - errors(before),
        largest_backlog_ms: ms(after.link.largest_backlog),
    }
}

pub(in crate::command) fn spread(spread: probe::Spread) -> Spread {
    Spread { p50: ms(spread.p50), p99: ms(spread.p99), max: ms(spread.max) }
}

fn lateness(lateness: &Lateness) -> Spread {
    Spread { p50: ms(lateness.quantile(0.5)), p99: ms(lateness.quantile(0.99)), max: ms(lateness.max()) }
}

fn ms(span: Duration) -> f64 {
    round(as_ms(span))
}
