//! The shaper engine: FlowQueue-CoDel (RFC 8289, RFC 8290) behind a credit pacer, as a pure state machine.
//!
//! ```text
//! push(now, Packet) -> FlowTable: hash -> queue  -> over the buffer? head-drop the fattest queue (Overflow)
//!                           |
//!   NEW list (sparse flows) o-o          DRR++ picks a queue, CoDel judges its head packet,
//!   OLD list (bulk flows)   o-o-o-o      the pacer says when
//!   express lane            o            small packets that found their queue empty: out of turn, a little ahead
//!                           |            of the pacer's time, paid from the same deficit and the same pacer
//!   priority tier           o            marked flows: out of turn within bounds, paid from the same deficit
//!   ACK lane                o            pure ACKs: past the queues, a little ahead of the pacer's time, paid to it
//! poll(now) -> Send{handle, mark} | Drop{handle, reason} | WaitUntil(t) | Idle
//! ```
//!
//! The caller owns the packets: the engine holds an opaque handle for each (an NFQUEUE id, a buffer index, a test's
//! number) and hands every one back exactly once, as `Send`, as `Drop` or from [`Shaper::drain`]. It polls until
//! `WaitUntil` or `Idle`, after each push and at each wake-up.
//!
//! Invariants, each with a property test:
//! * Conservation: enqueued = sent + dropped + drained + held, at any time.
//! * Order: the packets of one flow leave in the order in which they came; only pure ACKs may overtake the others.
//! * Rate: over any window of length t the wire bytes sent are at most `rate * t` plus one burst, which is twice
//!   the credit, the largest packet (at least one MTU) and one small packet ([`EXPRESS_BYTES`]).
//! * A marked flow costs the others no more than the tier's limit, once.
//! * No starvation: every listed queue gets its quantum once a round; whoever polls as asked gets every packet back.
//! * The steady state allocates nothing; the same calls give the same answers.
//!
//! Beside the shaper: [`rtt`] reads round trips off the packets that pass, [`clamp`] keeps downloads short of a queue.
//!
//! Where RFC 8289/8290 leave room or this engine differs from them, the module that does so says why.

mod ack;
pub mod clamp;
mod codel;
mod config;
mod fair_queue;
mod flow_table;
mod histogram;
mod overhead;
mod pacer;
mod packet;
mod queue_list;
pub mod rtt;
mod shaper;
mod stats;
mod store;
mod tier;

pub use config::{EXPRESS_BYTES, MIN_RATE, MTU_BYTES, ShaperConfig};
pub use histogram::Histogram;
pub use overhead::{Framing, Overhead, ParseOverheadError};
pub use packet::{Class, Packet};
pub use shaper::{Backlog, DropReason, Poll, Shaper};
pub use stats::{Count, Stats};
