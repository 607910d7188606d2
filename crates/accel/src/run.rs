//! The run document: everything a run saw and concluded, as one JSON object.
//!
//! Every key carries its unit. Nothing in it is NaN or infinite: a missing number is `null`. A limit of `null` is
//! not bounded by the data. The statements ([`Latency`], [`LossRecord`], [`Verdict`]) can
//! be derived again from the samples in the same document.

use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of this document's layout; grows when a reader of the old one would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// One run of `accel lab`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The command that made it: `lab`.
    pub command: String,
    /// Start on the wall clock, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How long the run took, seconds.
    pub duration_s: f64,
    /// What ran.
    pub versions: Versions,
    /// Where it ran.
    pub machine: Machine,
    /// What was asked for, complete with defaults.
    pub settings: Settings,
    /// One entry per phase and arm, in the order in which they were measured.
    pub phases: Vec<PhaseRecord>,
    /// What the shaper said of itself; `None` when it did not run.
    pub shaper: Option<ShaperRecord>,
    /// The comparison of the arms; `None` when only one was measured.
    pub verdict: Option<Verdict>,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<String>,
}

impl Run {
    /// The record of one phase in one arm.
    pub fn phase(&self, arm: Arm, phase: Phase) -> Option<&PhaseRecord> {
        self.phases.iter().find(|p| p.arm == arm && p.phase == phase)
    }
}

/// The programs and the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// This program.
    pub accel: String,
    /// The shaper as it names itself; `None` when it did not run.
    pub shaper: Option<String>,
    /// The kernel's release.
    pub kernel: String,
}

/// The machine and how the probes were timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that this process may use.
    pub cores: usize,
    /// The clock of all times in `samples`.
    pub clock: String,
    /// Its stated granularity.
    pub clock_resolution_ns: u64,
}

/// What was asked for; rates are those of the line, IP bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The line's rate towards the server.
    pub up_mbps: f64,
    /// The line's rate towards the client.
    pub down_mbps: f64,
    /// Two-way delay without any queue.
    pub rtt_ms: f64,
    /// The FIFO in each direction.
    pub buffer_ms: f64,
    /// Random loss in each direction.
    pub loss_pct: f64,
    /// Random extra delay in each direction, at most this.
    pub jitter_ms: f64,
    /// Bulk flows per loaded direction.
    pub flows: u32,
    /// Congestion control of the bulk flows, set per socket at both ends.
    pub congestion_control: String,
    /// Arms: `off`, `on` or `both`.
    pub shaper: String,
    /// What the shaper was told; `None` when it did not run.
    pub shaper_rate_mbps: Option<f64>,
    /// Seed of the line's loss and jitter and of the probes' schedule.
    pub seed: u64,
    /// Whether the phases were cut short.
    pub quick: bool,
    /// Mean time between two probes.
    pub probe_period_ms: f64,
    /// Each probe leaves up to this share of the period earlier or later.
    pub probe_jitter_pct: f64,
    /// A probe without an answer for this long is lost.
    pub probe_timeout_ms: f64,
    /// What the probes put on the slower direction, as a share of its rate.
    pub probe_load_pct: f64,
    /// Start of each loaded phase that is not measured.
    pub ramp_ms: f64,
    /// The measured part of each loaded phase.
    pub loaded_ms: f64,
    /// The length of an idle phase.
    pub idle_ms: f64,
}

/// One of the two states compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// Without the shaper.
    Off,
    /// With the shaper on the client's side.
    On,
}

/// What loads the line while the probes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing.
    Idle,
    /// Bulk flows from the client.
    Upload,
    /// Bulk flows to the client.
    Download,
    /// Both at once.
    Bidirectional,
}

impl Phase {
    /// All phases in the order in which they are measured.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Upload, Self::Download, Self::Bidirectional];

    /// Whether bulk flows run from the client.
    pub const fn loads_up(self) -> bool {
        matches!(self, Self::Upload | Self::Bidirectional)
    }

