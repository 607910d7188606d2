//! `accel classify`: what made the tail of a recorded series.

mod strip;
mod text;

use super::offline::{Source, load};
use super::{Failure, Report};
use crate::import::{Imported, Series};
use clap::Args;
use serde_json::{Value, json};
use stats::{Classification, classify};

/// `accel classify`.
#[derive(Clone, Debug, Args)]
pub struct ClassifyArgs {
    /// Which samples to take.
    #[command(flatten)]
    pub source: Source,
    /// Print JSON: one object, or {"series": [...]} for a file with several
    #[arg(long)]
    pub json: bool,
}

/// Classifies every series of a file.
pub fn run(args: &ClassifyArgs) -> Result<Report, Failure> {
    let imported = load(&args.source.file, args.source.series.as_deref())?;
    let text = if args.json { format!("{:#}\n", document(&imported)) } else { table(&imported) };
    Ok(Report { text, failure: None })
}

/// Longer series are thinned evenly before they are judged, which bounds memory; a million probes tell the shape.
const MAX_JUDGED: usize = 1_000_000;

fn judge(series: &Series) -> Classification {
    classify(&series.columns.probes(step(series)), &series.idle_rtt_ms)
}

/// Every how many-th probe is judged.
fn step(series: &Series) -> usize {
    series.columns.len().div_ceil(MAX_JUDGED)
}

fn document(imported: &Imported) -> Value {
    let mut all: Vec<Value> = imported.series.iter().map(|series| record(series, &judge(series))).collect();
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            all.extend(last);
            json!({ "format": imported.format.as_str(), "series": all })
        }
    }
}

fn record(series: &Series, result: &Classification) -> Value {
    let affected = &result.affected;
    json!({
        "name": series.name,
        "judged_every": step(series),
        "times_assumed": series.columns.has_assumed_times(),
        "label": result.label.as_str(),
        "why": result.why,
        "basis": result.basis.as_str(),
        "n": result.n,
        "lost": result.lost,
        "retransmits": result.retransmits,
        "rto_ms": result.rto_ms,
        "backoff": result.backoff.map(|backoff| backoff.as_str()),
        "fraction": { "value": affected.share, "lo": affected.lo, "hi": affected.hi, "grade": affected.grade.as_str() },
        "gap_ms": result.gap.map(|gap| json!({ "from": gap.from_ms, "to": gap.to_ms })),
        "helps": text::helps(result.label),
        "does_not_help": text::does_not_help(result.label),
    })
}

fn table(imported: &Imported) -> String {
    let blocks: Vec<String> =
        imported.series.iter().map(|series| text::block(series, &judge(series))).collect();
    blocks.join("\n")
}
