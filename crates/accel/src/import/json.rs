//! The JSON formats, told apart by their keys and read in one pass without a tree in memory.

use super::{Format, ImportError, Imported, flent, irtt, own_run, trace};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::io::Read;

/// Every key that any of the formats is read by; all others are skipped.
#[derive(serde::Deserialize)]
struct Document {
    // A trace.
    t_ms: Option<Numbers>,
    rtt_ms: Option<Numbers>,
    idle_rtt_ms: Option<Numbers>,
    retransmits: Option<Numbers>,
    // A run of this program.
    schema_version: Option<u64>,
    phases: Option<Vec<own_run::Phase>>,
    // flent.
    version: Option<serde_json::Value>,
    x_values: Option<Numbers>,
    results: Option<flent::Results>,
    raw_values: Option<flent::RawValues>,
    // irtt.
    round_trips: Option<irtt::RoundTrips>,
}

/// Reads one JSON object.
pub(super) fn read(source: impl Read) -> Result<Imported, ImportError> {
    let mut reader = serde_json::Deserializer::from_reader(source);
    let document = Document::deserialize(&mut reader).map_err(described)?;
    reader.end().map_err(described)?;
    if let Some(round_trips) = document.round_trips {
        return Ok(Imported { format: Format::Irtt, series: vec![irtt::series(round_trips)] });
    }
    if let Some(version) = document.schema_version {
        let series = own_run::series(version, document.phases.unwrap_or_default())?;
        return Ok(Imported { format: Format::Run, series });
    }
    if let (Some(times), Some(rtts)) = (document.t_ms, document.rtt_ms) {
        let series = trace::series(times, rtts, document.idle_rtt_ms, document.retransmits)?;
        return Ok(Imported { format: Format::Trace, series: vec![series] });
    }
    if document.raw_values.is_some() || document.results.is_some() {
        let series = flent::series(
            document.version.as_ref(),
            &document.x_values.map(|x| x.0).unwrap_or_default(),
            document.results.unwrap_or_default(),
            document.raw_values.unwrap_or_default(),
        )?;
        return Ok(Imported { format: Format::Flent, series });
    }
    Err(ImportError::Format(
        "a JSON object with none of the keys of a trace (t_ms, rtt_ms), a run (schema_version), flent (raw_values) or irtt (round_trips)".into(),
    ))
}

/// What is wrong, with the line and column that serde_json gives.
fn described(error: serde_json::Error) -> ImportError {
    if let Some(kind) = error.io_error_kind() {
        return ImportError::from_read(std::io::Error::new(kind, error));
    }
    if error.is_eof() {
        return ImportError::Format(format!("cut: {error}"));
    }
    let text = error.to_string();
    // What the readers of the parts have refused themselves comes through here as well.
    match text.strip_prefix(SAMPLES) {
        Some(samples) => ImportError::Samples(samples.to_owned()),
        None => ImportError::Format(text),
    }
}

/// Marks a refusal of samples on its way through the JSON reader.
const SAMPLES: &str = "samples: ";

/// Wraps a refusal of samples as an error of the JSON reader.
pub(super) fn refused<E: serde::de::Error>(error: &ImportError) -> E {
    match error {
        ImportError::Samples(text) => E::custom(format!("{SAMPLES}{text}")),
        other => E::custom(other),
    }
}

/// A list of numbers; `null` becomes infinite.
#[derive(Default)]
pub(super) struct Numbers(pub(super) Vec<f64>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers or nulls")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = list.next_element::<Option<f64>>()? {
                    numbers.push(number.unwrap_or(f64::INFINITY));
                }
                Ok(Numbers(numbers))
            }

            fn visit_unit<E>(self) -> Result<Numbers, E> {
                Ok(Numbers::default())
            }
        }
        deserializer.deserialize_any(List)
    }
}
