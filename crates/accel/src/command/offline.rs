//! What the commands that work on files have in common.

use super::{Exit, Failure};
use crate::import::{self, ImportError, Imported, Series};
use clap::Args;
use std::path::{Path, PathBuf};

/// Which samples to take.
#[derive(Clone, Debug, Args)]
pub struct Source {
    /// A run document, CSV (t_s, rtt_ms and perhaps retransmits; empty = lost), JSON (t_ms, rtt_ms), flent or irtt data, or
    /// the output of ping or fping; gzipped or not
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only the series of this name, where the file holds several
    #[arg(long, value_name = "NAME")]
    pub series: Option<String>,
}

/// Reads a file; with a name only that series of it.
pub(super) fn load(path: &Path, name: Option<&str>) -> Result<Imported, Failure> {
    let mut imported = import::read_file(path).map_err(|error| failure(path, &error))?;
    let Some(name) = name else { return Ok(imported) };
    let names: Vec<String> = imported.series.iter().map(|series| format!("\"{}\"", series.name)).collect();
    imported.series.retain(|series| series.name == name);
    if imported.series.is_empty() {
        let what =
            format!("{}: no series \"{name}\" in this {} file", path.display(), imported.format.as_str());
        return Err(Failure::new(Exit::Usage, what).help(format!("it holds {}", names.join(", "))));
    }
    Ok(imported)
}

/// The only series of a file, or an answer to which it should be.
pub(super) fn load_one(path: &Path, name: Option<&str>) -> Result<Series, Failure> {
    let mut imported = load(path, name)?;
    let names: Vec<String> = imported.series.iter().map(|series| format!("\"{}\"", series.name)).collect();
    match imported.series.pop() {
        Some(series) if names.len() == 1 => Ok(series),
        _ => Err(Failure::new(Exit::Usage, format!("{}: {} series", path.display(), names.len()))
            .help(format!("choose one with --series: {}", names.join(", ")))),
    }
}

fn failure(path: &Path, error: &ImportError) -> Failure {
    let exit = match error {
        ImportError::Unreadable(_) | ImportError::Format(_) => Exit::Unreadable,
        ImportError::Samples(_) => Exit::BadSamples,
    };
    Failure::new(exit, format!("{}: {error}", path.display()))
}
