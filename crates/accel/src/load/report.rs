//! The sink's reports: how much it has received, back to the client over the same connection. Pure.
//!
//! One report is 16 bytes: the server's monotonic time in ns and the bytes received on this connection, both
//! u64 little endian. The time travels along because a report may itself wait in a queue: a rate formed from
//! the server's times is exact however late the reports come.

use super::series::{Counters, Series};
use std::collections::BTreeMap;
use units::{Bytes, Timestamp};

/// Length of one report.
const REPORT_BYTES: usize = 16;

/// One flow's reception, as the server saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// On the server's clock; the same for all flows of one tick.
    pub(super) at: Timestamp,
    pub(super) received: Bytes,
}

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT_BYTES] {
        let mut bytes = [0; REPORT_BYTES];
        bytes[..8].copy_from_slice(&self.at.as_nanos().to_le_bytes());
        bytes[8..].copy_from_slice(&self.received.get().to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; REPORT_BYTES]) -> Self {
        let [at, received] = [0, 8].map(|from| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(word)
        });
        Self { at: Timestamp::from_nanos(at), received: Bytes::new(received) }
    }
}

/// Cuts a stream of bytes into reports.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportReader {
    bytes: [u8; REPORT_BYTES],
    filled: usize,
}

impl ReportReader {
    /// Takes what was read and hands each complete report to `on_report`.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut on_report: impl FnMut(Report)) {
        while !bytes.is_empty() {
            let taken = bytes.len().min(REPORT_BYTES - self.filled);
            self.bytes[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == REPORT_BYTES {
                self.filled = 0;
                on_report(Report::decode(self.bytes));
            }
        }
    }
}

/// Most ticks that wait for the reports of some flows: ten minutes. Beyond, the oldest are given up.
const MAX_INCOMPLETE: usize = 6_000;

/// The reports of all upload flows, put together into one series.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    /// Of each flow.
    newest: Vec<Option<Report>>,
    /// Ticks that not all flows have reported yet: the number of flows that have, and their sum.
    incomplete: BTreeMap<Timestamp, (usize, Bytes)>,
    /// On the server's clock.
    series: Series,
    /// Smallest difference seen between arrival here and the server's time: what to add to the server's clock to
    /// get ours, too large by the shortest way back.
    offset_ns: Option<i128>,
}

impl Reports {
    pub(super) fn new(flows: usize) -> Self {
        let (incomplete, series) = (BTreeMap::new(), Series::default());
        Self { newest: vec![None; flows], incomplete, series, offset_ns: None }
    }

    /// Takes the report of one flow that arrives now. A point of the series comes into being when all flows have
    /// reported the same tick. A report that goes backwards is not believed.
    pub(super) fn on_report(&mut self, now: Timestamp, flow: usize, report: Report) {
        let is_old = |newest: Report| report.at <= newest.at || report.received < newest.received;
        if self.newest[flow].is_some_and(is_old) {
            return;
        }
        self.newest[flow] = Some(report);
        let difference = i128::from(now.as_nanos()) - i128::from(report.at.as_nanos());
        self.offset_ns = Some(self.offset_ns.map_or(difference, |offset| offset.min(difference)));
        let (flows, received) = self.incomplete.entry(report.at).or_default();
        *flows += 1;
        *received += report.received;
        if *flows == self.newest.len() {
            let counters = Counters { received: *received, ..Counters::default() };
            self.series.push(report.at, counters);
            // Every flow is past this tick, so that no earlier one can be completed any more.
            self.incomplete = self.incomplete.split_off(&report.at);
            self.incomplete.pop_first();
        } else if self.incomplete.len() > MAX_INCOMPLETE {
            self.incomplete.pop_first();
        }
    }

    /// What the server received, on this machine's clock (late by the shortest way back from the server).
    pub(super) fn series(&self) -> Series {
        self.series.shifted(self.offset_ns.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Window;
    use units::Rate;

    fn report(at_ms: u64, received: u64) -> Report {
        Report { at: Timestamp::from_millis(at_ms), received: Bytes::new(received) }
    }

    #[test]
    fn reports_survive_any_cut_of_the_stream() {
        let sent = [report(100, 5), report(200, u64::MAX), report(300, 0)];
        let stream = sent.map(Report::encode).concat();
        for size in 1..=stream.len() {
            let (mut reader, mut got) = (ReportReader::default(), Vec::new());
            for piece in stream.chunks(size) {
                reader.push(piece, |report| got.push(report));
            }
            assert_eq!(got, sent, "pieces of {size}");
        }
    }

    #[test]
    fn the_rate_is_exact_however_late_the_reports_come() {
        // The server's clock is 1000 s behind; reports come 10 to 510 ms late. 20 Mbit/s on two flows.
        let mut reports = Reports::new(2);
        for tick in 1..=50_u64 {
            let arrival = Timestamp::from_millis(1_000_000 + tick * 100 + 10 + (tick % 6) * 100);
            for flow in 0..2 {
                reports.on_report(arrival, flow, report(tick * 100, tick * 125_000));
            }
        }
        let start = Timestamp::from_millis(1_001_000);
        let window = Window { start, end: Timestamp::from_millis(1_004_000) };
        assert_eq!(reports.series().goodput(window), Some(Rate::mbit_per_s(20)));
        let first = reports.series().goodput_steps(Window { start: Timestamp::ZERO, end: window.end })[0].0;
        assert_eq!(first, Timestamp::from_millis(1_000_210), "the second tick, late by the shortest way");
    }

    #[test]
    fn a_tick_counts_once_all_flows_have_reported_it() {
        let mut reports = Reports::new(2);
        let now = Timestamp::from_millis(900);
        reports.on_report(now, 0, report(100, 10));
        reports.on_report(now, 0, report(200, 20));
        assert_eq!(reports.series(), Series::default());
        // The other flow has skipped a tick: its socket was full then.
        reports.on_report(now, 1, report(200, 2));
        let points: Vec<_> = reports.series().points().collect();
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].1.received, Bytes::new(22));
    }

    #[test]
    fn reports_that_come_in_bundles_are_all_used() {
        let mut reports = Reports::new(3);
        let now = Timestamp::from_millis(9_000);
        for flow in 0..3 {
            for tick in 1..=20 {
                reports.on_report(now, flow, report(tick * 100, tick * 10));
            }
        }
        let received: Vec<u64> = reports.series().points().map(|(_, c)| c.received.get()).collect();
        assert_eq!(received, (1..=20).map(|tick| tick * 30).collect::<Vec<_>>());
        assert!(reports.incomplete.is_empty());
    }

    #[test]
    fn a_flow_that_stays_silent_costs_bounded_memory() {
        let mut reports = Reports::new(2);
        for tick in 1..=20_000 {
            reports.on_report(Timestamp::from_millis(tick), 0, report(tick, tick));
        }
        assert_eq!(reports.incomplete.len(), MAX_INCOMPLETE);
    }

    #[test]
    fn a_lying_server_breaks_nothing() {
        let mut reports = Reports::new(1);
        let now = Timestamp::from_millis(900);
        reports.on_report(now, 0, report(200, 20));
        for lie in [report(100, 30), report(200, 30), report(300, 10)] {
            reports.on_report(now, 0, lie);
        }
        assert_eq!(reports.series().latest().received, Bytes::new(20));
        reports.on_report(now, 0, report(u64::MAX, u64::MAX));
        assert_eq!(reports.series().latest().received, Bytes::new(u64::MAX));
    }
}
