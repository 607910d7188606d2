//! Text for people.

use super::Outcome;
use comfy_table::{CellAlignment, Table, presets};
use lab::replay::{Flow, Report, Samples, ShapedFlow, ShapingReport};
use std::fmt::Write;
use std::time::Duration;
use units::{Bytes, Rate, display_ms};

/// The report, with at most `limit` flows, those with most bytes first.
pub fn render(outcome: &Outcome, limit: usize) -> String {
    let report = &outcome.report;
    let mut out = summary(report);
    if let Some(damage) = &outcome.damage {
        line(&mut out, "damage", &format!("{damage}; only what comes before it counts"));
    }
    if !report.flows.is_empty() {
        let _ = write!(out, "\n{}\n", flow_table(&report.largest_flows(limit)));
        out += "RTT (median): between the place of capture and the right-hand side (there) or the left-hand one (back)\n";
        left_out(&mut out, report.flows.len(), limit);
    }
    if let Some((rate, shaping)) = &outcome.shaping {
        out += &shaping_part(*rate, shaping, limit);
    }
    out
}

fn summary(report: &Report) -> String {
    let mut out = String::new();
    let span = report.span.as_secs_f64();
    line(&mut out, "packets", &format!("{} in {span:.3} s, {}", report.packets, report.bytes));
    for (reason, count) in &report.skipped {
        let reason = reason.map_or("other reasons".to_owned(), |reason| reason.to_string());
        line(&mut out, "skipped", &format!("{count}: {reason}"));
    }
    if report.untimed > 0 {
        line(&mut out, "no time", &format!("{} packets, not used for round trips", report.untimed));
    }
    if report.packets_beyond_flow_table > 0 {
        line(
            &mut out,
            "not listed",
            &format!("{} packets of further flows", report.packets_beyond_flow_table),
        );
    }
    let share = report.pure_acks as f64 * 100.0 / report.packets.max(1) as f64;
    line(&mut out, "TCP", &format!("{} packets, {} connections", report.tcp_packets, report.tcp_connections));
    line(&mut out, "pure ACKs", &format!("{} ({share:.1} % of all packets)", report.pure_acks));
    let again = format!("{} SYN or SYN-ACK, {} data or FIN", report.syn_retransmits, report.retransmits);
    line(&mut out, "repeated", &again);
    line(&mut out, "RTT", &times(&report.rtt));
    line(&mut out, "handshake", &format!("{} (SYN to last ACK)", times(&report.handshake_rtt)));
    line(&mut out, "SYN-ACK", &format!("{} (SYN to SYN-ACK)", times(&report.syn_rtt)));
    out
}

fn line(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "{name:<11}{text}");
}

fn times(samples: &Samples) -> String {
    let (Some(min), Some(median), Some(p90)) = (samples.min(), samples.median(), samples.quantile(0.9))
    else {
        return "none seen".to_owned();
    };
    let n = samples.count();
    format!("min {}, median {}, p90 {}, n={n}", display_ms(min), display_ms(median), display_ms(p90))
}

fn left_out(out: &mut String, flows: usize, limit: usize) {
    if flows > limit {
        let _ = writeln!(out, "{} smaller flows are not shown; --flows N shows more", flows - limit);
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn flow_table(flows: &[&Flow]) -> Table {
    let mut table =
        table(&["flow", "", "packets", "bytes", "ACKs", "repeated", "RTT there", "n", "RTT back", "n"]);
    for flow in flows {
        let repeated = flow.syn_retransmits + flow.retransmits;
        let bytes: Bytes = flow.bytes.into_iter().sum();
        table.add_row([
            flow.name.protocol(),
            format!("{} > {}", flow.name.source(), flow.name.destination()),
            format!("{} / {}", flow.packets[0], flow.packets[1]),
            bytes.to_string(),
            flow.pure_acks.to_string(),
            repeated.to_string(),
            ms_or_dash(flow.rtt[0].median()),
            flow.rtt[0].count().to_string(),
            ms_or_dash(flow.rtt[1].median()),
            flow.rtt[1].count().to_string(),
        ]);
    }
    table
}

fn ms_or_dash(span: Option<Duration>) -> String {
    span.map_or("-".to_owned(), display_ms)
}

fn shaping_part(rate: Rate, shaping: &ShapingReport, limit: usize) -> String {
    let stats = &shaping.stats;
    let from: Vec<String> = shaping.from.iter().map(ToString::to_string).collect();
    let mut out = format!("\nshaped to {rate}: the packets from {}, senders not reacting\n", from.join(", "));
    line(&mut out, "packets", &format!("{} queued, {} sent", stats.enqueued.packets, stats.sent.packets));
    let drops = (stats.dropped_aqm.packets, stats.dropped_overflow.packets, stats.marked);
    line(
        &mut out,
        "signals",
        &format!("{} AQM drops, {} overflow drops, {} marks", drops.0, drops.1, drops.2),
    );
    line(&mut out, "queue", &format!("at most {} packets, {}", stats.peak_packets, stats.peak_bytes));
    line(&mut out, "delay", &times(&shaping.delay));
    if !shaping.flows.is_empty() {
        let _ = write!(out, "\n{}\n", shaped_table(&shaping.busiest_flows(limit)));
        left_out(&mut out, shaping.flows.len(), limit);
    }
    out
}

fn shaped_table(flows: &[&ShapedFlow]) -> Table {
    let mut table =
        table(&["flow", "", "sent", "AQM drops", "overflow", "marks", "delay median", "p90", "max"]);
    for flow in flows {
        table.add_row([
            flow.name.protocol(),
            format!("{} > {}", flow.name.source(), flow.name.destination()),
            flow.sent.to_string(),
            flow.dropped_aqm.to_string(),
            flow.dropped_overflow.to_string(),
            flow.marked.to_string(),
            ms_or_dash(flow.delay.median()),
            ms_or_dash(flow.delay.quantile(0.9)),
            ms_or_dash(flow.delay.max()),
        ]);
    }
    table
}
