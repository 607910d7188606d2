//! An emulated line in real time: two hosts with the machine's own kernel TCP, a link of known rate, delay and
//! queue between them.
//!
//! ```text
//!  client namespace            relay namespace                 server namespace
//!  198.18.0.2  wan0 -- veth -- line0 -> up:   lab::Link -> line1 -- veth -- eth0  198.19.0.2
//!                              line0 <- down: lab::Link <- line1
//! ```
//! One relay thread takes frames from one veth's packet ring, lets [`lab::Link`] decide when they arrive, and sends
//! them by the other. The kernel stamps each frame at its arrival, so the link's clock is exact even when the thread
//! wakes late; how late it delivers is measured ([`DirectionCounters::lateness`]). A frame that waits in the link
//! has left its host for good, so TCP Small Queues does not hold the sender back: the queue fills as on a real line.
//!
//! Nothing has a name outside of the process and nothing is pinned: the namespaces end with the emulator, or with the
//! process, however that ends. No privilege is needed where the system allows user namespaces to everybody.

mod capture;
mod counters;
mod direction;
mod pool;
mod relay;
mod settings;
mod topology;

pub use capture::{Handshake, HandshakeCapture};
pub use counters::{DirectionCounters, EmulatorCounters, Lateness, PUBLISH_PERIOD};
pub use settings::RefusedSetting;

use lab::LinkConfig;
use platform::links::OffloadError;
use platform::namespace::{self, Namespace, NamespaceError};
use platform::netlink::NetlinkError;
use platform::sched::Scheduler;
use relay::Relay;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use topology::Topology;

/// What the line does in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmulatorConfig {
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
}

/// Why there is no emulated line. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The system forbids or lacks something; the message says what to type.
    #[error("cannot emulate a line here: {0}")]
    Refused(#[from] NamespaceError),
    /// An interface could not be set up.
    #[error("cannot emulate a line here: {0}")]
    Link(#[from] NetlinkError),
    /// Segmentation in the device could not be switched off.
    #[error("cannot emulate a line here: {0}")]
    Offload(#[from] OffloadError),
    /// The relay could not start.
    #[error("cannot start the relay of the emulated line: {0}")]
    Relay(#[from] io::Error),
}

/// A running emulated line.
#[derive(Debug)]
pub struct Emulator {
    topology: Topology,
    relay: Relay,
    refused_settings: Vec<RefusedSetting>,
}

impl Emulator {
    /// The client's address; the server is behind its default route.
    pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
    /// The server's address.
    pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 2);
    /// The client's IPv6 address.
    pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 18, 0, 0, 0, 2);
    /// The server's IPv6 address.
    pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 19, 0, 0, 0, 2);
    /// The client's interface to the line: what a shaper on the client's side shapes.
    pub const CLIENT_INTERFACE: &str = "wan0";

    /// Builds the line and starts it. A process without the privilege moves into a user namespace of its own for
    /// good, which needs it to be single-threaded at this point.
    ///
    /// # Errors
    /// When the system forbids it; the message says which rule does and what to type.
    pub fn start(config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        if !namespace::is_privileged() {
            namespace::enter_user_namespace()?;
        }
        let topology = Topology::build()?;
        let refused_settings = settings::apply([&topology.client, &topology.server]);
        let relay = Relay::start(&topology.relay, config)?;
        Ok(Self { topology, relay, refused_settings })
    }

    /// Where the client's programs run.
    pub fn client(&self) -> &Namespace {
        &self.topology.client
    }

    /// Where the server runs.
    pub fn server(&self) -> &Namespace {
        &self.topology.server
    }

    /// Whether the line carries IPv6 too; the kernel may be without it.
    pub fn has_ipv6(&self) -> bool {
        self.topology.ipv6
    }

    /// What the line and the relay have done, as of at most [`PUBLISH_PERIOD`] ago.
    pub fn counters(&self) -> EmulatorCounters {
        self.relay.counters()
    }

    /// How the relay thread is scheduled.
    pub fn scheduler(&self) -> Scheduler {
        self.relay.scheduler()
    }

    /// Settings of the two hosts that the system did not let us change.
    pub fn refused_settings(&self) -> &[RefusedSetting] {
        &self.refused_settings
    }
}

#[cfg(test)]
mod tests;
