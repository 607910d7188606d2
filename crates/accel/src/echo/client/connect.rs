//! A connection with a role, greeted and answered.

use crate::load::{Answer, Hello, LoadError, Role, Token};
use platform::clock;
use platform::poll::{Interest, Poller, wait_readable};
use platform::tcp::TcpSocket;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// Shakes hands, says hello and waits for the answer, `patience` for all of it.
///
/// # Errors
/// When the server does not answer, or says no.
pub(super) fn connect(
    server: SocketAddr,
    token: Option<&Token>,
    role: Role,
    patience: Duration,
) -> Result<TcpSocket, LoadError> {
    let failed = |source| LoadError::Connect { server, source };
    let socket = TcpSocket::open(server).map_err(failed)?;
    let answer = greet(&socket, server, token, role, patience).map_err(failed)?;
    match Answer::of(answer).unwrap_or(Answer::NotOffered).refusal() {
        Some(reason) => Err(LoadError::TurnedAway { server, reason }),
        None => Ok(socket),
    }
}

fn greet(
    mut socket: &TcpSocket,
    server: SocketAddr,
    token: Option<&Token>,
    role: Role,
    patience: Duration,
) -> io::Result<u8> {
    let deadline = clock::now() + patience;
    // Nothing may trail behind a run on one's own server.
    socket.reset_on_close()?;
    socket.connect(server)?;
    let mut poller = Poller::new()?;
    poller.add(socket, 0, Interest::WRITE)?;
    while poller.wait(deadline)?.is_empty() {
        if clock::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    let token = token.map_or(Vec::new(), |token| token.as_bytes().to_vec());
    // The send buffer is empty and takes a few bytes whole.
    socket.write_all(&Hello { role, congestion: String::new(), token }.encode())?;
    let mut answer = [0];
    read_exact(socket, &mut answer, deadline)?;
    Ok(answer[0])
}

/// Reads until `buffer` is full, `deadline` at the latest.
pub(super) fn read_exact(
    mut socket: &TcpSocket,
    mut buffer: &mut [u8],
    deadline: units::Timestamp,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match socket.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !wait_readable(socket.as_fd(), deadline)? && clock::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
