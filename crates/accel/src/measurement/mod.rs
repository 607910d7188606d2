//! The run document of `accel measure`: what a real path showed, by phase, target and probe.
//!
//! It shares the envelope and the records of the lab's document ([`crate::run`]) and its `schema_version`; `command` tells
//! the two apart. Every key carries its unit, a missing number is `null`, a limit of `null` is not bounded by the data.

mod grade;
mod summary;

pub use grade::{Grades, Letter, OtherScales, PhaseGrade, grades};
pub use summary::{goodput, percentiles, row, way};

use crate::run::{
    InstrumentRecord, LossRecord, Machine, PercentileRecord, Phase, SampleColumns, Spread, Versions,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One run of `accel measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`crate::run::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The command that made it: `measure`.
    pub command: String,
    /// Start on the wall clock, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How long the run took, seconds.
    pub duration_s: f64,
    /// What ran.
    pub versions: Versions,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured, complete with defaults.
    pub settings: Settings,
    /// In the order in which they were measured.
    pub phases: Vec<PhaseRecord>,
    /// Latency under load as a letter; `None` without both an idle and a loaded phase.
    pub grade: Option<Grades>,
    /// Ended by a signal: what is here was measured, the rest was not.
    pub interrupted: bool,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<String>,
}

/// What was measured and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// In the order of the table.
    pub targets: Vec<TargetSetting>,
    /// The far end of the load; `None` without one.
    pub load: Option<LoadSetting>,
    /// Mean time between two handshakes with one's own server; foreign ones get at most ten a second.
    pub probe_period_ms: f64,
    /// IP bits that all probes together put on each way.
    pub probe_load_kbps: f64,
    /// Each probe leaves up to this share of the period earlier or later.
    pub probe_jitter_pct: f64,
    /// A probe without an answer for this long is lost.
    pub probe_timeout_ms: f64,
    /// Seed of the probes' schedules.
    pub seed: u64,
    /// Length of the idle phase.
    pub idle_ms: f64,
    /// Start of each loaded phase that is not measured.
    pub ramp_ms: f64,
    /// The measured part of each loaded phase.
    pub loaded_ms: f64,
    /// The load ends when it has moved so much.
    pub max_data_mb: f64,
}

/// A target with the address it was pinned to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSetting {
    /// As typed; `gateway` for the gateway.
    pub name: String,
    /// Address and port.
    pub address: String,
    /// Addresses that the name had beside it.
    pub others: usize,
    /// Whether it is one's own server.
    pub own_server: bool,
}

/// The load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSetting {
    /// As typed.
    pub server: String,
    /// Address and port.
    pub address: String,
    /// Bulk flows per loaded direction.
    pub flows: u32,
    /// Congestion control of the bulk flows, set per socket at both ends.
    pub congestion_control: String,
}

/// What one phase showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// The load.
    pub phase: Phase,
    /// Start of the measured part, since the start of the run.
    pub started_ms: f64,
    /// Length of the measured part.
    pub measured_ms: f64,
    /// Why it ended early; `None` for a whole one.
    pub cut_short: Option<String>,
    /// Goodput towards the server, counted by the server; `None` when nothing was sent that way.
    pub up: Option<Goodput>,
    /// Goodput towards here; `None` when nothing was sent that way.
    pub down: Option<Goodput>,
    /// Bulk segments sent again by both ends, in percent of those sent; `None` without load.
    pub bulk_retransmit_pct: Option<f64>,
    /// What the load moved, ramp included.
    pub data_mb: f64,
    /// One per target and probe.
    pub rows: Vec<Row>,
    /// Name resolution; empty where it was not asked for.
    pub names: Vec<NameRow>,
    /// The instrument's own error.
    pub instrument: InstrumentRecord,
    /// That of the thread that sends echoes and datagrams; `None` without them.
    pub echo_instrument: Option<EchoInstrument>,
}

/// The error of the thread that sends echoes and datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoInstrument {
    /// How long after its scheduled time a probe was sent.
    pub start_lateness_ms: Spread,
    /// Slots of the schedules that had passed before the thread came to them.
    pub missed: u64,
}

/// How a latency was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// A TCP handshake, by the kernel's clock.
    Handshake,
    /// A frame on an established connection and back, sent at once (TCP_NODELAY).
    Echo,
    /// The same in two writes on a connection as the system makes it: Nagle's algorithm and delayed acknowledgements.
    EchoTwoWrites,
    /// A small datagram and back.
    DatagramSmall,
    /// A datagram of nearly full size and back.
    DatagramFull,
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Handshake => "handshake",
            Self::Echo => "echo",
            Self::EchoTwoWrites => "echo, 2 writes",
            Self::DatagramSmall => "UDP small",
            Self::DatagramFull => "UDP full",
        })
    }
}

