//! The privilege to make namespaces: had already, or through a user namespace of one's own.

use super::{NamespaceError, Step, unshare};
use std::io;

/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN by number (linux/capability.h).
const NEEDED_CAPABILITIES: [u32; 3] = [12, 13, 21];

/// Whether the process may make network namespaces, configure them and open packet sockets in them. False also
/// when /proc does not tell.
pub fn is_privileged() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    effective_capabilities(&status)
        .is_some_and(|held| NEEDED_CAPABILITIES.iter().all(|number| held >> number & 1 == 1))
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// Moves the process into a user namespace of its own, where it is root over the namespaces it makes. Outside
/// of it it stays who it was. Call only while the process has one thread, and only when not
/// [privileged](is_privileged): inside, SCHED_FIFO is refused.
///
/// # Errors
/// When the system forbids it; the error says which rule does and what to type.
pub fn enter_user_namespace() -> Result<(), NamespaceError> {
    let ids = Ids::of_process();
    unshare(libc::CLONE_NEWUSER).map_err(|source| NamespaceError::new(Step::UserNamespace, source))?;
    ids.map_to_root().map_err(|source| NamespaceError::new(Step::MapIds, source))
}

/// Makes `command` start in a user namespace of its own, as root there. The caller may have threads.
pub fn unshare_child(command: &mut std::process::Command) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt;
    let ids = Ids::of_process();
    let between_fork_and_exec = move || {
        unshare(libc::CLONE_NEWUSER)?;
        ids.map_to_root()
    };
    // SAFETY: the closure only makes system calls on data that it owns: no allocation, no lock (`write_file`).
    unsafe { command.pre_exec(between_fork_and_exec) }
}

/// The lines for uid_map and gid_map: "0 (id outside) 1" (man 7 user_namespaces), formatted ahead since no
/// memory may be allocated between fork and exec.
struct Ids {
    uid_map: String,
    gid_map: String,
}

impl Ids {
    fn of_process() -> Self {
        // SAFETY: both calls only return a number and cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self { uid_map: format!("0 {uid} 1"), gid_map: format!("0 {gid} 1") }
    }

    /// An unprivileged process may map its own group only after it gave up setgroups (same manual page).
    fn map_to_root(&self) -> io::Result<()> {
        write_file(c"/proc/self/setgroups", b"deny")?;
        write_file(c"/proc/self/uid_map", self.uid_map.as_bytes())?;
        write_file(c"/proc/self/gid_map", self.gid_map.as_bytes())
    }
}

/// Writes with one system call and without memory, as these files demand.
fn write_file(path: &std::ffi::CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives through the call.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `content` is valid for its length and `fd` is open.
    let written = unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) };
    let error = io::Error::last_os_error();
    // SAFETY: `fd` was opened above and nobody else knows it.
    unsafe { libc::close(fd) };
    if written < 0 { Err(error) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n"), Some(0x1ff_feff_ffff));
        assert_eq!(effective_capabilities("CapEff:\tno number\n"), None);
        assert_eq!(effective_capabilities(""), None);
    }

    #[test]
    fn with_threads_entering_is_refused_in_words() {
        let blocker = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| blocker.wait());
            let error = enter_user_namespace().unwrap_err();
            blocker.wait();
            // Where the system forbids user namespaces altogether, that comes first.
            let expected = [super::super::Cause::Threads, super::super::Cause::Container];
            assert!(expected.contains(&error.refusal.cause), "{error}");
        });
    }
}