    /// Whether bulk flows run to the client.
    pub const fn loads_down(self) -> bool {
        matches!(self, Self::Download | Self::Bidirectional)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "idle",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Bidirectional => "bidirectional",
        })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// What one phase in one arm showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Shaper off or on.
    pub arm: Arm,
    /// The load.
    pub phase: Phase,
    /// Handshake latency of the probes whose SYN was not sent again, by the kernel's clock.
    pub latency_ms: Latency,
    /// The same probes by the program's own clock; its distance from `latency_ms` is the instrument's error.
    pub user_latency_ms: Latency,
    /// Goodput towards the server, counted by the receiver; `None` when nothing was sent that way.
    pub up_mbps: Option<f64>,
    /// Goodput towards the client, counted by the receiver; `None` when nothing was sent that way.
    pub down_mbps: Option<f64>,
    /// Probes whose SYN was sent again or never answered, in percent of all.
    pub probe_loss_pct: Option<f64>,
    /// The same with its interval.
    pub probe_loss: LossRecord,
    /// Bulk segments sent again, in percent of those sent; `None` without load.
    pub bulk_retransmit_pct: Option<f64>,
    /// Start of the measured part, since the start of the run.
    pub started_ms: f64,
    /// Length of the measured part.
    pub measured_ms: f64,
    /// The instrument's own error during this phase.
    pub instrument: InstrumentRecord,
    /// What the emulated line did during this phase, ramp included.
    pub line: LineRecord,
    /// Every probe.
    pub samples: SampleColumns,
}

/// Percentiles of the latency, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: PercentileRecord,
    /// The value that 95 % of the probes did not exceed.
    pub p95: PercentileRecord,
    /// The value that 99 % of the probes did not exceed.
    pub p99: PercentileRecord,
    /// Probes counted.
    pub n: usize,
}

/// A percentile with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentileRecord {
    /// The percentile; `None` without samples.
    pub value: Option<f64>,
    /// Lower limit; `None` when not bounded by the data.
    pub lo: Option<f64>,
    /// Upper limit; `None` when not bounded by the data.
    pub hi: Option<f64>,
    /// Independent samples that the phase is worth at this percentile.
    pub n_eff: f64,
    /// `ok`, `rough` or `insufficient`.
    pub grade: String,
}

/// A loss share with its 95 % interval, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRecord {
    /// Lost in percent of sent; `None` when nothing was sent.
    pub value_pct: Option<f64>,
    /// Lower limit; `None` when the run was too short to give one.
    pub lo_pct: Option<f64>,
    /// Upper limit; `None` when the run was too short to give one.
    pub hi_pct: Option<f64>,
    /// Probes sent.
    pub n: usize,
    /// Probes lost.
    pub lost: usize,
    /// Runs of consecutive losses.
    pub bursts: usize,
    /// Independent probes that the phase is worth.
    pub n_eff: f64,
    /// `ok`, `few events` or `insufficient`.
    pub grade: String,
}

/// How a time that should be zero was spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub p50: f64,
    /// Ninety-ninth percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// The prober's own error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstrumentRecord {
    /// How long after its scheduled time a probe left.
    pub start_lateness_ms: Spread,
    /// The longest time between two turns of the prober's loop beyond what it had asked to sleep.
    pub largest_loop_gap_ms: f64,
    /// How long the connect call took.
    pub connect_call_ms: Spread,
    /// User-space time minus kernel time of the same probe; `None` where the kernel gave none.
    pub user_minus_kernel_ms: Option<Spread>,
    /// Handshakes with a listener on the loopback interface, program's clock; `None` when there was no control.
    pub control_ms: Option<Spread>,
    /// Slots of the schedule that had passed before the prober came to them.
    pub missed: u64,
    /// Answers that came after the time-out.
    pub late: u64,
    /// Probes that this machine could not send or that were refused; in no other figure.
    pub failed: u64,
    /// The scheduling class of the prober's thread.
    pub scheduler: String,
}

/// Both directions of the emulated line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineRecord {
    /// Towards the server.
    pub up: DirectionRecord,
    /// Towards the client.
    pub down: DirectionRecord,
    /// How late the emulator delivered packets after their due time, since the start of the run.
    pub relay_lateness_ms: Spread,
}

/// One direction of the emulated line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionRecord {
    /// Packets that came out.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    /// Packets that met a full queue.
    pub queue_drops: u64,
    /// Packets lost at random, as asked.
    pub random_losses: u64,
    /// Packets that the emulator failed to take in, to send on or to carry: errors of the emulation.
    pub emulation_drops: u64,
    /// The longest queue since the start of the run, as time at the line's rate.
    pub largest_backlog_ms: f64,
}

/// Every probe of a phase, one array per column, in the order of sending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleColumns {
    /// When it was due, since the start of the measured part.
    pub t_ms: Vec<f64>,
    /// The kernel's RTT; `None` where lost or unknown.
    pub kernel_ms: Vec<Option<f64>>,
    /// The program's own time; `None` = lost.
    pub user_ms: Vec<Option<f64>>,
    /// How often its SYN was sent again.
    pub retransmits: Vec<u8>,
}

/// What the shaper said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShaperRecord {
    /// Its first line.
    pub ready: String,
    /// Its status lines, one per second.
    pub status: Vec<String>,
}
