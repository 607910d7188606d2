//! `accel summary`: percentiles, loss and jitter of recorded series, each with its interval.

use super::offline::{Source, load};
use super::{Failure, Report};
use crate::import::{Columns, Imported};
use clap::Args;
use serde_json::{Map, Value, json};
use stats::compare::drifts;
use stats::{Loss, Percentile, Series, loss};
use units::Ratio;

/// `accel summary`.
#[derive(Clone, Debug, Args)]
pub struct SummaryArgs {
    /// Which samples to take.
    #[command(flatten)]
    pub source: Source,
    /// Print JSON: one object, or {"series": [...]} for a file with several; null = not bounded by the data
    #[arg(long)]
    pub json: bool,
}

/// The percentiles of a summary.
pub(super) const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0)];

/// Summarizes every series of a file.
pub fn run(args: &SummaryArgs) -> Result<Report, Failure> {
    let imported = load(&args.source.file, args.source.series.as_deref())?;
    let format = imported.format.as_str();
    let summaries = summaries(imported);
    let text = if args.json { format!("{:#}\n", document(format, &summaries)) } else { text(&summaries) };
    Ok(Report { text, failure: None })
}

/// What is known of one series.
#[derive(Clone, Debug)]
struct Summary {
    name: String,
    n: usize,
    percentiles: Vec<(&'static str, Percentile)>,
    loss: Loss,
    retransmitted: Option<usize>,
    jitter: Jitter,
    drifts: bool,
}

/// Three measures of jitter; the two of neighbours depend on the time between probes.
#[derive(Clone, Copy, Debug)]
struct Jitter {
    interval_ms: Option<f64>,
    /// RFC 5481 section 4.2 with the median for the minimum: p95 - p50.
    p95_minus_p50_ms: Option<f64>,
    /// Packet delay variation (RFC 5481 section 4.2): p99 - minimum.
    p99_minus_min_ms: Option<f64>,
    /// Mean absolute difference of neighbours that both came back.
    mean_difference_ms: Option<f64>,
    /// RFC 3550 section 6.4.1 after the last probe: gain 1/16.
    rfc3550_ms: Option<f64>,
}

fn summaries(imported: Imported) -> Vec<Summary> {
    imported.series.into_iter().map(|series| summarize(series.name, series.columns)).collect()
}

fn summarize(name: String, columns: Columns) -> Summary {
    let (interval_ms, retransmitted) = (columns.interval_ms(), columns.retransmitted());
    let rtts = columns.into_rtt_ms();
    let lost: Vec<bool> = rtts.iter().map(|rtt| rtt.is_infinite()).collect();
    let loss = loss(&lost);
    drop(lost);
    let drifts = drifts(&rtts);
    let smallest = rtts.iter().copied().fold(f64::INFINITY, f64::min);
    let (mean_difference_ms, rfc3550_ms) = successive(&rtts);
    let n = rtts.len();
    // The readers refuse every value that is not a number.
    let series = Series::new(rtts).expect("no NaN in imported samples");
    let percentiles: Vec<_> = PERCENTILES.map(|(name, percent)| (name, percentile(&series, percent))).into();
    let value = |i: usize| percentiles[i].1.value;
    let jitter = Jitter {
        interval_ms,
        p95_minus_p50_ms: value(2).zip(value(0)).map(|(p95, p50)| p95 - p50),
        p99_minus_min_ms: value(3).map(|p99| p99 - smallest),
        mean_difference_ms,
        rfc3550_ms,
    };
    Summary { name, n, percentiles, loss, retransmitted, jitter, drifts }
}

pub(super) fn percentile(series: &Series, percent: f64) -> Percentile {
    series.percentile(Ratio::from_percent(percent).expect("a percentage between 0 and 100"))
}

/// The mean absolute difference of neighbours, and RFC 3550's running estimate of it.
fn successive(rtts: &[f64]) -> (Option<f64>, Option<f64>) {
    const GAIN: f64 = 1.0 / 16.0;
    let (mut sum, mut count, mut estimate) = (0.0, 0_usize, 0.0);
    for pair in rtts.windows(2).filter(|pair| pair[0].is_finite() && pair[1].is_finite()) {
        let difference = (pair[1] - pair[0]).abs();
        sum += difference;
        count += 1;
        estimate += (difference - estimate) * GAIN;
    }
    if count == 0 { (None, None) } else { (Some(sum / count as f64), Some(estimate)) }
}

fn document(format: &str, summaries: &[Summary]) -> Value {
    match summaries {
        [only] => record(only),
        several => json!({ "format": format, "series": several.iter().map(record).collect::<Vec<_>>() }),
    }
}

fn record(summary: &Summary) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(summary.name));
    object.insert("unit".into(), json!("ms"));
    object.insert("n".into(), json!(summary.n));
    for (name, percentile) in &summary.percentiles {
        object.insert((*name).into(), percentile_record(percentile));
    }
    let Summary { loss, jitter, .. } = summary;
    object.insert(
        "loss".into(),
        json!({
            "value": loss.share, "lo": loss.lo, "hi": loss.hi, "n": loss.n, "lost": loss.lost,
            "bursts": loss.bursts, "n_eff": loss.n_eff, "grade": loss.grade.as_str(),
        }),
    );
    object.insert("retransmitted".into(), json!(summary.retransmitted));
    object.insert(
        "jitter".into(),
        json!({
            "probe_interval_ms": jitter.interval_ms,
            "pdv_p95_minus_p50_ms": jitter.p95_minus_p50_ms,
            "pdv_p99_minus_min_ms": jitter.p99_minus_min_ms,
            "mean_absolute_successive_difference_ms": jitter.mean_difference_ms,
            "rfc3550_ms": jitter.rfc3550_ms,
        }),
    );
    object.insert("drifts".into(), json!(summary.drifts));
    Value::Object(object)
}

