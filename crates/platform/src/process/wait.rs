//! Waiting for a few descriptors at once with one system call, and writing without waiting.

use crate::clock;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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

/// Writes `text` to standard output or standard error if that does not block; `false` when it was lost (the reader
/// is slow or gone). A text of at most 4096 bytes is written whole: so much is free when a pipe says it is writable.
pub fn print_without_blocking(to: &impl AsFd, text: &str) -> bool {
    let fd = to.as_fd().as_raw_fd();
    let mut entry = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `entry` is valid for the call and the only entry.
    let ready = unsafe { libc::poll(&raw mut entry, 1, 0) };
    if ready != 1 || entry.revents & libc::POLLOUT == 0 {
        return false;
    }
    // SAFETY: the text is valid for its length.
    let written = unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
    written == text.len() as isize
}

/// Opens a file to append to, so that neither opening nor writing ever waits for the reader of a named pipe: without
/// one the opening fails, and what does not fit fails with [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// When it cannot be opened for appending.
pub fn append_without_blocking(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
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

    #[test]
    fn a_text_is_written_lost_or_refused_but_never_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        assert!(print_without_blocking(&writer, "here"));
        let mut text = [0; 4];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"here");
        // A pipe holds 64 KB; nobody reads.
        let written = (0..1_000).take_while(|_| print_without_blocking(&writer, &"x".repeat(1_000))).count();
        assert!((1..1_000).contains(&written), "{written}");
        drop(reader);
        assert!(!print_without_blocking(&writer, "nobody reads this"));
    }
}
