//! Reads run documents and refuses what makes no sense before anything is drawn from it.

use crate::command::{Exit, Failure};
use crate::measurement::Measurement;
use crate::render::text;
use crate::render::view::View;
use crate::run::{Run, SCHEMA_VERSION, SampleColumns};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A run document of any command.
pub(in crate::command) enum Document {
    /// `accel lab`.
    Lab(Box<Run>),
    /// `accel measure`.
    Measure(Box<Measurement>),
}

impl Document {
    pub(in crate::command) fn view(&self) -> View<'_> {
        match self {
            Self::Lab(run) => View::from(&**run),
            Self::Measure(run) => View::from(&**run),
        }
    }

    pub(super) fn text(&self, style: text::Style) -> String {
        match self {
            Self::Lab(run) => text::render(run, style),
            Self::Measure(run) => text::measure::render(run, style),
        }
    }
}

/// Bytes of JSON: more than ten million samples.
const MAX_BYTES: u64 = 1 << 30;
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Reads one document.
pub(in crate::command) fn read(path: &Path) -> Result<Document, Failure> {
    let unreadable = |what: String| Failure::new(Exit::Unreadable, format!("{}: {what}", path.display()));
    let bytes = bytes(path).map_err(|error| unreadable(error.to_string()))?;
    if bytes.is_empty() {
        return Err(unreadable("it is empty".to_owned()));
    }
    let head: Head = serde_json::from_slice(&bytes).map_err(|error| unreadable(described(&error)))?;
    let parsed = match (head.schema_version, head.command.as_deref()) {
        (Some(SCHEMA_VERSION), Some("lab")) => serde_json::from_slice(&bytes).map(Document::Lab),
        (Some(SCHEMA_VERSION), Some("measure")) => serde_json::from_slice(&bytes).map(Document::Measure),
        (Some(SCHEMA_VERSION), Some(command)) => {
            let what = format!("a run document of `accel {command}`, which this version cannot show");
            return Err(unreadable(what));
        }
        (Some(version), _) if version != SCHEMA_VERSION => {
            let what =
                format!("a run document of schema {version}; this program reads schema {SCHEMA_VERSION}");
            return Err(unreadable(what).help("use the version of accel that wrote it, or a newer one"));
        }
        _ => {
            return Err(unreadable("no run document: schema_version or command is missing".to_owned())
                .help("files of other tools are read by accel classify, summary and compare"));
        }
    };
    let document = parsed.map_err(|error| unreadable(described(&error)))?;
    check(&document).map_err(|what| Failure::new(Exit::BadSamples, format!("{}: {what}", path.display())))?;
    Ok(document)
}

/// What tells the documents apart.
#[derive(Deserialize)]
struct Head {
    schema_version: Option<u32>,
    command: Option<String>,
}

/// The document as JSON, unzipped.
pub(in crate::command) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = BufReader::new(File::open(path)?);
    let zipped = file.fill_buf()?.starts_with(&GZIP_MAGIC);
    let mut bytes = Vec::new();
    // One byte more than allowed tells a long file from one that just fits.
    if zipped {
        MultiGzDecoder::new(file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    } else {
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "longer than 1 GiB"));
    }
    Ok(bytes)
}

fn described(error: &serde_json::Error) -> String {
    if error.is_eof() { format!("cut: {error}") } else { format!("not understood: {error}") }
}

/// A year in milliseconds: no run is longer, and nothing that is drawn leaves the range in which numbers are exact.
const LONGEST_MS: f64 = 366.0 * 86_400_000.0;

/// Before anything is made of the samples: the views take columns of equal length for granted.
fn check(document: &Document) -> Result<(), String> {
    match document {
        Document::Lab(run) => run.phases.iter().try_for_each(|phase| {
            let name = format!("phase {} {}", phase.phase, phase.arm);
            let spans = [phase.started_ms, phase.measured_ms, run.settings.ramp_ms];
            check_phase(&name, spans, &phase.samples)
        }),
        Document::Measure(run) => {
            let mut rows = run.phases.iter().flat_map(|phase| phase.rows.iter().map(move |row| (phase, row)));
            rows.try_for_each(|(phase, row)| {
                let name = format!("phase {}, {} {}", phase.phase, row.target, row.kind);
                let spans = [phase.started_ms, phase.measured_ms, run.settings.ramp_ms];
                check_phase(&name, spans, &row.samples)
            })
        }
    }
}

fn check_phase(name: &str, spans_ms: [f64; 3], samples: &SampleColumns) -> Result<(), String> {
    if spans_ms.iter().any(|ms| !(0.0..=LONGEST_MS).contains(ms)) {
        return Err(format!("{name}: its start, length or ramp is negative or longer than a year"));
    }
    check_samples(samples).map_err(|what| format!("{name}: {what}"))
}

fn check_samples(samples: &SampleColumns) -> Result<(), String> {
    let n = samples.t_ms.len();
    if [samples.kernel_ms.len(), samples.user_ms.len(), samples.retransmits.len()] != [n; 3] {
        return Err("sample columns of different length".to_owned());
    }
    let mut last = f64::NEG_INFINITY;
    for (i, &t) in samples.t_ms.iter().enumerate() {
        let number = i + 1;
        if !(-LONGEST_MS..=LONGEST_MS).contains(&t) {
            return Err(format!("sample {number}: sent {t} ms after the start of the phase"));
        }
        if t <= last {
            let what = if t == last { "a duplicate" } else { "not in time order" };
            return Err(format!("sample {number}: {what}"));
        }
        last = t;
        let times = [samples.kernel_ms[i], samples.user_ms[i]];
        if let Some(bad) = times.into_iter().flatten().find(|ms| !(0.0..=LONGEST_MS).contains(ms)) {
            return Err(format!("sample {number}: latency of {bad} ms"));
        }
    }
    Ok(())
}
