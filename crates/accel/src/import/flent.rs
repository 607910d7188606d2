//! flent data files, version 4: each ping series at its full rate.

use super::json::Numbers;
use super::{Columns, ImportError, Series};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

/// The version of the format that is read.
const VERSION: u64 = 4;
/// flent's names of round-trip series.
const PING: &str = "Ping (ms)";

/// Ping series of an object, in the order of the file; all other series are skipped.
pub(super) struct PingSeries<T>(Vec<(String, T)>);

/// `results`: one value per step of `x_values`.
pub(super) type Results = PingSeries<Numbers>;
/// `raw_values`: each answer.
pub(super) type RawValues = PingSeries<Vec<RawPoint>>;

impl<T> Default for PingSeries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One answer.
#[derive(serde::Deserialize)]
pub(super) struct RawPoint {
    /// Arrival in seconds since 1970.
    t: Option<f64>,
    /// Round trip in ms.
    val: Option<f64>,
    /// Sequence number, where the prober gave one.
    seq: Option<f64>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PingSeries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = PingSeries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of series")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PingSeries<T>, A::Error> {
                let mut series = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name.starts_with(PING) && !name.contains("::") {
                        series.push((name, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(PingSeries(series))
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

/// The ping series, from raw values where there are some, else from the binned results.
pub(super) fn series(
    version: Option<&Value>,
    x_values: &[f64],
    results: Results,
    raw_values: RawValues,
) -> Result<Vec<Series>, ImportError> {
    match version.and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(ImportError::Format(format!(
                "a flent data file of version {other}; this program reads version {VERSION}"
            )));
        }
        None => return Err(ImportError::Format("a flent data file without a version".into())),
    }
    let raw = raw_values.0.into_iter().filter(|(_, points)| !points.is_empty());
    let mut all = raw
        .map(|(name, points)| Ok(named(name, from_raw(points)?)))
        .collect::<Result<Vec<_>, ImportError>>()?;
    if all.is_empty() {
        all = results
            .0
            .into_iter()
            .map(|(name, values)| Ok(named(name, from_results(x_values, &values.0)?)))
            .collect::<Result<_, ImportError>>()?;
    }
    if all.is_empty() {
        return Err(ImportError::Samples(format!("no series \"{PING} ...\" in this flent file")));
    }
    Ok(all)
}

fn named(name: String, columns: Columns) -> Series {
    Series { name, columns, idle_rtt_ms: Vec::new() }
}

/// Answers by time of sending; a hole in the sequence numbers is a lost probe.
fn from_raw(points: Vec<RawPoint>) -> Result<Columns, ImportError> {
    let mut sent: Vec<(f64, f64, Option<f64>)> =
        points.into_iter().filter_map(|p| Some((1000.0 * p.t? - p.val?, p.val?, p.seq))).collect();
    if let Some((_, rtt, _)) = sent.iter().find(|(at, rtt, _)| !at.is_finite() || *rtt < 0.0) {
        return Err(ImportError::Samples(format!("flent value of {rtt} ms")));
    }
    sent.sort_by(|a, b| a.0.total_cmp(&b.0));
    // An answer that came twice.
    sent.dedup_by(|a, b| a.0 == b.0 || a.2.is_some() && a.2 == b.2);
    let mut columns = Columns::default();
    let mut last: Option<(f64, f64)> = None;
    for (at, rtt, seq) in sent {
        if let (Some((last_at, last_seq)), Some(seq)) = (last, seq) {
            for (at, _) in holes(last_at, last_seq, at, seq) {
                columns.push(at, None)?;
            }
        }
        columns.push(at, Some(rtt))?;
        last = seq.map(|seq| (at, seq));
    }
    Ok(columns)
}

/// Lost probes at even times between two answers; a jump by more than this is a restart, not loss.
pub(super) fn holes(last_at: f64, last_seq: f64, at: f64, seq: f64) -> impl Iterator<Item = (f64, f64)> {
    const MAX_HOLE: f64 = 10_000.0;
    let gap = seq - last_seq;
    let missing = if gap > 1.0 && gap <= MAX_HOLE { gap as u32 - 1 } else { 0 };
    let step = (at - last_at) / gap;
    // Times must grow; where they do not, the holes cannot be placed.
    let missing = if step > 0.0 { missing } else { 0 };
    (1..=missing).map(move |i| (last_at + step * f64::from(i), last_seq + f64::from(i)))
}

/// Binned values: a bin without a value has no probe, which is not a lost one.
fn from_results(x_values: &[f64], values: &[f64]) -> Result<Columns, ImportError> {
    let mut columns = Columns::default();
    for (x, value) in x_values.iter().zip(values).filter(|(_, value)| value.is_finite()) {
        columns.push(1000.0 * x, Some(*value))?;
    }
    Ok(columns)
}
