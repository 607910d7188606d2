//! Passing a greeted connection on to the thread that echoes: that thread must never wait for bulk data.

use crate::load::hello::Role;
use crate::load::policy::Clients;
use platform::tcp::TcpSocket;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// A connection whose hello has been accepted and answered.
pub(crate) struct Greeted {
    pub(crate) socket: TcpSocket,
    pub(crate) role: Role,
    /// The other end.
    pub(crate) peer: IpAddr,
    /// Gives the connection back to its client's account when it is dropped.
    pub(crate) place: Place,
}

/// One of the connections that a client may have.
pub(crate) struct Place {
    client: IpAddr,
    clients: Arc<Mutex<Clients>>,
}

impl Place {
    pub(super) fn new(client: IpAddr, clients: Arc<Mutex<Clients>>) -> Self {
        Self { client, clients }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).release(self.client);
    }
}

/// The end that passes connections on.
pub(crate) struct Handover {
    sender: Sender<Greeted>,
    wake: UnixStream,
}

/// The end that takes them; `wake` is readable when there are some.
pub(crate) struct Takeover {
    pub(crate) receiver: Receiver<Greeted>,
    pub(crate) wake: UnixStream,
}

/// Both ends.
///
/// # Errors
/// When the system has no descriptors left.
pub(crate) fn handover() -> io::Result<(Handover, Takeover)> {
    let (sender, receiver) = mpsc::channel();
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    Ok((Handover { sender, wake: near }, Takeover { receiver, wake: far }))
}

impl Handover {
    /// Passes a connection on; it is closed when nobody takes it any more.
    pub(super) fn pass(&mut self, greeted: Greeted) {
        // A full pipe wakes as well as a fuller one, and a thread that has ended takes nothing.
        if self.sender.send(greeted).is_ok() {
            drop(self.wake.write(&[1]));
        }
    }
}
