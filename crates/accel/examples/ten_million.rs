//! How long a summary of ten million samples takes beside sorting them, and how much memory.
//!
//! `cargo run --release -p accel --example ten_million [SAMPLES]`

use accel::command::classify::{self, ClassifyArgs};
use accel::command::offline::Source;
use accel::command::summary::{self, SummaryArgs};
use platform::clock;
use stats::{Series, loss};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use units::Ratio;

fn main() -> std::io::Result<()> {
    let samples: u64 = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10_000_000);
    let path = std::env::temp_dir().join(format!("accel-ten-million-{}.csv", std::process::id()));
    let result = measure(&path, samples);
    std::fs::remove_file(&path)?;
    result
}

fn measure(path: &Path, samples: u64) -> std::io::Result<()> {
    let values = write(path, samples)?;
    let mut sorted = values.clone();
    let sorting = seconds(|| sorted.sort_by(f64::total_cmp));
    drop(sorted);
    let statements = seconds(|| summarize(&values));
    println!("sorting {samples} samples: {sorting:.2} s");
    println!(
        "percentiles, loss and their intervals: {statements:.2} s, {:.1} times as long",
        statements / sorting
    );
    drop(values);
    let source = || Source { file: path.to_owned(), series: None };
    let summary = seconds(|| drop(summary::run(&SummaryArgs { source: source(), json: true })));
    println!("accel summary, reading included: {summary:.2} s; peak memory {} MB", peak_mb());
    let classified = seconds(|| drop(classify::run(&ClassifyArgs { source: source(), json: true })));
    println!("accel classify, reading included: {classified:.2} s; peak memory {} MB", peak_mb());
    Ok(())
}

/// What a summary says of a series: sorting included.
fn summarize(values: &[f64]) {
    let series = Series::new(values.to_vec()).expect("no NaN was written");
    for percent in [50.0, 90.0, 95.0, 99.0] {
        let p = Ratio::from_percent(percent).expect("a percentage");
        std::hint::black_box(series.percentile(p));
    }
    let lost: Vec<bool> = values.iter().map(|rtt| rtt.is_infinite()).collect();
    std::hint::black_box(loss(&lost));
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = clock::now();
    work();
    clock::now().saturating_since(start).as_secs_f64()
}

/// A sawtooth queue with noise: as correlated as latency under load is.
fn write(path: &Path, samples: u64) -> std::io::Result<Vec<f64>> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "t_s,rtt_ms")?;
    let mut values = Vec::new();
    for i in 0..samples {
        let noise = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / f64::from(1 << 24);
        let rtt_ms = 20.0 + (i % 400) as f64 / 4.0 + 5.0 * noise;
        writeln!(file, "{:.3},{rtt_ms:.3}", i as f64 * 0.02)?;
        values.push(rtt_ms);
    }
    file.flush()?;
    Ok(values)
}

/// The most memory that this process has held, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
