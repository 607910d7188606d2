//! Bulk load in both directions, with goodput counted at the receiver.
//!
//! ```text
//! Client                                        Server
//!   upload flow    --- data -------------------> sink     counts, and reports back every 100 ms
//!   download flow  <-- data -------------------- source   sends as fast as the window allows
//! ```
//! What a sender has written says little (its socket buffer holds seconds of a slow line), so goodput is what
//! the receiving program has read. Every 100 ms each end notes its cumulative [`Counters`]; a [`Series`] of
//! them answers for any window afterwards, so that ramp and measurement stay apart without anybody having to
//! be there at the right moment. The threads have normal priority: they must never hold up the prober.

mod block;
mod client;
mod hello;
mod policy;
mod report;
mod series;
mod server;
mod token;
mod transfer;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientRecord, LoadPlan};
pub(crate) use hello::{Answer, Hello, Role};
pub use policy::Policy;
pub use series::{Counters, Sent, Series};
pub use server::Server;
pub(crate) use server::{Greeted, Place, Takeover, handover};
pub use token::Token;

use platform::tcp::available_congestion_controls;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// How often counters are noted and uploads reported.
pub const TICK: Duration = Duration::from_millis(100);
/// The longest that a thread sleeps, hence the time within which a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Unsent data that a sending socket holds at most; more would only cost memory.
const NOT_SENT_LOW_WATER_BYTES: u32 = 256 * 1024;

/// Why there is no load, or no more.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No congestion control of this name.
    #[error("congestion control '{name}' is not known to this kernel; it offers: {}", available.join(", "))]
    UnknownCongestion {
        /// What was asked for.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
    /// The name is known but reserved.
    #[error(
        "congestion control '{name}' is not open to ordinary users here; run as root, or add it to the sysctl \
         net.ipv4.tcp_allowed_congestion_control; this kernel offers: {}", available.join(", ")
    )]
    ReservedCongestion {
        /// What was asked for.
        name: String,
        /// What there is, reserved ones included.
        available: Vec<String>,
    },
    /// The server cannot listen.
    #[error("load server: listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The client cannot connect.
    #[error("load: connect to {server}: {source}")]
    Connect {
        /// To whom.
        server: SocketAddr,
        /// The system's answer; `TimedOut` when none came.
        source: io::Error,
    },
    /// A flow ended although nobody stopped it.
    #[error("load: the {flow} with {server} broke off: {source}")]
    BrokenOff {
        /// Which flow, such as "upload 2".
        flow: String,
        /// With whom.
        server: SocketAddr,
        /// The system's answer; `UnexpectedEof` when the server closed it.
        source: io::Error,
    },
    /// The server does not want this client, or not now.
    #[error("load: {server} {reason}")]
    TurnedAway {
        /// Who.
        server: SocketAddr,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// No flow brought anything for a long time.
    #[error("load: nothing came from {server} for {} s", silence.as_secs())]
    Silent {
        /// From whom.
        server: SocketAddr,
        /// For how long.
        silence: Duration,
    },
    /// The system refused something else.
    #[error("load: {operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl Answer {
    /// What a refusal means for whoever typed the command; `None` for an acceptance.
    pub(crate) const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Accepted => None,
            Self::WrongToken => {
                Some("wants another token: give the one that `accel serve` printed with --token")
            }
            Self::TooMany => {
                Some("serves too many connections already: try later, use fewer --flows, or raise its limits")
            }
            Self::NoCongestion => {
                Some("does not have this congestion control, or keeps it for root: choose --cc")
            }
            Self::NotOffered => Some("does not offer this: it is older or of another kind"),
        }
    }
}

impl LoadError {
    fn system(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { operation, source }
    }

    /// Explains why a congestion control was refused.
    fn congestion(name: &str, source: io::Error) -> Self {
        let available = available_congestion_controls().unwrap_or_default();
        let name = name.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::ReservedCongestion { name, available },
            io::ErrorKind::NotFound => Self::UnknownCongestion { name, available },
            _ => Self::System { operation: "choose the congestion control", source },
        }
    }
}
