//! The far end of a measurement: bulk load and echoes over TCP, echoes over UDP, all on one port.

use crate::echo::EchoServer;
use crate::load::{LoadError, Policy, Server, handover};
use platform::udp::UdpSocket;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// A running far end. Dropping it stops it.
#[derive(Debug)]
pub struct FarEnd {
    load: Server,
    echo: EchoServer,
}

/// Why there is no far end.
#[derive(Debug, Error)]
pub enum ServeError {
    /// It cannot listen.
    #[error("cannot listen on {protocol} {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A thread or a descriptor is missing, or the load's part said no.
    #[error("{0}")]
    Load(LoadError),
    /// The echo's thread.
    #[error("echo server: {0}")]
    Echo(io::Error),
}

impl ServeError {
    /// Whether the machine does not have this family of addresses at all.
    pub fn is_no_such_family(&self) -> bool {
        let Self::Listen { source, .. } = self else { return false };
        // Linux: EAFNOSUPPORT is "unsupported", EADDRNOTAVAIL what a disabled IPv6 says.
        matches!(source.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        let Self::Listen { source, .. } = self else { return "try again; if it stays, please report it" };
        match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another program has this port: end it, or choose another one with --listen ADDRESS:PORT"
            }
            io::ErrorKind::AddrNotAvailable => "--listen takes an address of this machine: see `ip address`",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 are for root: choose one above with --listen"
            }
            _ => "choose another address or port with --listen ADDRESS:PORT",
        }
    }
}

impl FarEnd {
    /// Listens on `address` (port 0: one that is free) by TCP and UDP and serves whom `policy` admits.
    ///
    /// # Errors
    /// When it cannot listen there, or the system gives no thread.
    pub fn start(address: SocketAddr, policy: Policy) -> Result<Self, ServeError> {
        let (pass, take) = handover().map_err(ServeError::Echo)?;
        let load = Server::start_with(address, policy, Some(pass)).map_err(|error| match error {
            LoadError::Listen { address, source } => ServeError::Listen { address, protocol: "TCP", source },
            error => ServeError::Load(error),
        })?;
        let address = load.address();
        let refused = |source| ServeError::Listen { address, protocol: "UDP", source };
        let udp = UdpSocket::bind(address).map_err(refused)?;
        let echo = EchoServer::start(udp, take).map_err(ServeError::Echo)?;
        Ok(Self { load, echo })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.load.address()
    }

    /// Payload that clients have uploaded so far.
    pub fn received_bytes(&self) -> u64 {
        self.load.series().latest().received.get()
    }

    /// Whether all of it goes on.
    ///
    /// # Errors
    /// What has ended a part of it.
    pub fn check(&mut self) -> Result<(), ServeError> {
        self.load.check().map_err(ServeError::Load)?;
        self.echo.check().map_err(ServeError::Echo)
    }
}
