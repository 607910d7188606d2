//! What made the tail: a queue, loss with retransmission, both, spikes, two routes, or nothing.
//!
//! A bad p99 has causes that want opposite cures. A queue spreads latency continuously as it fills and drains; a
//! lost handshake comes back one retransmission timeout later and leaves an empty gap beneath it.
//!
//! ```text
//! probes -> counters? --yes--> retransmitted probes taken out by the kernel's own count
//!              |no
//!              +-> gap (is it one?) -> ladder (which timeout?) -> evidence (or a second route, or anything?)
//!                                                                        |
//!          label <- routes, queue, spikes of what is left (body) <-------+
//! ```
//!
//! Retransmit counters decide where there are some: on Linux they agreed with the slow probes in 11,985 of
//! 11,985 cases. The shape of the distribution decides only where no counter exists.

mod alternatives;
mod body;
mod counters;
mod density;
mod evidence;
mod gap;
mod ladder;
mod retransmission;
mod routes;
mod stickiness;
mod why;

use crate::{Loss, MIN_SAMPLES, loss};
use body::{Body, Shape};
use retransmission::Retransmissions;

pub use gap::Gap;
pub use ladder::Backoff;

/// One probe as the classifier sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// When it was sent, in ms from the start of the run.
    pub at_ms: f64,
    /// Its round trip in ms; `None` when no answer came.
    pub rtt_ms: Option<f64>,
    /// How often the system sent it again; `None` where nothing counted that.
    pub retransmits: Option<u8>,
}

/// What made the tail of a latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TailLabel {
    /// Nothing worth a name.
    Clean,
    /// A queue fills and drains.
    QueueBuildup,
    /// Probes were lost and sent again.
    LossRetransmit,
    /// A queue, and loss with retransmission.
    Mixed,
    /// Few samples far out: radio, scans, a busy machine.
    Spikes,
    /// The probes took two or more routes.
    BimodalRoute,
    /// Too few samples to say.
    Insufficient,
}

impl TailLabel {
    /// Every label, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Clean,
        Self::QueueBuildup,
        Self::LossRetransmit,
        Self::Mixed,
        Self::Spikes,
        Self::BimodalRoute,
        Self::Insufficient,
    ];

    /// The word for it in run documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::QueueBuildup => "queue_buildup",
            Self::LossRetransmit => "loss_retransmit",
            Self::Mixed => "mixed",
            Self::Spikes => "spikes",
            Self::BimodalRoute => "bimodal_route",
            Self::Insufficient => "insufficient",
        }
    }
}

/// Which evidence decided on retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The system's retransmit counters.
    Counters,
    /// The shape of the distribution: no counters were there.
    Shape,
}

impl Basis {
    /// The word for it in run documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Shape => "shape",
        }
    }
}

/// The classifier's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// What made the tail.
    pub label: TailLabel,
    /// One sentence with the figures behind the label.
    pub why: String,
    /// Which evidence decided on retransmission.
    pub basis: Basis,
    /// Probes, lost ones included.
    pub n: usize,
    /// Probes without an answer.
    pub lost: usize,
    /// Probes that were sent again.
    pub retransmits: usize,
    /// The timeout of the retransmissions in ms.
    pub rto_ms: Option<f64>,
    /// How the timeout grows from one attempt to the next.
    pub backoff: Option<Backoff>,
    /// The share of probes that were sent again or lost, with its interval.
    pub affected: Loss,
    /// The empty range beneath the retransmitted probes.
    pub gap: Option<Gap>,
}

/// Names the cause of the tail of a run; `idle_rtt_ms` are round trips of the same path without load, or empty.
///
/// Values that are not finite or negative count as lost.
pub fn classify(probes: &[Probe], idle_rtt_ms: &[f64]) -> Classification {
    let found = counters::retransmissions(probes);
    let basis = if found.is_some() { Basis::Counters } else { Basis::Shape };
    let enough = probes.len() >= MIN_SAMPLES;
    let found = found.unwrap_or_else(|| {
        if enough { retransmission::by_shape(probes) } else { Retransmissions::none(probes.len()) }
    });
    let body = Body::new(probes, &found.retransmitted, idle_rtt_ms);
    let affected: Vec<bool> = probes
        .iter()
        .zip(&found.retransmitted)
        .map(|(probe, &again)| again || answer(probe).is_none())
        .collect();
    let lost = probes.iter().filter(|probe| answer(probe).is_none()).count();
    let lossy = found.count() > 0 || lost >= LOST_MEANS_LOSS;
    let shape = body.shape(lossy);
    let label = if enough { label(&shape, lossy, body.len()) } else { TailLabel::Insufficient };
    let mut result = Classification {
        label,
        why: String::new(),
        basis,
        n: probes.len(),
        lost,
        retransmits: found.count(),
        rto_ms: found.rto_ms,
        backoff: found.backoff,
        affected: loss(&affected),
        gap: found.gap,
    };
    result.why = why::why(&result, &body, &shape);
    result
}

/// A probe's round trip, if it has one that a clock can have measured.
fn answer(probe: &Probe) -> Option<f64> {
    probe.rtt_ms.filter(|rtt| rtt.is_finite() && *rtt >= 0.0)
}

/// One probe that never came back may have met a router's mood; two are loss.
const LOST_MEANS_LOSS: usize = 2;
/// Below this many answers the body has no shape.
const MIN_BODY: usize = 10;

fn label(shape: &Shape, lossy: bool, body: usize) -> TailLabel {
    match shape {
        _ if body < MIN_BODY && lossy => TailLabel::LossRetransmit,
        _ if body < MIN_BODY => TailLabel::Insufficient,
        Shape::Queue(_) if lossy => TailLabel::Mixed,
        _ if lossy => TailLabel::LossRetransmit,
        Shape::Queue(_) => TailLabel::QueueBuildup,
        Shape::Routes(_) => TailLabel::BimodalRoute,
        Shape::Spikes(_) => TailLabel::Spikes,
        Shape::Plain => TailLabel::Clean,
    }
}
