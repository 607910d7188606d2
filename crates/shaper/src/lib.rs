//! The shaper program: two processes, so that a fault in one leaves the network working.
//!
//! ```text
//! supervisor                                        worker
//!   args -> config                                    channel (standard input)
//!   rules' owner socket (rules vanish with it)        NFQUEUE socket
//!   starts, watches, kills  <--- hello, heartbeat,    pump: intake -> engine -> verdicts
//!   prints status lines          report -----------   ends when the channel is closed
//! ```
//! The supervisor installs the rules only after the worker has bound the queue. At the end it first stops queueing,
//! then lets the worker accept what it holds and go, then removes the rules. A worker that is silent for a second is killed and started
//! once more; after a second failure the rules go and traffic flows unshaped.

pub mod args;
pub mod classify;
pub mod command;
pub mod config;
mod error;
mod intake;
mod log;
mod message;
mod pump;
mod status;
pub mod supervisor;
pub mod worker;

pub use error::ShaperError;
pub use intake::Intake;
pub use pump::Pump;