pub(super) fn percentile_record(p: &Percentile) -> Value {
    json!({ "value": p.value, "lo": p.lo, "hi": p.hi, "n_eff": p.n_eff, "grade": p.grade.as_str() })
}

fn text(summaries: &[Summary]) -> String {
    summaries.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(summary: &Summary) -> String {
    let name = if summary.name.is_empty() { String::new() } else { format!("{}: ", summary.name) };
    let mut text = format!("{name}{} samples\n", summary.n);
    for (name, percentile) in &summary.percentiles {
        text += &format!("  {name:<6} {}\n", percentile_text(percentile));
    }
    text += &format!("  loss   {}\n", loss_text(&summary.loss));
    if let Some(again) = summary.retransmitted {
        text += &format!("  sent again: {again} of {}\n", summary.n);
    }
    text += &jitter_text(&summary.jitter);
    if summary.drifts {
        text += "  drift  the level moved one way through the run; no interval here covers that\n";
    }
    text
}

/// `12.3 ms (95 % CI 11.9 to 12.8; worth 61 independent samples)`.
pub(super) fn percentile_text(p: &Percentile) -> String {
    let value = p.value.map_or("beyond the answered probes".into(), |value| format!("{value:.1} ms"));
    let interval = match (p.lo, p.hi) {
        (Some(lo), Some(hi)) => format!("95 % CI {lo:.1} to {hi:.1}"),
        (Some(lo), None) => format!("at least {lo:.1}, no upper limit from this many samples"),
        (None, Some(hi)) => format!("at most {hi:.1}, no lower limit from this many samples"),
        (None, None) => "no limits from this many samples".into(),
    };
    let rough = if p.grade == stats::Grade::Rough { ", rough" } else { "" };
    format!("{value} ({interval}; worth {:.0} independent samples{rough})", p.n_eff)
}

fn loss_text(loss: &Loss) -> String {
    let percent = |share: Option<f64>| share.map_or("?".into(), |share| format!("{:.2}", 100.0 * share));
    format!(
        "{} % ({} of {}; 95 % CI {} to {}; {})",
        percent(loss.share),
        loss.lost,
        loss.n,
        percent(loss.lo),
        percent(loss.hi),
        loss.grade.as_str()
    )
}

fn jitter_text(jitter: &Jitter) -> String {
    let ms = |value: Option<f64>| value.map_or("?".into(), |value| format!("{value:.2} ms"));
    format!(
        "  jitter p95 - p50 {}, p99 - min {}; between neighbours {} in the mean, {} by RFC 3550, both at {} between probes\n",
        ms(jitter.p95_minus_p50_ms),
        ms(jitter.p99_minus_min_ms),
        ms(jitter.mean_difference_ms),
        ms(jitter.rfc3550_ms),
        jitter.interval_ms.map_or("an unknown time".into(), |interval| format!("{interval:.0} ms"))
    )
}
