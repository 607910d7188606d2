//! Asking a child process to end.

use std::io;
use std::process::Child;

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
    use std::process::Command;

    #[test]
    fn a_child_ends_by_sigterm_and_is_not_signalled_after() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        terminate(&mut child).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(terminate(&mut child).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
