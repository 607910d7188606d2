//! One JSON document; `docs/replay.md` describes it.

use super::Outcome;
use lab::replay::{Flow, Report, Samples, ShapedFlow, ShapingReport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Rate;

/// Raised whenever a key changes its meaning or goes.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    packets: u64,
    skipped: BTreeMap<String, u64>,
    damage: &'a Option<String>,
    bytes: u64,
    span_s: f64,
    packets_without_time: u64,
    tcp_packets: u64,
    tcp_connections: u64,
    pure_acks: u64,
    syn_retransmits: u64,
    retransmits: u64,
    rtt: Times,
    handshake_rtt: Times,
    syn_rtt: Times,
    flows: Vec<FlowRow>,
    flows_left_out: usize,
    packets_beyond_flow_table: u64,
    shaping: Option<ShapingPart>,
}

#[derive(Serialize)]
struct Times {
    n: u64,
    min_ms: Option<f64>,
    median_ms: Option<f64>,
    p90_ms: Option<f64>,
    max_ms: Option<f64>,
}

#[derive(Serialize)]
struct FlowRow {
    source: String,
    destination: String,
    protocol: String,
    #[serde(skip_serializing_if = "is_zero")]
    network_tag: u64,
    packets_forward: u64,
    packets_back: u64,
    bytes_forward: u64,
    bytes_back: u64,
    duration_s: Option<f64>,
    tcp_connections: u64,
    pure_acks: u64,
    syn_retransmits: u64,
    retransmits: u64,
    rtt_to_destination: Times,
    rtt_to_source: Times,
}

#[derive(Serialize)]
struct ShapingPart {
    rate_mbps: f64,
    from: Vec<String>,
    packets: u64,
    sent: u64,
    dropped_aqm: u64,
    dropped_overflow: u64,
    marked: u64,
    peak_queue_packets: u32,
    peak_queue_bytes: u64,
    delay: Times,
    flows: Vec<ShapedRow>,
}

#[derive(Serialize)]
struct ShapedRow {
    source: String,
    destination: String,
    protocol: String,
    #[serde(skip_serializing_if = "is_zero")]
    network_tag: u64,
    sent: u64,
    dropped_aqm: u64,
    dropped_overflow: u64,
    marked: u64,
    delay: Times,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The document, with at most `limit` flows, those with most bytes first.
pub fn render(outcome: &Outcome, limit: usize) -> String {
    let report = &outcome.report;
    let document = Document {
        schema_version: SCHEMA_VERSION,
        packets: report.packets,
        skipped: skipped(report),
        damage: &outcome.damage,
        bytes: report.bytes.get(),
        span_s: report.span.as_secs_f64(),
        packets_without_time: report.untimed,
        tcp_packets: report.tcp_packets,
        tcp_connections: report.tcp_connections,
        pure_acks: report.pure_acks,
        syn_retransmits: report.syn_retransmits,
        retransmits: report.retransmits,
        rtt: times(&report.rtt),
        handshake_rtt: times(&report.handshake_rtt),
        syn_rtt: times(&report.syn_rtt),
        flows: report.largest_flows(limit).into_iter().map(flow_row).collect(),
        flows_left_out: report.flows.len().saturating_sub(limit),
        packets_beyond_flow_table: report.packets_beyond_flow_table,
        shaping: outcome.shaping.as_ref().map(|(rate, shaping)| shaping_part(*rate, shaping, limit)),
    };
    // Strings, numbers and lists of them: serialising cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn skipped(report: &Report) -> BTreeMap<String, u64> {
    let name = |reason: &Option<_>| {
        reason.map_or("other".to_owned(), |reason: lab::replay::Skipped| reason.to_string())
    };
    report.skipped.iter().map(|(reason, &count)| (name(reason), count)).collect()
}

fn times(samples: &Samples) -> Times {
    // From whole nanoseconds, so that no digit is made up.
    let ms = |span: Option<Duration>| span.map(|span| span.as_nanos() as f64 / 1e6);
    Times {
        n: samples.count(),
        min_ms: ms(samples.min()),
        median_ms: ms(samples.median()),
        p90_ms: ms(samples.quantile(0.9)),
        max_ms: ms(samples.max()),
    }
}

fn flow_row(flow: &Flow) -> FlowRow {
    let duration = flow.end.zip(flow.start).map(|(end, start)| (end - start).as_secs_f64());
    FlowRow {
        source: flow.name.source(),
        destination: flow.name.destination(),
        protocol: flow.name.protocol(),
        network_tag: flow.name.tag,
        packets_forward: flow.packets[0],
        packets_back: flow.packets[1],
        bytes_forward: flow.bytes[0].get(),
        bytes_back: flow.bytes[1].get(),
        duration_s: duration,
        tcp_connections: flow.connections,
        pure_acks: flow.pure_acks,
        syn_retransmits: flow.syn_retransmits,
        retransmits: flow.retransmits,
        rtt_to_destination: times(&flow.rtt[0]),
        rtt_to_source: times(&flow.rtt[1]),
    }
}

fn shaping_part(rate: Rate, shaping: &ShapingReport, limit: usize) -> ShapingPart {
    let stats = &shaping.stats;
    ShapingPart {
        rate_mbps: rate.as_mbit_f64(),
        from: shaping.from.iter().map(ToString::to_string).collect(),
        packets: stats.enqueued.packets,
        sent: stats.sent.packets,
        dropped_aqm: stats.dropped_aqm.packets,
        dropped_overflow: stats.dropped_overflow.packets,
        marked: stats.marked,
        peak_queue_packets: stats.peak_packets,
        peak_queue_bytes: stats.peak_bytes.get(),
        delay: times(&shaping.delay),
        flows: shaping.busiest_flows(limit).into_iter().map(shaped_row).collect(),
    }
}

fn shaped_row(flow: &ShapedFlow) -> ShapedRow {
    ShapedRow {
        source: flow.name.source(),
        destination: flow.name.destination(),
        protocol: flow.name.protocol(),
        network_tag: flow.name.tag,
        sent: flow.sent,
        dropped_aqm: flow.dropped_aqm,
        dropped_overflow: flow.dropped_overflow,
        marked: flow.marked,
        delay: times(&flow.delay),
    }
}
