//! `accel report`: run documents as pages, tables and files for other programs; offline, from the document alone.

pub(super) mod document;
pub(super) mod output;

use super::{Exit, Failure, Report};
use crate::render::view::View;
use crate::render::{csv, flent, html, markdown, prom, text};
use clap::Args;
use document::Document;
use output::write;
use std::path::{Path, PathBuf};

/// Shown with `accel report --help`.
pub const REPORT_EXAMPLES: &str = "\
Examples:
  accel report run.json                       the table again
  accel report run.json --html run.html       one page with all plots; opens in any browser, asks no network
  accel report a.json b.json --html both.html
  accel report run.json --markdown >> notes.md
  accel report run.json --csv samples.csv     every probe
  accel report run.json --flent run.flent.gz  one file per phase and arm: run-upload-off.flent.gz, ...
  accel report run.json --prom /var/lib/node_exporter/accel.prom";

/// `accel report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Run documents (accel lab --json); gzipped or not
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Write one self-contained page with all plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print Markdown instead of the table
    #[arg(long)]
    pub markdown: bool,
    /// Write every probe as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write flent data files, one for each phase and arm (only with one RUN)
    #[arg(long, value_name = "FILE")]
    pub flent: Option<PathBuf>,
    /// Write metrics for node_exporter's textfile collector (only with one RUN)
    #[arg(long, value_name = "FILE")]
    pub prom: Option<PathBuf>,
}

/// Reads the documents, writes what was asked for and says what it wrote.
///
/// # Errors
/// When a document cannot be read, or a file cannot be written.
pub fn run(args: &ReportArgs, style: text::Style) -> Result<Report, Failure> {
    let single = [("--flent", &args.flent), ("--prom", &args.prom)];
    if let Some((option, _)) = single.iter().find(|(_, file)| file.is_some() && args.runs.len() > 1) {
        return Err(Failure::new(Exit::Usage, format!("{option} takes one RUN, not {}", args.runs.len())));
    }
    let documents = args.runs.iter().map(|path| document::read(path)).collect::<Result<Vec<_>, _>>()?;
    let views: Vec<View<'_>> = documents.iter().map(Document::view).collect();
    let written = write_all(args, &views)?;
    let text = if args.markdown {
        markdown::render(&views)
    } else if written.is_empty() {
        documents.iter().map(|document| document.text(style)).collect::<Vec<_>>().join("\n")
    } else {
        written.iter().map(|line| format!("{line}\n")).collect()
    };
    Ok(Report { text, failure: None })
}

/// One line for each file written.
fn write_all(args: &ReportArgs, views: &[View<'_>]) -> Result<Vec<String>, Failure> {
    let mut written = Vec::new();
    if let Some(path) = &args.html {
        let page = html::render(views)
            .map_err(|error| Failure::new(Exit::Failed, format!("a plot cannot be drawn: {error}")))?;
        written.push(write(path, page.as_bytes())?);
    }
    if let Some(path) = &args.csv {
        written.push(write(path, csv::render(views).as_bytes())?);
    }
    let only = views.first();
    if let (Some(path), Some(view)) = (&args.flent, only) {
        for (path, content) in flent_files(path, view)? {
            written.push(write(&path, &content)?);
        }
    }
    if let (Some(path), Some(view)) = (&args.prom, only) {
        written.push(write(path, prom::render(view).as_bytes())?);
    }
    Ok(written)
}

/// The file itself for a single phase, else one beside it for each.
fn flent_files(path: &Path, view: &View<'_>) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
    let alone = view.tracks.len() == 1;
    view.tracks
        .iter()
        .map(|track| {
            let content = flent::render(view, track).map_err(|error| Failure::new(Exit::Failed, error))?;
            let labels = track.labels.iter().map(|(_, value)| value.as_str());
            let parts: Vec<&str> = labels.collect();
            let name = format!("{}-{}", track.phase, parts.join("-"));
            Ok((if alone { path.to_owned() } else { beside(path, &name) }, content))
        })
        .collect()
}

/// `run.flent.gz` and `upload-off` to `run-upload-off.flent.gz`.
fn beside(path: &Path, name: &str) -> PathBuf {
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let stem = file.strip_suffix(".gz").unwrap_or(&file);
    let stem = stem.strip_suffix(".flent").unwrap_or(stem);
    // A target's name must not lead to another folder.
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect();
    path.with_file_name(format!("{stem}-{safe}.flent.gz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flent_file_stays_in_its_folder_whatever_the_target_is_called() {
        assert_eq!(beside(Path::new("a/run.flent.gz"), "idle-off"), Path::new("a/run-idle-off.flent.gz"));
        assert_eq!(
            beside(Path::new("run"), "idle-../[::1]:5"),
            Path::new("run-idle-.._[__1__5.flent.gz").with_file_name("run-idle-..____1__5.flent.gz")
        );
    }
}
