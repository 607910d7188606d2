//! What the views show, whatever command made the run document: phases with their probes, figures and words.

mod lab;
mod measure;

use crate::run::{InstrumentRecord, LossRecord, PercentileRecord, Phase, SampleColumns};
use crate::verdict::{Comparison, Verdict};
use serde_json::Value;
use stats::{Gap, Probe, classify};

/// One run, laid out for a reader.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The command that made it.
    pub command: &'a str,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Seconds.
    pub duration_s: f64,
    /// What was measured, in one paragraph.
    pub heading: String,
    /// What there is to know before the figures are read.
    pub warnings: &'a [String],
    /// The conclusion and what it cost, as paragraphs.
    pub conclusion: Vec<String>,
    /// The instrument's own error, in one paragraph.
    pub instrument: String,
    /// Explanations that the table's marks need.
    pub notes: Vec<String>,
    /// One per phase and arm or target, in the order in which they were measured.
    pub tracks: Vec<Track<'a>>,
    /// The comparison of two arms.
    pub verdict: Option<&'a Verdict>,
    /// Differences with their intervals, for the plot.
    pub differences: Vec<Difference<'a>>,
    /// Name and value of every setting, program and machine figure.
    pub facts: Vec<(String, String)>,
    /// What the verdict's difference stands for: `shaper on minus off`.
    pub contrast: &'static str,
}

/// The probes of one phase in one arm or to one target.
#[derive(Clone, Debug)]
pub struct Track<'a> {
    /// What tells it from the other tracks of the same phase: `shaper off`.
    pub group: String,
    /// The load.
    pub phase: Phase,
    /// What identifies it in a machine-readable format, beside the phase: `arm` = `off`.
    pub labels: Vec<(&'static str, String)>,
    /// Start of the measured part, milliseconds since the start of the run.
    pub started_ms: f64,
    /// Length of the unmeasured start before it; zero without load.
    pub ramp_ms: f64,
    /// Length of the measured part.
    pub measured_ms: f64,
    /// Name and figure of each percentile.
    pub percentiles: Vec<(&'static str, &'a PercentileRecord)>,
    /// Probes in the percentiles: those answered at the first attempt.
    pub n: usize,
    /// Probes lost or sent again.
    pub loss: &'a LossRecord,
    /// Goodput towards the server.
    pub up: Option<Goodput>,
    /// Goodput towards here.
    pub down: Option<Goodput>,
    /// Bulk segments sent again, in percent.
    pub bulk_retransmit_pct: Option<f64>,
    /// What made the tail.
    pub tail: Tail,
    /// The instrument's own error.
    pub instrument: &'a InstrumentRecord,
    /// Every probe.
    pub samples: &'a SampleColumns,
}

/// A rate of payload that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// Over the whole measured part.
    pub mbps: f64,
    /// 95 % limits, where there are some.
    pub limits: Option<(f64, f64)>,
}

/// What the classifier says.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// `queue_buildup` and so on.
    pub label: String,
    /// The figures behind it.
    pub why: String,
    /// The empty range beneath the probes that were sent again.
    pub gap: Option<Gap>,
}

/// One row of the difference plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference<'a> {
    /// What it came to.
    pub comparison: &'a Comparison,
    /// Smallest difference that both intervals allow; `None` = not bounded by the data.
    pub lo_ms: Option<f64>,
    /// Largest.
    pub hi_ms: Option<f64>,
}

/// What became of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Answered at the first attempt.
    FirstAttempt,
    /// Answered after the kernel had sent it again.
    SentAgain,
    /// Never answered in time.
    Lost,
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When it was due, milliseconds since the start of the measured part.
    pub t_ms: f64,
    /// Kernel's time where there is one, else the program's; `None` = lost.
    pub rtt_ms: Option<f64>,
    /// What became of it.
    pub fate: Fate,
}

/// Longer series are thinned evenly before they are judged.
const MAX_JUDGED: usize = 1_000_000;

impl Track<'_> {
    /// `upload, shaper off`.
    pub fn title(&self) -> String {
        format!("{}, {}", self.phase, self.group)
    }

    /// Every probe in the order of sending.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        points(self.samples)
    }

    /// The times of the probes that were answered at the first attempt.
    pub fn first_attempts(&self) -> Vec<f64> {
        let answered = self.points().filter(|point| point.fate == Fate::FirstAttempt);
        answered.filter_map(|point| point.rtt_ms).collect()
    }

    /// How many probes had this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.points().filter(|point| point.fate == fate).count()
    }
}

fn points(samples: &SampleColumns) -> impl Iterator<Item = Point> {
    (0..samples.t_ms.len()).map(|i| {
        let user = samples.user_ms[i];
        let fate = match (user, samples.retransmits[i]) {
            (None, _) => Fate::Lost,
            (Some(_), 0) => Fate::FirstAttempt,
            (Some(_), _) => Fate::SentAgain,
        };
        // The kernel's RTT of a handshake that was sent again leaves the waiting out.
        let kernel = samples.kernel_ms[i].filter(|_| fate == Fate::FirstAttempt);
        Point { t_ms: samples.t_ms[i], rtt_ms: user.and(kernel).or(user), fate }
    })
}

fn tail(samples: &SampleColumns, idle: &[f64]) -> Tail {
    let step = samples.t_ms.len().div_ceil(MAX_JUDGED).max(1);
    let probes: Vec<Probe> = points(samples)
        .zip(&samples.retransmits)
        .step_by(step)
        .map(|(point, &again)| Probe { at_ms: point.t_ms, rtt_ms: point.rtt_ms, retransmits: Some(again) })
        .collect();
    let found = classify(&probes, idle);
    Tail { label: found.label.as_str().to_owned(), why: found.why, gap: found.gap }
}

/// Settings, programs and machine by the names of the document, which carry the units.
fn named_values(parts: &[serde_json::Result<Value>]) -> Vec<(String, String)> {
    let objects = parts.iter().flatten().filter_map(Value::as_object).flatten();
    objects.filter_map(|(name, value)| Some((name.clone(), plain(value)?))).collect()
}

/// A value without JSON's quotes; nothing for `null`.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
