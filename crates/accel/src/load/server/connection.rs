//! One connection of the server.

use crate::load::block::BlockWriter;
use crate::load::policy::Way;
use crate::load::report::Report;
use crate::load::series::Sent;
use crate::load::transfer;
use platform::poll::Interest;
use platform::tcp::TcpSocket;
use std::io::{self, Write};
use std::net::IpAddr;
use units::{Bytes, Timestamp};

/// What a connection is for.
pub(super) enum State {
    /// The hello is incomplete so far.
    Greeting(Vec<u8>),
    Sink {
        received: Bytes,
        /// The rest of a report that the socket did not take.
        unsent: Vec<u8>,
    },
    Source(BlockWriter),
}

pub(super) struct Connection {
    pub(super) socket: TcpSocket,
    pub(super) state: State,
    /// Whose account it is on, once it has been greeted.
    pub(super) client: IpAddr,
    pub(super) last_moved: Timestamp,
    /// Waits for the next tick, since its client has used up its rate.
    pub(super) paused: bool,
}

impl Connection {
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.state, State::Greeting(_))
    }

    /// Which way its bulk data go.
    pub(super) fn way(&self) -> Way {
        if matches!(self.state, State::Source(_)) { Way::Out } else { Way::In }
    }

    /// What the poller has to look for.
    pub(super) fn interest(&self) -> Interest {
        if matches!(self.state, State::Source(_)) { Interest::READ_WRITE } else { Interest::READ }
    }

    /// Bulk data sent; a sink's reports are none.
    pub(super) fn sent(&self) -> Sent {
        match self.state {
            State::Source(_) => transfer::sent(&self.socket),
            State::Greeting(_) | State::Sink { .. } => Sent::default(),
        }
    }

    /// Tells the client what has come (sink) or gone (source) so far.
    pub(super) fn report(&mut self, now: Timestamp) -> io::Result<()> {
        match &mut self.state {
            State::Greeting(_) => Ok(()),
            State::Sink { received, unsent } => send_report(&self.socket, now, *received, unsent),
            State::Source(blocks) => {
                blocks.set_head(now, transfer::sent(&self.socket));
                Ok(())
            }
        }
    }
}

/// A new report is made only when the last one has left completely.
fn send_report(
    mut socket: &TcpSocket,
    now: Timestamp,
    received: Bytes,
    unsent: &mut Vec<u8>,
) -> io::Result<()> {
    if unsent.is_empty() {
        unsent.extend(Report { at: now, received }.encode());
    }
    match socket.write(unsent) {
        Ok(count) => drop(unsent.drain(..count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
