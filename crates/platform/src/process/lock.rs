//! One instance a name and network namespace.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it; its number, where the kernel tells.
    #[error("already taken{}", holder.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Taken {
        /// Process number of the holder.
        holder: Option<i32>,
    },
    /// The system refused for another reason.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An abstract unix socket: such names belong to the network namespace and vanish with the process, however it
/// ends.
#[derive(Debug)]
pub struct InstanceLock {
    _listener: UnixListener,
}

impl InstanceLock {
    /// Takes the lock `name`.
    ///
    /// # Errors
    /// [`LockError::Taken`] when another process has it.
    pub fn acquire(name: &str) -> Result<Self, LockError> {
        let address = SocketAddr::from_abstract_name(name)?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self { _listener: listener }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(LockError::Taken { holder: holder(&address) })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The process that listens at `address` (SO_PEERCRED, man 7 unix).
fn holder(address: &SocketAddr) -> Option<i32> {
    let stream = UnixStream::connect_addr(address).ok()?;
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `credentials` is valid and writable for the length passed.
    let rc = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut len,
        )
    };
    (rc == 0 && credentials.pid > 0).then_some(credentials.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_learns_who_has_it() {
        let name = format!("accel-test-{}", std::process::id());
        let lock = InstanceLock::acquire(&name).unwrap();
        let Err(LockError::Taken { holder }) = InstanceLock::acquire(&name) else { panic!("taken twice") };
        assert_eq!(holder, Some(std::process::id().cast_signed()));
        drop(lock);
        InstanceLock::acquire(&name).unwrap();
    }
}
