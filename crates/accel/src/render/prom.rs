//! A run as a Prometheus text file (exposition format 0.0.4), for node_exporter's textfile collector.
//!
//! Written by hand: prometheus-client writes OpenMetrics 1.0, which that collector does not read. Base units as
//! Prometheus wants them: seconds, ratios from 0 to 1, bits per second. A figure that the run does not have, and a limit
//! that the data do not give, has no line.

use super::view::{Goodput, Track, View};
use std::fmt::Write;

/// All metrics of one run.
pub fn render(view: &View<'_>) -> String {
    let mut text = String::new();
    let run = [("command".to_owned(), view.command.to_owned())];
    family(
        &mut text,
        "accel_run_start_timestamp_seconds",
        "Start of the run, seconds since 1970-01-01 UTC.",
        &[(run.to_vec(), view.started_unix_ms as f64 / 1000.0)],
    );
    family(
        &mut text,
        "accel_run_duration_seconds",
        "How long the run took.",
        &[(run.to_vec(), view.duration_s)],
    );
    for (name, help, lines) in FAMILIES {
        let all: Vec<Line> = view.tracks.iter().flat_map(lines).collect();
        family(&mut text, name, help, &all);
    }
    text
}

/// Labels and value.
type Line = (Vec<(String, String)>, f64);
/// Name, help, and the lines of one track.
type Family = (&'static str, &'static str, fn(&Track<'_>) -> Vec<Line>);

const FAMILIES: [Family; 12] = [
    ("accel_latency_seconds", "Percentile of the latency of probes answered at the first attempt.", |t| {
        latency(t, |p| p.value)
    }),
    ("accel_latency_lower_limit_seconds", "Lower 95 % limit of that percentile.", |t| latency(t, |p| p.lo)),
    ("accel_latency_upper_limit_seconds", "Upper 95 % limit of that percentile.", |t| latency(t, |p| p.hi)),
    ("accel_probes", "Probes sent, lost ones included.", |t| vec![(labels(t), t.loss.n as f64)]),
    ("accel_probe_loss_ratio", "Share of probes lost or sent again.", |t| loss(t, t.loss.value_pct)),
    ("accel_probe_loss_lower_limit_ratio", "Lower 95 % limit of that share.", |t| loss(t, t.loss.lo_pct)),
    ("accel_probe_loss_upper_limit_ratio", "Upper 95 % limit of that share.", |t| loss(t, t.loss.hi_pct)),
    ("accel_goodput_bits_per_second", "Payload that arrived, counted by the receiver.", goodput),
    ("accel_bulk_retransmit_ratio", "Bulk segments sent again, as a share of those sent.", |t| {
        loss(t, t.bulk_retransmit_pct)
    }),
    ("accel_instrument_start_lateness_seconds", "p99 of how late probes left.", |t| {
        vec![(labels(t), t.instrument.start_lateness_ms.p99 / 1000.0)]
    }),
    ("accel_instrument_user_minus_kernel_seconds", "p99 of the program's time minus the kernel's.", |t| {
        t.instrument.user_minus_kernel_ms.map(|s| (labels(t), s.p99 / 1000.0)).into_iter().collect()
    }),
    (
        "accel_instrument_missed_probes",
        "Slots of the schedule that had passed before the prober came to them.",
        |t| vec![(labels(t), t.instrument.missed as f64)],
    ),
];

fn labels(track: &Track<'_>) -> Vec<(String, String)> {
    let own = track.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    [("phase".to_owned(), track.phase.to_string())].into_iter().chain(own).collect()
}

fn with(track: &Track<'_>, name: &str, value: &str) -> Vec<(String, String)> {
    let mut labels = labels(track);
    labels.push((name.to_owned(), value.to_owned()));
    labels
}

fn latency(track: &Track<'_>, figure: fn(&crate::run::PercentileRecord) -> Option<f64>) -> Vec<Line> {
    let each = track.percentiles.iter();
    each.filter_map(|(name, p)| {
        Some((with(track, "percentile", name.trim_start_matches('p')), figure(p)? / 1000.0))
    })
    .collect()
}

fn loss(track: &Track<'_>, percent: Option<f64>) -> Vec<Line> {
    percent.map(|percent| (labels(track), percent / 100.0)).into_iter().collect()
}

fn goodput(track: &Track<'_>) -> Vec<Line> {
    let both = [("up", track.up), ("down", track.down)];
    both.into_iter()
        .filter_map(|(way, rate)| {
            let Goodput { mbps, .. } = rate?;
            Some((with(track, "direction", way), mbps * 1e6))
        })
        .collect()
}

/// Nothing at all for a family without lines.
fn family(text: &mut String, name: &str, help: &str, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    for (labels, value) in lines {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        // A share such as 0.655 / 100 has a last bit that says nothing; times of day have no nanoseconds here.
        let value = if *value < 1e6 { format!("{value:.9}") } else { format!("{value:.3}") };
        let value = value.trim_end_matches('0').trim_end_matches('.');
        let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_own_quotes() {
        let mut text = String::new();
        family(&mut text, "a", "A.", &[(vec![("x".to_owned(), "1\"\\\n2".to_owned())], 0.25)]);
        assert_eq!(text, "# HELP a A.\n# TYPE a gauge\na{x=\"1\\\"\\\\\\n2\"} 0.25\n");
    }
}
