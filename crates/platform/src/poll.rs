//! Waiting for descriptors until a point in time.
//!
//! epoll keeps the set, so that thousands of connections cost nothing while they are silent; ppoll on the epoll
//! descriptor gives the deadline in nanoseconds (epoll_wait counts whole milliseconds, epoll_pwait2 needs
//! Linux 5.11).

use crate::clock;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;
use units::Timestamp;

/// What to wait for on a descriptor; errors and hang-ups are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    mask: u32,
}

impl Interest {
    /// Nothing for the moment; the descriptor stays in the set.
    pub const NONE: Self = Self { mask: 0 };
    /// Data (or the end of it) can be read, or a connection accepted.
    pub const READ: Self = Self { mask: libc::EPOLLIN as u32 };
    /// Data can be written, or a handshake has ended.
    pub const WRITE: Self = Self { mask: libc::EPOLLOUT as u32 };
    /// Either.
    pub const READ_WRITE: Self = Self { mask: libc::EPOLLIN as u32 | libc::EPOLLOUT as u32 };
}

/// One descriptor that is ready. Readiness is level-triggered: what is not consumed is reported again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number given to [`Poller::add`].
    pub token: u64,
    /// Reading will not block (it may report an error or the end).
    pub readable: bool,
    /// Writing will not block (it may report an error).
    pub writable: bool,
}

/// Most events one wait returns; the rest comes with the next one.
const MAX_EVENTS: usize = 256;

/// A set of descriptors to wait for. A descriptor leaves the set when it is closed.
pub struct Poller {
    epoll: OwnedFd,
    raw: Vec<libc::epoll_event>,
    events: Vec<Event>,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed; the result is checked before use.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is a fresh descriptor that nothing else owns.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let raw = vec![libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS];
        Ok(Self { epoll, raw, events: Vec::with_capacity(MAX_EVENTS) })
    }

    /// Adds a descriptor; its events carry `token`.
    ///
    /// # Errors
    /// When it is in the set already, or is a plain file.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), token, interest)
    }

    /// Changes token and interest of a descriptor in the set.
    ///
    /// # Errors
    /// When it is not in the set.
    pub fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), token, interest)
    }

    /// Takes a descriptor out of the set that stays open.
    ///
    /// # Errors
    /// When it is not in the set.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), 0, Interest::NONE)
    }

    fn control(&self, operation: i32, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.mask, u64: token };
        // SAFETY: both descriptors are open by their types; `event` is valid for the duration of the call.
        let rc =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until a descriptor is ready, `deadline` has passed or a signal came; the events, none in the
    /// latter two cases. Never wakes early otherwise, never spins.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which a valid set never causes.
    pub fn wait(&mut self, deadline: Timestamp) -> io::Result<&[Event]> {
        self.events.clear();
        if wait_readable(self.epoll.as_fd(), deadline)? {
            self.collect()?;
        }
        Ok(&self.events)
    }

    fn collect(&mut self) -> io::Result<()> {
        // SAFETY: the kernel writes at most `MAX_EVENTS` entries into `raw`, which has that length.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.raw.as_mut_ptr(), MAX_EVENTS as i32, 0) };
        let Ok(count) = usize::try_from(count) else {
            return ignore_interrupt(io::Error::last_os_error());
        };
        for raw in &self.raw[..count] {
            let (mask, token) = (raw.events, raw.u64);
            let failed = mask & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            let readable = failed || mask & libc::EPOLLIN as u32 != 0;
            let writable = failed || mask & libc::EPOLLOUT as u32 != 0;
            self.events.push(Event { token, readable, writable });
        }
        Ok(())
    }
}

/// Waits until `fd` is readable (or has failed) or `deadline` has passed; whether it is readable. A signal ends
/// the wait like a deadline.
///
/// # Errors
/// When the kernel refuses to wait.
pub fn wait_readable(fd: BorrowedFd<'_>, deadline: Timestamp) -> io::Result<bool> {
    let left = deadline.saturating_since(clock::now());
    let timeout = timespec(left);
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `entry` and `timeout` are valid for the call, one entry is announced, no signal mask is given.
    let count = unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, std::ptr::null()) };
    if count < 0 {
        return ignore_interrupt(io::Error::last_os_error()).map(|()| false);
    }
    Ok(count > 0)
}

fn ignore_interrupt(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

fn timespec(span: Duration) -> libc::timespec {
    // Saturates: a deadline of "never" is 584 years away, which fits.
    let tv_sec = libc::time_t::try_from(span.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: span.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_deadline_is_never_cut_short() {
        let mut poller = Poller::new().unwrap();
        let deadline = clock::now() + Duration::from_micros(2_300);
        assert!(poller.wait(deadline).unwrap().is_empty());
        assert!(clock::now() >= deadline);
        assert!(poller.wait(Timestamp::ZERO).unwrap().is_empty(), "a past deadline returns at once");
    }

    #[test]
    fn readiness_is_reported_until_it_is_consumed() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&near, 3, Interest::READ).unwrap();
        far.write_all(b"x").unwrap();
        for _ in 0..2 {
            let events = poller.wait(clock::now() + Duration::from_secs(10)).unwrap();
            assert_eq!(events, [Event { token: 3, readable: true, writable: false }]);
        }
        (&near).read_exact(&mut [0]).unwrap();
        assert!(poller.wait(clock::now()).unwrap().is_empty());
        poller.change(&near, 4, Interest::READ_WRITE).unwrap();
        let events = poller.wait(clock::now() + Duration::from_secs(10)).unwrap();
        assert_eq!(events, [Event { token: 4, readable: false, writable: true }]);
    }

    #[test]
    fn a_closed_descriptor_leaves_the_set_and_a_hang_up_is_readable() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&near, 1, Interest::READ).unwrap();
        drop(far);
        assert!(poller.wait(clock::now() + Duration::from_secs(10)).unwrap()[0].readable);
        drop(near);
        assert!(poller.wait(clock::now()).unwrap().is_empty());
    }

    #[test]
    fn one_descriptor_can_be_waited_for_alone() {
        let (near, mut far) = UnixStream::pair().unwrap();
        assert!(!wait_readable(near.as_fd(), clock::now() + Duration::from_millis(1)).unwrap());
        far.write_all(b"x").unwrap();
        assert!(wait_readable(near.as_fd(), Timestamp::MAX).unwrap());
    }
}
