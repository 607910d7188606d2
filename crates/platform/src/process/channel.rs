//! A pair of connected sockets that keep message boundaries (SOCK_SEQPACKET), one end for each process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What a read gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// One message.
    Message(Vec<u8>),
    /// Nothing waits.
    Nothing,
    /// The other end is closed: its process is gone or has hung up.
    Closed,
}

/// One end. No call on it ever blocks.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
}

impl Channel {
    /// Both ends, closed on exec.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn pair() -> io::Result<(Self, Self)> {
        let mut raw = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: `raw` has room for the two descriptors.
        let rc = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, raw.as_mut_ptr()) };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both are fresh descriptors that nothing else owns.
        Ok(unsafe { (Self { fd: OwnedFd::from_raw_fd(raw[0]) }, Self { fd: OwnedFd::from_raw_fd(raw[1]) }) })
    }

    /// The end that this process got as its standard input from [`super::Worker::start`].
    ///
    /// # Errors
    /// When standard input is no such socket: the process was started by hand.
    pub fn from_standard_input() -> io::Result<Self> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        let mut kind: libc::c_int = 0;
        let mut len = 4;
        // SAFETY: `kind` is valid and writable for the length passed.
        let rc = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TYPE,
                (&raw mut kind).cast(),
                &raw mut len,
            )
        };
        if rc < 0 || kind != libc::SOCK_SEQPACKET {
            return Err(io::Error::other("standard input is not a supervisor's channel"));
        }
        Ok(Self { fd })
    }

    /// The descriptor, to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Sends one message; `false` when the other end does not read or is gone, and then it is lost.
    pub fn send(&self, message: &[u8]) -> bool {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), message.as_ptr().cast(), message.len(), flags) };
        sent >= 0
    }

    /// Takes one message of at most 4096 bytes.
    pub fn receive(&self) -> Received {
        let mut buffer = vec![0u8; 4096];
        loop {
            // SAFETY: the buffer is valid and writable for its length.
            let got = unsafe {
                libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            match got {
                0 => return Received::Closed,
                1.. => {
                    buffer.truncate(got as usize);
                    return Received::Message(buffer);
                }
                _ => match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Received::Nothing,
                    _ => return Received::Closed,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_boundaries_and_the_end_is_seen() {
        let (a, b) = Channel::pair().unwrap();
        assert_eq!(b.receive(), Received::Nothing);
        assert!(a.send(b"one") && a.send(b"two"));
        assert_eq!(b.receive(), Received::Message(b"one".to_vec()));
        drop(a);
        assert_eq!(b.receive(), Received::Message(b"two".to_vec()));
        assert_eq!(b.receive(), Received::Closed);
        assert!(!b.send(b"nobody reads this"));
    }

    #[test]
    fn a_full_channel_loses_messages_instead_of_blocking() {
        let (a, _b) = Channel::pair().unwrap();
        let sent = (0..100_000).take_while(|_| a.send(&[0; 64])).count();
        assert!(sent > 0 && sent < 100_000, "{sent}");
    }
}
