//! One phase as a flent data file (version 4, gzipped JSON).
//!
//! A file holds one phase of one arm or target: flent's summary takes all values of a series together, and an idle phase
//! among loaded ones would spoil its median. flent knows only its own tests, so that the file says `rrul_be` and the
//! handshakes stand under `Ping (ms) ICMP`; the note in the file says what they are.

use super::view::{Goodput, Track, View};
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Width of the steps of flent's plots, seconds; its own default.
const STEP_S: f64 = 0.2;
/// The series of `rrul_be` that its plots, its summary and its CDF take.
const PING: &str = "Ping (ms) ICMP";

/// The content of the file.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn render(view: &View<'_>, track: &Track<'_>) -> io::Result<Vec<u8>> {
    // No name and no time of its own in the header: the same run gives the same bytes.
    let mut zip = GzBuilder::new().write(Vec::new(), Compression::default());
    serde_json::to_writer(&mut zip, &document(view, track))?;
    zip.flush()?;
    zip.finish()
}

fn document(view: &View<'_>, track: &Track<'_>) -> Value {
    let start_ms = view.started_unix_ms as f64 + track.started_ms;
    let steps = (track.measured_ms / 1000.0 / STEP_S).ceil().clamp(1.0, MAX_STEPS) as usize;
    let x_values: Vec<f64> = (0..steps).map(|step| round(step as f64 * STEP_S)).collect();
    let mut results = Map::new();
    results.insert(PING.to_owned(), json!(binned(track, steps)));
    for (name, rate) in [("TCP upload BE", track.up), ("TCP download BE", track.down)] {
        if let Some(Goodput { mbps, .. }) = rate {
            results.insert(name.to_owned(), json!(vec![mbps; steps]));
        }
    }
    let mut raw_values = Map::new();
    raw_values.insert(PING.to_owned(), raw(track, start_ms));
    json!({
        "version": 4,
        "x_values": x_values,
        "results": results,
        "raw_values": raw_values,
        "metadata": metadata(view, track, start_ms),
    })
}

/// Ten days of steps; a document that claims more gets no more.
const MAX_STEPS: f64 = 4_320_000.0;

/// Mean of the answers by the time of sending; `null` for a step without one.
fn binned(track: &Track<'_>, steps: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); steps];
    for point in track.points() {
        let step = (point.t_ms / 1000.0 / STEP_S) as usize;
        if let (Some(rtt), Some((sum, count))) = (point.rtt_ms, sums.get_mut(step)) {
            *sum += rtt;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| round(sum / f64::from(count)))).collect()
}

/// Every answer with its time of arrival; a lost probe is a hole in the numbers.
fn raw(track: &Track<'_>, start_ms: f64) -> Value {
    let answers = track.points().enumerate().filter_map(|(i, point)| {
        let rtt = point.rtt_ms?;
        Some(json!({ "t": (start_ms + point.t_ms + rtt) / 1000.0, "val": rtt, "seq": i + 1 }))
    });
    answers.collect()
}

fn metadata(view: &View<'_>, track: &Track<'_>, start_ms: f64) -> Value {
    let time = Timestamp::from_millisecond(start_ms as i64).unwrap_or(Timestamp::UNIX_EPOCH);
    let time = time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let length_s = (track.measured_ms / 1000.0).ceil() as u64;
    json!({
        "NAME": "rrul_be",
        "TITLE": format!("accel {}, {}", view.command, track.title()),
        "NOTE": "The ping series are TCP handshakes of accel; those that were sent again are in it with their waiting. \
                 Goodput is the mean of the phase, counted by the receiver.",
        "HOST": track.group,
        "HOSTS": [track.group],
        "LOCAL_HOST": "accel",
        "LENGTH": length_s,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": STEP_S,
        "TIME": time,
        "T0": time,
        "IP_VERSION": Value::Null,
        "FLENT_VERSION": "2.1.1",
        "DATA_FILENAME": "accel.flent.gz",
        "TEST_PARAMETERS": {},
        "SERIES_META": { PING: { "UNITS": "ms", "RUNNER": "accel" } },
    })
}

/// Microseconds are all that the document has.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
