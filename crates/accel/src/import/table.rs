//! CSV with the columns `t_s` (or `t_ms`), `rtt_ms` and perhaps `retransmits`; an empty round trip is a lost probe.

use super::limits::for_each_line;
use super::{Columns, Format, ImportError, Imported, Series};
use std::io::BufRead;

/// Where the columns stand.
struct Header {
    time: usize,
    /// Milliseconds in the time column's unit.
    time_unit_ms: f64,
    rtt: usize,
    retransmits: Option<usize>,
}

/// Whether the first line that is no comment is a header or numbers.
pub(super) fn is_table(head: &str) -> bool {
    let Some(first) = head.lines().map(str::trim).find(|line| is_data(line)) else { return false };
    header(first).is_some() || starts_with_numbers(first)
}

/// Reads the whole table.
pub(super) fn read(source: impl BufRead) -> Result<Imported, ImportError> {
    let mut columns = Columns::default();
    let mut layout: Option<Header> = None;
    for_each_line(source, |number, line| {
        let line = line.trim_start_matches('\u{FEFF}').trim();
        if !is_data(line) {
            return Ok(());
        }
        let Some(layout) = &layout else {
            let found = header(line);
            let without = found.is_none();
            layout =
                Some(found.unwrap_or(Header { time: 0, time_unit_ms: 1000.0, rtt: 1, retransmits: Some(2) }));
            return match &layout {
                Some(layout) if without => push_row(&mut columns, layout, number, line),
                _ => Ok(()),
            };
        };
        push_row(&mut columns, layout, number, line)
    })?;
    let series = Series { name: String::new(), columns, idle_rtt_ms: Vec::new() };
    Ok(Imported { format: Format::Table, series: vec![series] })
}

fn is_data(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| field.trim().trim_matches('"'))
}

fn header(line: &str) -> Option<Header> {
    let at = |name: &str| fields(line).position(|field| field.eq_ignore_ascii_case(name));
    let (time, time_unit_ms) = at("t_s").map(|i| (i, 1000.0)).or_else(|| at("t_ms").map(|i| (i, 1.0)))?;
    Some(Header { time, time_unit_ms, rtt: at("rtt_ms")?, retransmits: at("retransmits") })
}

fn starts_with_numbers(line: &str) -> bool {
    let mut fields = fields(line);
    let time = fields.next().is_some_and(|field| field.parse::<f64>().is_ok());
    time && fields.next().is_some_and(|field| field.is_empty() || field.parse::<f64>().is_ok())
}

fn push_row(columns: &mut Columns, layout: &Header, number: u64, line: &str) -> Result<(), ImportError> {
    let at = |message: &str| ImportError::Format(format!("line {number}: {message}"));
    let field = |index: usize| fields(line).nth(index);
    let time = field(layout.time).and_then(|f| f.parse::<f64>().ok()).ok_or_else(|| at("no time"))?;
    let rtt = match field(layout.rtt).ok_or_else(|| at("cut: no round trip"))? {
        "" => None,
        text => Some(text.parse::<f64>().map_err(|_| at("the round trip is no number"))?),
    };
    let count = match layout.retransmits.and_then(field) {
        None | Some("") => None,
        Some(text) => {
            Some(text.parse::<u8>().map_err(|_| at("the retransmit count is no number from 0 to 255"))?)
        }
    };
    let pushed = match count {
        Some(count) => columns.push_counted(time * layout.time_unit_ms, rtt, count),
        None => columns.push(time * layout.time_unit_ms, rtt),
    };
    pushed.map_err(|error| match error {
        ImportError::Samples(what) => ImportError::Samples(format!("line {number}: {what}")),
        other => other,
    })
}
