//! `accel history`: keeps run documents, one file each, and shows how a line did over time. It keeps only what it is given.

use super::report::{document, output};
use super::{Exit, Failure, Report};
use crate::render::text::{percentile_interval, percentile_value};
use crate::render::view::{Track, View};
use crate::run::PercentileRecord;
use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// `accel history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Run documents to keep first (accel lab --json, accel measure --json); none = only show what is kept
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The phase shown
    #[arg(long, value_name = "PHASE", default_value = "upload",
          value_parser = PossibleValuesParser::new(["idle", "upload", "download", "bidirectional"]))]
    pub phase: String,
    /// Where the runs are kept [default: accel/runs in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Keeps what it is given, then lists everything.
///
/// # Errors
/// When a document or the folder cannot be read or written.
pub fn run(args: &HistoryArgs) -> Result<Report, Failure> {
    let folder = args.folder.clone().or_else(data_folder).ok_or_else(|| {
        Failure::new(Exit::Usage, "neither XDG_DATA_HOME nor HOME is set").help("name a folder with --folder")
    })?;
    for path in &args.runs {
        keep(path, &folder)?;
    }
    let (kept, skipped) = read_all(&folder)?;
    let text = if kept.is_empty() {
        format!("No run is kept in {}. Keep one with: accel history run.json\n", folder.display())
    } else {
        list(&kept, &args.phase, &folder)
    };
    // One bad file must not hide the others, and must not go unsaid.
    let failure = skipped.into_iter().next();
    Ok(Report { text, failure })
}

/// The XDG base directory specification: a relative path counts as not set.
fn data_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("accel/runs"))
}

/// Copies a document that makes sense under a name made of its start, so that keeping it twice changes nothing.
fn keep(path: &Path, folder: &Path) -> Result<(), Failure> {
    let unwritable =
        |error| Failure::new(Exit::NotWritten, format!("{} cannot be made: {error}", folder.display()));
    let document = document::read(path)?;
    let view = document.view();
    fs::create_dir_all(folder).map_err(unwritable)?;
    let content = document::bytes(path)
        .map_err(|error| Failure::new(Exit::Unreadable, format!("{}: {error}", path.display())))?;
    output::write(&folder.join(format!("{:013}-{}.json", view.started_unix_ms, view.command)), &content)?;
    Ok(())
}

/// By their start. Files that are no run documents of this version come back as failures.
fn read_all(folder: &Path) -> Result<(Vec<document::Document>, Vec<Failure>), Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(Failure::new(Exit::Unreadable, format!("{}: {error}", folder.display()))),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        match document::read(&path) {
            Ok(document) => kept.push(document),
            Err(failure) => skipped.push(failure),
        }
    }
    Ok((kept, skipped))
}

fn list(kept: &[document::Document], phase: &str, folder: &Path) -> String {
    let views: Vec<View<'_>> = kept.iter().map(document::Document::view).collect();
    let shown: Vec<(&View<'_>, &Track<'_>)> = views
        .iter()
        .flat_map(|view| view.tracks.iter().map(move |track| (view, track)))
        .filter(|(_, track)| track.phase.to_string() == phase)
        .collect();
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["started (UTC)", "run", "of", "p50 ms", "p99 ms", "up", "down", "p50 since the last"]);
    for (i, (view, track)) in shown.iter().enumerate() {
        let last = shown[..i].iter().rev().find(|(older, old)| {
            older.command == view.command
                && old.group == track.group
                && older.started_unix_ms < view.started_unix_ms
        });
        table.add_row(row(view, track, last.map(|(_, track)| *track)));
    }
    format!(
        "{phase}, {} runs in {}\n{}\nlower and higher: the 95 % intervals do not overlap. Runs at different times cannot tell \
         a change from drift.\n",
        views.len(),
        folder.display(),
        table.trim_fmt()
    )
}

fn row(view: &View<'_>, track: &Track<'_>, last: Option<&Track<'_>>) -> Vec<String> {
    let cell = |name: &str| {
        percentile(track, name).map_or_else(
            || "-".to_owned(),
            |p| format!("{} ({})", percentile_value(p), percentile_interval(p)),
        )
    };
    let rate = |rate: Option<crate::render::view::Goodput>| {
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1}", rate.mbps))
    };
    vec![
        started(view.started_unix_ms),
        view.command.to_owned(),
        track.group.clone(),
        cell("p50"),
        cell("p99"),
        rate(track.up),
        rate(track.down),
        trend(last.and_then(|last| percentile(last, "p50")), percentile(track, "p50")).to_owned(),
    ]
}

fn percentile<'a>(track: &Track<'a>, wanted: &str) -> Option<&'a PercentileRecord> {
    track.percentiles.iter().find(|(name, _)| *name == wanted).map(|(_, percentile)| *percentile)
}

fn started(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "?".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Only what the intervals show.
fn trend(old: Option<&PercentileRecord>, new: Option<&PercentileRecord>) -> &'static str {
    let (Some(old), Some(new)) = (old, new) else { return "-" };
    let below = |a: &PercentileRecord, b: &PercentileRecord| a.hi.zip(b.lo).map(|(hi, lo)| hi < lo);
    match (below(new, old), below(old, new)) {
        (Some(true), _) => "lower",
        (_, Some(true)) => "higher",
        (None, _) | (_, None) => "too few samples",
        _ => "no difference shown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(lo: Option<f64>, hi: Option<f64>) -> PercentileRecord {
        PercentileRecord { value: Some(1.0), lo, hi, n_eff: 99.0, grade: "ok".to_owned() }
    }

    #[test]
    fn a_trend_is_only_what_the_intervals_show() {
        let (low, high) = (p(Some(19.0), Some(20.0)), p(Some(30.0), Some(40.0)));
        assert_eq!(trend(None, Some(&low)), "-");
        assert_eq!(trend(Some(&high), Some(&low)), "lower");
        assert_eq!(trend(Some(&low), Some(&high)), "higher");
        assert_eq!(trend(Some(&low), Some(&p(Some(19.5), Some(22.0)))), "no difference shown");
        assert_eq!(trend(Some(&low), Some(&p(Some(10.0), None))), "too few samples");
    }
}
