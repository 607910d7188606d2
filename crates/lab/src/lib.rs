//! The virtual link and world, in virtual time.
//!
//! ```text
//! source -> engine::Shaper -> Link (FIFO -> transmitter -> loss -> delay, jitter) -> sink
//! ```
//! [`Link`] is a pure state machine: scenarios drive it in virtual time ([`world`]), and `accel` drives the same code
//! in real time between two network namespaces.
//!
//! [`replay`] takes a capture instead of a source.

mod link;
mod pcg;
pub mod replay;
pub mod world;

pub use link::{DropReason, Dropped, Link, LinkConfig, LinkPoll, LinkStats, QueueLimit};
pub use pcg::Pcg32;
