//! One connection of the echo: frames to send back, or a session of datagrams that it keeps alive.

use super::session::Arrivals;
use crate::echo::{FRAME_BYTES, Session};
use crate::load::Place;
use platform::tcp::TcpSocket;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use units::Timestamp;

/// Frames that are read in one turn; so much waits to be sent back at most.
const READ_BYTES: usize = 64 * FRAME_BYTES;

pub(super) enum Kind {
    Echo { partial: Vec<u8>, unsent: Vec<u8> },
    Datagrams { session: Session, peer: IpAddr, arrivals: Arrivals },
}

pub(super) struct Connection {
    pub(super) socket: TcpSocket,
    pub(super) kind: Kind,
    pub(super) last_moved: Timestamp,
    /// On the client's account while the connection lasts.
    pub(super) _place: Place,
}

impl Connection {
    /// Moves what can be moved; whether the connection goes on.
    pub(super) fn advance(&mut self, now: Timestamp) -> io::Result<bool> {
        if !self.flush()? {
            return Ok(true);
        }
        let mut buffer = [0; READ_BYTES];
        let count = match (&self.socket).read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if is_for_later(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        if let Kind::Echo { partial, unsent } = &mut self.kind {
            self.last_moved = now;
            partial.extend_from_slice(&buffer[..count]);
            // Only whole frames go back: a piece of an answer would carry the acknowledgement that the client's next
            // piece waits for, and hide what is to be seen.
            let whole = partial.len() / FRAME_BYTES * FRAME_BYTES;
            unsent.extend(partial.drain(..whole));
        }
        self.flush().map(|_| true)
    }

    /// Whether frames wait for room in the socket.
    pub(super) fn is_full(&self) -> bool {
        matches!(&self.kind, Kind::Echo { unsent, .. } if !unsent.is_empty())
    }

    /// Sends what waits; whether all of it has gone.
    fn flush(&mut self) -> io::Result<bool> {
        let Kind::Echo { unsent, .. } = &mut self.kind else { return Ok(true) };
        if unsent.is_empty() {
            return Ok(true);
        }
        match (&self.socket).write(unsent) {
            Ok(count) => drop(unsent.drain(..count)),
            Err(error) if is_for_later(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(unsent.is_empty())
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