/// What one probe of one target showed in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the target.
    pub target: String,
    /// How.
    pub kind: ProbeKind,
    /// Of the probes that were answered at the first attempt.
    pub latency_ms: Percentiles,
    /// The same probes by the program's own clock; `None` where there is no other.
    pub user_latency_ms: Option<Percentiles>,
    /// Probes that were sent again by the kernel or never answered.
    pub loss: LossRecord,
    /// Variation of the latency.
    pub jitter: Jitter,
    /// What made the tail.
    pub tail: Tail,
    /// Each way by itself; for datagrams only.
    pub ways: Option<Ways>,
    /// Every probe.
    pub samples: SampleColumns,
}

/// Percentiles of the latency, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: PercentileRecord,
    /// The value that 90 % of the probes did not exceed.
    pub p90: PercentileRecord,
    /// The value that 95 % of the probes did not exceed.
    pub p95: PercentileRecord,
    /// The value that 99 % of the probes did not exceed.
    pub p99: PercentileRecord,
    /// Probes counted.
    pub n: usize,
}

/// A figure with its limits; `None` = not bounded by the data, or no figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounded {
    /// The figure.
    pub value: Option<f64>,
    /// Lower limit.
    pub lo: Option<f64>,
    /// Upper limit.
    pub hi: Option<f64>,
}

/// Variation of the latency. It depends on how often one looks, so that the period stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// p95 minus p50 (packet delay variation, RFC 5481 section 4.2, at p95 and against the median). Its limits come from
    /// those of both percentiles and hold with 90 % at least.
    pub pdv_ms: Bounded,
    /// Mean absolute difference of successive answers (RFC 5481 section 4.1; RFC 3550 smooths the same), 95 %
    /// interval from the means of ten blocks.
    pub successive_ms: Bounded,
    /// Mean time between two probes.
    pub probe_period_ms: f64,
}

/// What made the tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// `clean`, `queue_buildup`, `loss_retransmit`, `mixed`, `spikes`, `bimodal_route` or `insufficient`; `not_classified`
    /// for echoes in two writes.
    pub label: String,
    /// The figures behind it.
    pub why: String,
    /// `counters` of the kernel or `shape` of the distribution.
    pub basis: String,
}

/// The two ways of a datagram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ways {
    /// IP bytes of each datagram.
    pub ip_bytes: u32,
    /// From here to the server.
    pub up: Way,
    /// From the server to here.
    pub down: Way,
    /// Lost on a way that could not be found out: no later datagram came through to tell.
    pub unknown: usize,
}

/// One way of a datagram. The clocks of the two ends are not the same, so that only differences mean anything; they
/// may drift by some 0.05 ms a second against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// Datagrams lost on this way, of those that were sent on it.
    pub loss: LossRecord,
    /// Delay above the smallest one of the phase.
    pub above_smallest_ms: Percentiles,
    /// For each probe, in the order of sending; `None` = not known.
    pub delay_ms: Vec<Option<f64>>,
}

/// A rate of payload that arrived, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// Over the whole measured part.
    pub mbps: f64,
    /// Lower 95 % limit from the means of blocks; `None` with too few.
    pub lo_mbps: Option<f64>,
    /// Upper limit.
    pub hi_mbps: Option<f64>,
    /// Blocks of equal length.
    pub blocks: usize,
}

/// Name resolution through the system (getaddrinfo), as every program does it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NameRow {
    /// `cached`: the same name again and again; `uncached`: a random label that no cache can know.
    pub kind: NameKind,
    /// What was asked for; `*` stands for the random label.
    pub name: String,
    /// Of the calls that brought an answer, "no such name" being one.
    pub latency_ms: Percentiles,
    /// Calls that brought none.
    pub failed: usize,
    /// What the first of them said.
    pub failure: Option<String>,
    /// Slots of the schedule that had passed while a call took its time.
    pub missed: usize,
    /// Start of each call, since the start of the measured part.
    pub t_ms: Vec<f64>,
    /// How long it took; `None` = failed.
    pub took_ms: Vec<Option<f64>>,
}

/// Whether a cache may know the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// It may.
    Cached,
    /// It cannot.
    Uncached,
}
