//! A second process of the same program, killed through its pidfd: a number is never reused under our hands.

use super::Channel;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running worker. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    pidfd: OwnedFd,
    channel: Channel,
}

impl Worker {
    /// Starts this program again with `arguments`. The new process finds its end of the channel as its standard
    /// input and shares only standard error with us.
    ///
    /// # Errors
    /// When the system has no room for a process, or /proc is not mounted.
    pub fn start(arguments: &[String]) -> io::Result<Self> {
        let (ours, theirs) = Channel::pair()?;
        // /proc/self/exe is this very file, even when it was replaced by an upgrade meanwhile.
        let mut child = Command::new("/proc/self/exe")
            .args(arguments)
            .stdin(Stdio::from(theirs.into_fd()))
            .stdout(Stdio::null())
            .spawn()?;
        match open_pidfd(child.id()) {
            Ok(pidfd) => Ok(Self { child, pidfd, channel: ours }),
            Err(error) => {
                // The process is ours and not yet waited for, so its number is still its own.
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Our end of the channel.
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Readable once the process has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Hangs up the channel, which tells the worker to end, and returns what is left to wait for.
    pub fn hang_up(mut self) -> io::Result<EndingWorker> {
        // The worker sees the end of the stream as soon as our last descriptor of it is closed.
        let (placeholder, _) = Channel::pair()?;
        drop(std::mem::replace(&mut self.channel, placeholder));
        Ok(EndingWorker(self))
    }

    /// Kills the worker, stopped or not, and waits for its end.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        // SAFETY: plain system call; the pidfd is open and no siginfo is passed.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), libc::SIGKILL, 0usize, 0);
        }
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Nothing better can be done with a failure here: the process is then init's to collect.
        let _ = self.kill();
    }
}

/// A worker that was told to end.
#[derive(Debug)]
pub struct EndingWorker(Worker);

impl EndingWorker {
    /// Readable once the process has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.0.exit_fd()
    }
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the returned descriptor is checked before it is owned.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a fresh descriptor that nothing else owns; descriptors fit an int.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as libc::c_int) })
}
