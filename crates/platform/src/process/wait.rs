//! Waiting for a few descriptors at once with one system call, and printing without waiting.

use crate::clock;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use units::Timestamp;

/// Waits until one of `fds` is readable (or has failed, or is hung up) or `deadline` has passed; says which are.
/// A signal ends the wait like a deadline. Never spins. [`crate::poll::Poller`] is for many descriptors; on the
/// packet path its second system call would show.
///
/// # Errors
/// When the kernel refuses to wait.
pub fn wait_any<const N: usize>(fds: [BorrowedFd<'_>; N], deadline: Timestamp) -> io::Result<[bool; N]> {
    let left = deadline - clock::now();
    // "Never" is 584 years away, which fits a time_t.
    let timeout =
        libc::timespec { tv_sec: left.as_secs() as libc::time_t, tv_nsec: left.subsec_nanos().into() };
    let mut entries = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: `entries` and `timeout` are valid for the call, N entries are announced, no signal mask is given.
    let count =
        unsafe { libc::ppoll(entries.as_mut_ptr(), N as libc::nfds_t, &raw const timeout, std::ptr::null()) };
    if count < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok([false; N]) } else { Err(error) };
    }
    Ok(entries.map(|entry| entry.revents != 0))
}

/// Writes `text` to standard output if that does not block; `false` when it was lost (the reader is slow or
/// gone). A text of at most 4096 bytes is written whole: so much is free when a pipe says it is writable.
pub fn print_without_blocking(text: &str) -> bool {
    let mut entry = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `entry` is valid for the call and the only entry.
    let ready = unsafe { libc::poll(&raw mut entry, 1, 0) };
    if ready != 1 || entry.revents & libc::POLLOUT == 0 {
        return false;
    }
    // SAFETY: the text is valid for its length.
    let written = unsafe { libc::write(libc::STDOUT_FILENO, text.as_ptr().cast(), text.len()) };
    written == text.len() as isize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn says_which_is_ready_and_keeps_the_deadline() {
        let (a, _keep) = UnixStream::pair().unwrap();
        let (b, mut far) = UnixStream::pair().unwrap();
        let deadline = clock::now() + Duration::from_millis(2);
        assert_eq!(wait_any([a.as_fd(), b.as_fd()], deadline).unwrap(), [false, false]);
        assert!(clock::now() >= deadline);
        far.write_all(b"x").unwrap();
        assert_eq!(wait_any([a.as_fd(), b.as_fd()], Timestamp::MAX).unwrap(), [false, true]);
    }
}
