//! The status lines: pure text, 80 columns.

use crate::message::Report;
use std::time::Duration;
use units::{Bytes, Rate, as_ms};

/// Names the columns; printed before the first line and every twenty lines.
pub const HEADER: &str = concat!(
    "    rate    sent     held    held   wait    wait  dropped  marked dropped   sent\n",
    "  Mbit/s  Mbit/s  packets      KB p50 ms  p99 ms by CoDel      CE    full  ahead\n",
);

/// The line for the second between two reports, of which the later one tells what waits.
pub fn line(rate: Rate, earlier: &Report, later: &Report, span: Duration) -> String {
    let since = |field: fn(&Report) -> u64| field(later).saturating_sub(field(earlier));
    let sent = Rate::of(Bytes::new(since(|r| r.sent_wire_bytes)), span);
    let (p50, p99) = later.sojourn().map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |(p50, p99)| (milliseconds(p50), milliseconds(p99)),
    );
    let mut line = format!(
        "{:>8.2}{:>8.2}{:>9}{:>8.1}{p50:>7}{p99:>8}{:>9}{:>8}{:>8}{:>7}",
        rate.as_mbit_f64(),
        sent.as_mbit_f64(),
        later.backlog_packets,
        later.backlog_bytes as f64 / 1e3,
        since(|r| r.dropped_aqm),
        since(|r| r.marked),
        since(|r| r.dropped_overflow),
        since(|r| r.express),
    );
    let overrun = since(|r| r.overrun_packets);
    if overrun > 0 {
        line.push_str(&format!("\nwarning: {overrun} packets passed unshaped, this machine was too slow"));
    }
    let faults = since(|r| r.faults);
    if faults > 0 {
        line.push_str(&format!(
            "\nwarning: the kernel refused or garbled {faults} messages (as when the interface goes away)"
        ));
    }
    line.push('\n');
    line
}

/// At most six characters below 1000 s, so that columns stay apart.
fn milliseconds(span: Duration) -> String {
    let ms = as_ms(span);
    if ms < 999.995 { format!("{ms:.2}") } else { format!("{ms:.0}") }
}

/// What was done since the start, for the log's last line.
pub fn total(report: &Report) -> String {
    format!(
        "sent {} packets, {}; CoDel dropped {} and marked {}; a full buffer dropped {}; {} passed unshaped",
        report.sent_packets,
        Bytes::new(report.sent_wire_bytes),
        report.dropped_aqm,
        report.marked,
        report.dropped_overflow,
        report.overrun_packets,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            sent_packets: 1_583,
            sent_wire_bytes: 2_375_000,
            dropped_aqm: 12,
            express: 40,
            backlog_packets: 8,
            backlog_bytes: 12_112,
            sojourn_p50_ns: 4_870_000,
            sojourn_p99_ns: 9_120_000,
            ..Report::default()
        }
    }

    #[test]
    fn a_second_is_one_line_of_80_columns() {
        let text = line(Rate::mbit_per_s(19), &Report::default(), &report(), Duration::from_secs(1));
        assert_eq!(
            text,
            "   19.00   19.00        8    12.1   4.87    9.12       12       0       0     40\n"
        );
        for row in HEADER.lines().chain(text.lines()) {
            assert_eq!(row.len(), 80, "{row}");
        }
    }

    #[test]
    fn a_silent_second_has_no_sojourn_time() {
        let silent = Report { sojourn_p50_ns: u64::MAX, sojourn_p99_ns: u64::MAX, ..report() };
        let text = line(Rate::mbit_per_s(19), &report(), &silent, Duration::from_secs(1));
        assert!(text.contains("      -       -"), "{text}");
        assert!(text.contains("    0.00"), "{text}");
    }

    #[test]
    fn trouble_gets_a_line_of_its_own() {
        let troubled = Report { overrun_packets: 3, faults: 1, ..report() };
        let text = line(Rate::mbit_per_s(19), &report(), &troubled, Duration::from_secs(1));
        assert!(text.contains("\nwarning: 3 packets passed unshaped"), "{text}");
        assert!(text.contains("\nwarning: the kernel refused or garbled 1 messages"), "{text}");
    }

    #[test]
    fn columns_stay_apart_at_the_lowest_rate() {
        let slow = Report { sojourn_p50_ns: 1_509_950_000, sojourn_p99_ns: 12_000_000_000, ..report() };
        let text = line(Rate::kbit_per_s(8), &Report::default(), &slow, Duration::from_secs(1));
        assert_eq!(text.len(), 81, "{text}");
        assert_eq!(text.split_whitespace().count(), 10, "{text}");
    }
}
