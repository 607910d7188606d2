//!
//! ```text
//! source -> engine::Shaper -> Link (FIFO -> transmitter -> loss -> delay, jitter) -> sink
//! ```
//! in real time between two network namespaces.

mod link;
mod pcg;

pub use link::{DropReason, Dropped, Link, LinkConfig, LinkPoll, LinkStats, QueueLimit};
pub use pcg::Pcg32;
