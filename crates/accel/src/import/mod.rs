//! Readers of latency samples from files: our own, and those of other tools.
//!
//! ```text
//! file -> gunzip? -> size and line limits -> { : JSON document -> trace | run | flent | irtt
//!                                            else: lines       -> CSV | ping | fping
//!                                                     -> Columns (checked) -> Series
//! ```
//!
//! What is read is never trusted: a file that is cut, corrupt or too large, or samples that make no sense, end in
//! one line that names the place. Memory stays in proportion to the samples: 16 bytes for each, 17 with counters.

mod columns;
mod error;
mod flent;
mod fping;
mod irtt;
mod json;
mod limits;
mod own_run;
mod ping;
mod table;
mod trace;

pub use columns::Columns;
pub use error::ImportError;

use flate2::bufread::MultiGzDecoder;
use limits::Limited;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// What wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object with `t_ms`, `rtt_ms` and perhaps `idle_rtt_ms`.
    Trace,
    /// A run document of this program.
    Run,
    /// A flent data file, version 4.
    Flent,
    /// `irtt client -o`.
    Irtt,
    /// `t_s,rtt_ms[,retransmits]`.
    Table,
    /// The text output of ping (Linux, BusyBox, macOS, Windows in English).
    Ping,
    /// The text output of fping -l, -c or -C.
    Fping,
}

impl Format {
    /// The word for it in messages and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Run => "run",
            Self::Flent => "flent",
            Self::Irtt => "irtt",
            Self::Table => "csv",
            Self::Ping => "ping",
            Self::Fping => "fping",
        }
    }
}

/// One series of probes in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name within the file: a phase, a host, flent's name; empty where there is only one.
    pub name: String,
    /// The probes in time order.
    pub columns: Columns,
    /// Round trips on the idle line in ms, where the file has some.
    pub idle_rtt_ms: Vec<f64>,
}

/// Everything a file holds; at least one series, each with at least one probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What wrote it.
    pub format: Format,
    /// In the order of the file.
    pub series: Vec<Series>,
}

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Reads a file of any known format.
///
/// # Errors
/// When it cannot be read, is of no known format, or its samples make no sense.
pub fn read_file(path: &Path) -> Result<Imported, ImportError> {
    let file = File::open(path).map_err(ImportError::Unreadable)?;
    if file.metadata().map_err(ImportError::Unreadable)?.is_dir() {
        return Err(ImportError::Format("it is a folder".into()));
    }
    read(BufReader::with_capacity(1 << 16, file))
}

/// Reads samples of any known format, gzipped or not.
///
/// # Errors
/// When they cannot be read, are of no known format, or make no sense.
pub fn read(mut source: impl BufRead) -> Result<Imported, ImportError> {
    let zipped = source.fill_buf().map_err(ImportError::Unreadable)?.starts_with(&GZIP_MAGIC);
    if zipped { read_plain(BufReader::new(MultiGzDecoder::new(source))) } else { read_plain(source) }
}

fn read_plain(source: impl BufRead) -> Result<Imported, ImportError> {
    let mut source = Limited::new(source);
    skip_space(&mut source)?;
    let head = source.fill_buf().map_err(ImportError::from_read)?;
    let imported = match head.first() {
        None => return Err(ImportError::Format("it is empty".into())),
        Some(b'{') => json::read(source)?,
        Some(_) => read_lines(source)?,
    };
    checked(imported)
}

/// Skips white space and a byte order mark.
fn skip_space(source: &mut impl BufRead) -> Result<(), ImportError> {
    loop {
        let head = source.fill_buf().map_err(ImportError::from_read)?;
        let space =
            head.iter().take_while(|b| b.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(*b)).count();
        if space == 0 {
            return Ok(());
        }
        source.consume(space);
    }
}

/// Tells the text formats apart by their first lines.
fn read_lines(mut source: impl BufRead) -> Result<Imported, ImportError> {
    const LOOK_AHEAD: u64 = 4096;
    let mut head = Vec::new();
    source.by_ref().take(LOOK_AHEAD).read_to_end(&mut head).map_err(ImportError::from_read)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    // Lengths of lines were checked on the way in; the head is read again in front of the rest.
    let whole = BufReader::new(std::io::Cursor::new(head).chain(source));
    if text.lines().any(fping::is_sample) {
        fping::read(whole)
    } else if text.lines().any(ping::is_sample) {
        ping::read(whole)
    } else if table::is_table(&text) {
        table::read(whole)
    } else if text.starts_with('[') {
        // `ping -D` and `fping -D` begin like that as well.
        Err(ImportError::Format("a JSON list, where an object is expected".into()))
    } else {
        Err(ImportError::Format(
            "neither JSON nor CSV with the columns t_s,rtt_ms nor the output of ping or fping".into(),
        ))
    }
}

fn checked(mut imported: Imported) -> Result<Imported, ImportError> {
    imported.series.retain(|series| !series.columns.is_empty());
    if imported.series.is_empty() {
        return Err(ImportError::Samples(format!("no samples in this {} file", imported.format.as_str())));
    }
    for series in &mut imported.series {
        series.columns.finish();
        if let Some(&bad) = series.idle_rtt_ms.iter().find(|rtt| !rtt.is_finite() || **rtt < 0.0) {
            return Err(ImportError::Samples(format!("idle round trip of {bad} ms")));
        }
    }
    Ok(imported)
}
