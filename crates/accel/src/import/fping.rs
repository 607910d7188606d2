//! The text output of fping: a line per probe (-l, -c) or a line per host (-C). One series for each host.

use super::limits::for_each_line;
use super::ping::stamped;
use super::{Columns, Format, ImportError, Imported, Series};
use std::io::BufRead;

/// fping's default period between probes to one host, in ms.
const PERIOD_MS: f64 = 1000.0;
/// Hosts in one file; more is no measurement of latency.
const MAX_HOSTS: usize = 1000;
/// A larger hole in the probe numbers is a restart.
const MAX_HOLE: u64 = 10_000;

/// One line: `host : [5], 64 bytes, 12.3 ms (...)` or `host : 12.3 12.4 - 12.5`.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Probe { stamp_s: Option<f64>, host: &'a str, number: u64, rtt_ms: Option<f64> },
    Host { host: &'a str, rtts: Vec<Option<f64>> },
}

/// Whether a line reports probes.
pub(super) fn is_sample(line: &str) -> bool {
    parse(line).is_some()
}

/// Reads the whole output.
pub(super) fn read(source: impl BufRead) -> Result<Imported, ImportError> {
    let mut hosts: Vec<(Series, Option<u64>)> = Vec::new();
    for_each_line(source, |_, line| {
        let Some(line) = parse(line) else { return Ok(()) };
        let host = match line {
            Line::Probe { host, .. } | Line::Host { host, .. } => host,
        };
        let found = hosts.iter().position(|(series, _)| series.name == host);
        let index = found.unwrap_or(hosts.len());
        if found.is_none() {
            if hosts.len() == MAX_HOSTS {
                return Err(ImportError::Samples(format!("more than {MAX_HOSTS} hosts")));
            }
            let (columns, idle_rtt_ms) = (Columns::default(), Vec::new());
            hosts.push((Series { name: host.to_owned(), columns, idle_rtt_ms }, None));
        }
        let (series, last) = &mut hosts[index];
        push(&mut series.columns, last, &line)
    })?;
    Ok(Imported { format: Format::Fping, series: hosts.into_iter().map(|(series, _)| series).collect() })
}

fn push(columns: &mut Columns, last: &mut Option<u64>, line: &Line<'_>) -> Result<(), ImportError> {
    match line {
        // The summary of a run whose probes have been listed already.
        Line::Host { .. } if !columns.is_empty() => Ok(()),
        Line::Host { rtts, .. } => {
            columns.assume_times();
            rtts.iter().enumerate().try_for_each(|(i, &rtt)| columns.push(i as f64 * PERIOD_MS, rtt))
        }
        Line::Probe { stamp_s, number, rtt_ms, .. } => {
            if last.is_some_and(|last| *number <= last) {
                // A duplicate, or an answer that came too late.
                return Ok(());
            }
            let first_missing = last.map_or(*number, |last| last + 1);
            if stamp_s.is_none() && number - first_missing < MAX_HOLE {
                for missing in first_missing..*number {
                    columns.push(missing as f64 * PERIOD_MS, None)?;
                }
            }
            if stamp_s.is_none() {
                columns.assume_times();
            }
            let sent = stamp_s.map(|stamp| 1000.0 * stamp - rtt_ms.unwrap_or(0.0));
            columns.push(sent.unwrap_or(*number as f64 * PERIOD_MS), *rtt_ms)?;
            *last = Some(*number);
            Ok(())
        }
    }
}

fn parse(line: &str) -> Option<Line<'_>> {
    let (stamp_s, line) = stamped(line.trim());
    let (host, rest) = line.split_once(" : ")?;
    let host = host.trim();
    let Some(probe) = rest.trim_start().strip_prefix('[') else {
        let rtts: Option<Vec<Option<f64>>> = rest.split_whitespace().map(rtt_or_dash).collect();
        return rtts.filter(|rtts| !rtts.is_empty()).map(|rtts| Line::Host { host, rtts });
    };
    let (number, rest) = probe.split_once(']')?;
    let number = number.trim().parse::<u32>().ok().map(u64::from)?;
    if rest.contains("timed out") {
        return Some(Line::Probe { stamp_s, host, number, rtt_ms: None });
    }
    let before = &rest[..rest.find(" ms")?];
    let rtt_ms = before.rsplit([' ', ',']).next()?.parse().ok()?;
    Some(Line::Probe { stamp_s, host, number, rtt_ms: Some(rtt_ms) })
}

fn rtt_or_dash(field: &str) -> Option<Option<f64>> {
    if field == "-" { Some(None) } else { field.parse().ok().map(Some) }
}
