//! One instance a name and network namespace.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

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
                Err(LockError::Taken { holder: holder(name) })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The process that listens at `name` (SO_PEERCRED, man 7 unix). It accepts nobody, so after some 4000 callers its
/// backlog is full and a connect that may block would never return: then it stays unknown.
fn holder(name: &str) -> Option<i32> {
    let stream = connect_without_blocking(name).ok()?;
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

fn connect_without_blocking(name: &str) -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the returned descriptor is checked before it is owned.
    let raw = unsafe {
        libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
    };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a fresh descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // An abstract name starts with a zero byte and is as long as the address says.
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    let len = (size_of::<libc::sa_family_t>() + 1 + name.len()).min(size_of::<libc::sockaddr_un>());
    // SAFETY: `address` is valid for the length passed.
    let rc = unsafe { libc::connect(raw, (&raw const address).cast(), len as libc::socklen_t) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
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

    #[test]
    fn a_taker_is_refused_at_once_however_many_came_before() {
        let name = format!("accel-test-backlog-{}", std::process::id());
        let _lock = InstanceLock::acquire(&name).unwrap();
        let mut callers = 0;
        // net.core.somaxconn limits the backlog: 4096 by default, and callers that hang up stay in it.
        while callers < 100_000 && connect_without_blocking(&name).is_ok() {
            callers += 1;
        }
        let Err(LockError::Taken { holder }) = InstanceLock::acquire(&name) else { panic!("taken twice") };
        assert_eq!(holder.is_none(), callers < 100_000, "{callers} callers");
    }
}
