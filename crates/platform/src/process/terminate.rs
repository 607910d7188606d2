//! Asking a child process to end, now or when we do.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Lets the child that `command` starts get SIGTERM as soon as the thread that starts it ends, be it because the whole
/// process was killed (man 2 prctl, PR_SET_PDEATHSIG). That thread must therefore live as long as the child is wanted.
pub fn end_with_thread(command: &mut Command) -> &mut Command {
    let ask = || {
        // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory of ours.
        let rc = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong, 0, 0, 0) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(ask) }
}

/// Sends SIGTERM to `child`. A child that has ended but was not yet waited for takes it without effect.
///
/// # Errors
/// When the child has been waited for already: its number may then belong to another process.
pub fn terminate(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: plain system call. The child is ours and not yet waited for, so the number is still its own.
    if unsafe { libc::kill(pid, libc::SIGTERM) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    #[test]
    fn a_child_ends_by_sigterm_and_is_not_signalled_after() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        terminate(&mut child).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(terminate(&mut child).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let start = || end_with_thread(Command::new("sleep").arg("60")).spawn().unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }
}
