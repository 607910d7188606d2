//! Handshake probes on an open-loop schedule.
//!
//! ```text
//! Schedule (pure) -> connect() -> ppoll -> TCP_INFO -> Sample
//!                        \_____ start lateness, loop gap, call time, user - kernel -> Instrument
//! ```
//! Each probe is a TCP handshake. The estimate is the kernel's RTT of SYN and SYN-ACK; the time seen from user
//! space stands beside it, and their difference says how wrong the latter is on this machine. Probes leave when
//! the schedule says so, never because an answer came (closed-loop probing hides exactly the slow ones), and
//! never in a burst after a stall.

mod control;
mod instrument;
mod prober;
mod schedule;
#[cfg(test)]
mod tests;

pub use instrument::{ControlFigures, Instrument, Spread};
pub use platform::sched::Scheduler;
pub use prober::run;
pub(crate) use schedule::{Schedule, Step};

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use units::Timestamp;

/// A half-open span of time [start, end) on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First instant inside.
    pub start: Timestamp,
    /// First instant outside.
    pub end: Timestamp,
}

impl Window {
    /// The length; zero when the end is not after the start.
    pub fn length(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// Whether `at` lies inside.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

/// One host and port to shake hands with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What people call it.
    pub name: String,
    /// Where it listens; pinned for the whole run.
    pub address: SocketAddr,
    /// Whether the server is one's own: then a probe's connection ends with a RST, which leaves no TIME_WAIT on
    /// either side. Foreign servers get an ordinary close.
    pub own_server: bool,
}

/// What to probe, when, and how patiently.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    /// All probed side by side on one thread, each with its own schedule.
    pub targets: Vec<Target>,
    /// Mean time between two probes of one target; a foreign one is spared ([`FOREIGN_PERIOD`]).
    pub period: Duration,
    /// How far a probe may leave its regular time, as a share of the period, 0 to 0.5. At 0.5 the schedule
    /// cannot lock onto anything periodic.
    pub jitter: f64,
    /// A reply after this time is [`Outcome::Late`]; at least this long after the window's end, answers are
    /// still awaited.
    pub timeout: Duration,
    /// Seed of the schedule's jitter.
    pub seed: u64,
    /// When probes are sent.
    pub window: Window,
    /// Also probe an own listener on 127.0.0.1, to see what the machine itself adds.
    pub control: bool,
}

/// Shortest period for a server that is not one's own: ten handshakes a second are below what SYN limits take for an
/// attack, and a server's operator has not been asked.
pub const FOREIGN_PERIOD: Duration = Duration::from_millis(100);

impl ProbePlan {
    /// Mean time between two probes of `target`.
    pub fn period_of(&self, target: &Target) -> Duration {
        if target.own_server { self.period } else { self.period.max(FOREIGN_PERIOD) }
    }
}

/// How one probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handshake was completed within the timeout.
    Reply {
        /// From just before connect() to the moment this thread learned of the end.
        user: Duration,
        /// RTT by the kernel's clock, exact to 1 us; `None` when the SYN was retransmitted, since its RTT then
        /// says nothing about a queue.
        kernel: Option<Duration>,
        /// Retransmitted SYNs.
        retransmits: u8,
    },
    /// Completed, but after the timeout: not lost, and too late for whoever waits.
    Late {
        /// As in `Reply`.
        user: Duration,
        /// As in `Reply`.
        retransmits: u8,
    },
    /// Answered with a RST: the host is there, the port is closed. Not mixed with handshakes.
    Refused {
        /// As in `Reply`.
        user: Duration,
        /// As in `Reply`.
        retransmits: u8,
    },
    /// No answer came: not within the timeout, and not later as long as the run went on (twice the timeout at
    /// most).
    Lost {
        /// As in `Reply`.
        retransmits: u8,
    },
    /// The network or this machine said that it cannot be done (no route, descriptors used up).
    Failed {
        /// What the system said.
        error: io::ErrorKind,
    },
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index into [`ProbePlan::targets`]; the number of targets for the loopback control.
    pub target: usize,
    /// When it was due.
    pub scheduled: Timestamp,
    /// When connect() was called.
    pub sent: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// The RTT on which queueing may be graded: the kernel's, else (on a system without it) the time seen from
    /// user space; `None` for a probe that was retransmitted, late, refused, lost or failed.
    pub fn clean_rtt(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Reply { user, kernel, retransmits: 0 } => Some(kernel.unwrap_or(user)),
            _ => None,
        }
    }

    /// The whole time until the answer as a connecting program sees it, retransmissions included; `None` when
    /// none came.
    pub fn connect_time(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Reply { user, kernel, .. } => Some(kernel.unwrap_or(user)),
            Outcome::Late { user, .. } => Some(user),
            Outcome::Refused { .. } | Outcome::Lost { .. } | Outcome::Failed { .. } => None,
        }
    }
}

/// All probes of one window and the instrument's own figures.
#[derive(Clone, Debug)]
pub struct ProbeResult {
    /// By scheduled time, then target.
    pub samples: Vec<Sample>,
    /// The `target` number of the loopback control, when there was one.
    pub control: Option<usize>,
    /// How well the instrument itself did.
    pub instrument: Instrument,
    /// Whether the run was cut short; the samples up to then are valid.
    pub cancelled: bool,
}

impl ProbeResult {
    /// The probes of real targets, without the loopback control.
    pub fn real_samples(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| Some(sample.target) != self.control)
    }
}

/// Why no probing took place.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The plan cannot be carried out.
    #[error("probe plan: {0}")]
    Plan(&'static str),
    /// The system refused something the prober cannot do without.
    #[error("prober: {operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl ProbeError {
    fn system(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { operation, source }
    }
}
