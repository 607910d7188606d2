//! The loopback control: an own listener to shake hands with, on the prober's own thread.

use platform::tcp::TcpSocket;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// A listener on 127.0.0.1. The kernel completes handshakes without it; it only has to clear its backlog.
///
/// It sees what the machine adds to a handshake without a network, but not all of it: over loopback the answer
/// is there before the thread can be held up.
pub(super) struct Control {
    listener: TcpSocket,
    address: SocketAddr,
}

/// More than can pile up between two wake-ups of the prober at any sensible period.
const BACKLOG: i32 = 128;

impl Control {
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpSocket::listen((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG)?;
        let address = listener.local_address()?;
        Ok(Self { listener, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn listener(&self) -> &TcpSocket {
        &self.listener
    }

    /// Takes and closes what has connected since. An ordinary close: a RST could reach the probe before the
    /// prober has looked at it. The RST that the probe then sends clears both ends.
    pub(super) fn clear_backlog(&self) -> io::Result<()> {
        while self.listener.accept()?.is_some() {}
        Ok(())
    }
}
