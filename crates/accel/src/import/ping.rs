//! The text output of ping: Linux and BusyBox, macOS, Windows in English.
//!
//! A hole in the sequence numbers is a lost probe. Without time stamps (`ping -D`) probes are placed one second
//! apart, ping's default.

use super::limits::for_each_line;
use super::{Columns, Format, ImportError, Imported, Series};
use std::io::BufRead;

/// ping's default interval, in ms.
const INTERVAL_MS: f64 = 1000.0;
/// Sequence numbers are 16 bits wide.
const SEQUENCE_SPACE: u64 = 1 << 16;
/// A larger hole is a restart.
const MAX_HOLE: u64 = 10_000;

/// One line's message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    /// Seconds since 1970 at arrival.
    stamp_s: Option<f64>,
    sequence: Option<u64>,
    /// `None` for a line that says the answer did not come.
    rtt_ms: Option<f64>,
}

/// Whether a line reports a probe.
pub(super) fn is_sample(line: &str) -> bool {
    parse(line).is_some()
}

/// Reads the whole output.
pub(super) fn read(source: impl BufRead) -> Result<Imported, ImportError> {
    let mut sequence = Sequence::default();
    let mut columns = Columns::default();
    for_each_line(source, |_, line| match parse(line) {
        // Nobody waits for an answer that came twice.
        Some(_) if line.contains("DUP!") => Ok(()),
        Some(answer) => sequence.push(&mut columns, answer),
        None => Ok(()),
    })?;
    sequence.flush(&mut columns)?;
    let series = Series { name: String::new(), columns, idle_rtt_ms: Vec::new() };
    Ok(Imported { format: Format::Ping, series: vec![series] })
}

fn parse(line: &str) -> Option<Answer> {
    let (stamp_s, line) = stamped(line.trim());
    let sequence = number_after(line, "icmp_seq=")
        .or_else(|| number_after(line, "icmp_seq "))
        .or_else(|| number_after(line, " seq="))
        .filter(|n| *n >= 0.0 && *n < SEQUENCE_SPACE as f64)
        .map(|n| n as u64);
    let answered = line.contains("bytes from") || line.starts_with("Reply from");
    if answered {
        // Windows says "time<1ms" for anything below.
        let rtt_ms = number_after(line, "time=").or_else(|| number_after(line, "time<"))?;
        return Some(Answer { stamp_s, sequence, rtt_ms: Some(rtt_ms) });
    }
    let lost = line.starts_with("no answer yet for icmp_seq=")
        || line.starts_with("Request timeout for icmp_seq")
        || line.starts_with("Request timed out");
    lost.then_some(Answer { stamp_s, sequence, rtt_ms: None })
}

/// The stamp of `ping -D` and the rest of the line.
pub(super) fn stamped(line: &str) -> (Option<f64>, &str) {
    let parts = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match parts.and_then(|(stamp, rest)| Some((stamp.parse::<f64>().ok()?, rest.trim_start()))) {
        Some((stamp, rest)) if stamp.is_finite() => (Some(stamp), rest),
        _ => (None, line),
    }
}

/// The number that follows a word.
fn number_after(line: &str, word: &str) -> Option<f64> {
    let rest = &line[line.find(word)? + word.len()..];
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Puts answers in the order of their sequence numbers and fills the holes.
#[derive(Default)]
struct Sequence {
    /// The last probe that was pushed: its number, counted on beyond 16 bits, and its time.
    last: Option<(u64, f64)>,
    /// A probe reported missing whose answer may still come.
    waiting: Option<(u64, f64)>,
}

impl Sequence {
    fn push(&mut self, columns: &mut Columns, answer: Answer) -> Result<(), ImportError> {
        let number = self.unwrapped(answer.sequence);
        let sent_ms = answer.stamp_s.map(|stamp| 1000.0 * stamp - answer.rtt_ms.unwrap_or(0.0));
        if sent_ms.is_none() {
            columns.assume_times();
        }
        let at_ms = sent_ms.unwrap_or(number as f64 * INTERVAL_MS);
        if let Some((missing, missing_at)) = self.waiting.take() {
            // "no answer yet" and then the answer after all.
            if missing != number {
                self.place(columns, missing, missing_at, None)?;
            }
        }
        if self.last.is_some_and(|(last, _)| number <= last) {
            // Came too late: it stands as lost already.
            return Ok(());
        }
        if answer.rtt_ms.is_none() {
            self.waiting = Some((number, at_ms));
            return Ok(());
        }
        self.place(columns, number, at_ms, answer.rtt_ms)
    }

    fn flush(&mut self, columns: &mut Columns) -> Result<(), ImportError> {
        let Some((missing, at_ms)) = self.waiting.take() else { return Ok(()) };
        self.place(columns, missing, at_ms, None)
    }

    fn place(
        &mut self,
        columns: &mut Columns,
        number: u64,
        at_ms: f64,
        rtt: Option<f64>,
    ) -> Result<(), ImportError> {
        let mut at_ms = at_ms;
        if let Some((last, last_at)) = self.last {
            if number <= last {
                return Ok(());
            }
            let gap = number - last;
            // A stamp that runs backwards is a clock that was set.
            if at_ms <= last_at {
                at_ms = last_at + gap as f64 * INTERVAL_MS;
            }
            let step = (at_ms - last_at) / gap as f64;
            for missing in 1..gap.min(MAX_HOLE) {
                columns.push(last_at + step * missing as f64, None)?;
            }
        }
        columns.push(at_ms, rtt)?;
        self.last = Some((number, at_ms));
        Ok(())
    }

    /// A number that goes on where 16 bits start over; the next one where the line has none.
    fn unwrapped(&self, sequence: Option<u64>) -> u64 {
        let last = self.waiting.or(self.last).map(|(last, _)| last);
        match (sequence, last) {
            (Some(sequence), Some(last)) => {
                let cycle = last / SEQUENCE_SPACE * SEQUENCE_SPACE;
                let wrapped = sequence + SEQUENCE_SPACE / 2 < last % SEQUENCE_SPACE;
                cycle + sequence + if wrapped { SEQUENCE_SPACE } else { 0 }
            }
            (Some(sequence), None) => sequence,
            (None, last) => last.map_or(0, |last| last + 1),
        }
    }
}
