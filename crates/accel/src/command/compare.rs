//! `accel compare`: two recorded runs side by side. A description, never a verdict: one run of each arm cannot
//! tell a tweak from what the line did meanwhile.

use super::offline::load_one;
use super::summary::{PERCENTILES, percentile_record};
use super::{Failure, Report};
use crate::import;
use clap::Args;
use serde_json::{Map, Value, json};
use stats::compare::{Description, describe, drifts};
use stats::{Loss, Series, loss};
use std::path::PathBuf;
use units::Ratio;

/// `accel compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// The run before (every format that `accel classify` reads)
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The run after
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Only the series of this name in both, where the files hold several
    #[arg(long, value_name = "NAME")]
    pub series: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Said with every comparison of two single runs.
const WARNING: &str =
    "One run each: cannot separate the tweak from drift. For a verdict measure randomised pairs.";

/// Describes two runs.
pub fn run(args: &CompareArgs) -> Result<Report, Failure> {
    let name = args.series.as_deref();
    let a = Run::new(load_one(&args.a, name)?);
    let b = Run::new(load_one(&args.b, name)?);
    let rows: Vec<(&str, Description)> = PERCENTILES
        .iter()
        .map(|&(name, percent)| (name, describe(&a.series, &b.series, ratio(percent))))
        .collect();
    let text = if args.json { format!("{:#}\n", document(&a, &b, &rows)) } else { text(&a, &b, &rows) };
    Ok(Report { text, failure: None })
}

/// One of the two.
struct Run {
    series: Series,
    loss: Loss,
    drifts: bool,
}

impl Run {
    fn new(series: import::Series) -> Self {
        let rtts = series.columns.into_rtt_ms();
        let lost: Vec<bool> = rtts.iter().map(|rtt| rtt.is_infinite()).collect();
        // The readers refuse every value that is not a number.
        let drifts = drifts(&rtts);
        Self { series: Series::new(rtts).expect("no NaN in imported samples"), loss: loss(&lost), drifts }
    }
}

fn ratio(percent: f64) -> Ratio {
    Ratio::from_percent(percent).expect("a percentage between 0 and 100")
}

fn document(a: &Run, b: &Run, rows: &[(&str, Description)]) -> Value {
    let mut object = Map::new();
    object.insert("unit".into(), json!("ms"));
    object.insert("verdict".into(), json!("descriptive_only"));
    object.insert("warning".into(), json!(WARNING));
    for (name, d) in rows {
        let row = json!({
            "a": percentile_record(&d.a), "b": percentile_record(&d.b),
            "difference": d.difference, "lo": d.lo, "hi": d.hi,
        });
        object.insert((*name).into(), row);
    }
    let side = |run: &Run| {
        json!({
            "n": run.series.len(), "lost": run.loss.lost, "loss": run.loss.share,
            "loss_lo": run.loss.lo, "loss_hi": run.loss.hi, "drifts": run.drifts,
        })
    };
    object.insert("a".into(), side(a));
    object.insert("b".into(), side(b));
    Value::Object(object)
}

fn text(a: &Run, b: &Run, rows: &[(&str, Description)]) -> String {
    let ms = |value: Option<f64>| value.map_or("?".into(), |value| format!("{value:.1}"));
    let mut text = format!("{:<6}{:>12}{:>12}{:>14}   95 % CI of B - A\n", "ms", "A", "B", "B - A");
    for (name, d) in rows {
        let interval = match (d.lo, d.hi) {
            (None, None) => "no limits from this many samples".into(),
            (lo, hi) => format!("{} to {}", ms(lo), ms(hi)),
        };
        let difference = d.difference.map_or("?".into(), |value| format!("{value:+.1}"));
        text +=
            &format!("{name:<6}{:>12}{:>12}{difference:>14}   {interval}\n", ms(d.a.value), ms(d.b.value));
    }
    let percent = |loss: &Loss| loss.share.map_or("?".into(), |share| format!("{:.2} %", 100.0 * share));
    text += &format!("{:<6}{:>12}{:>12}\n", "loss", percent(&a.loss), percent(&b.loss));
    text += &format!("{:<6}{:>12}{:>12}\n", "n", a.series.len(), b.series.len());
    for (name, run) in [("A", a), ("B", b)] {
        if run.drifts {
            text += &format!("{name} drifts: its level moved one way through the run.\n");
        }
    }
    text + WARNING + "\n"
}
