//! Network namespaces that die with the process: nothing is pinned, nothing is named, nothing needs cleaning.
//!
//! ```text
//! enter_user_namespace()          only when the process lacks the privilege; single-threaded
//!        |
//! Namespace::create()  x n        each on a short thread of its own; the descriptor keeps it alive
//!        |
//! namespace.run(..) / .spawn(..)  work on a fresh thread inside it (setns acts on one thread, man 2 setns)
//! ```
//! A process started from within [`Namespace::run`] is born inside the namespace.

mod in_test;
mod refusal;
mod user;

pub use in_test::in_test;
pub use refusal::{Cause, Facts, Refusal, Step};
pub use user::{enter_user_namespace, is_privileged, unshare_child};

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Why a namespace, or what belongs into it, could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}: {refusal}")]
pub struct NamespaceError {
    /// What was tried.
    pub step: Step,
    /// The system's error.
    pub source: io::Error,
    /// The likely cause and what to do about it.
    pub refusal: Refusal,
}

impl NamespaceError {
    /// Explains `source` by the facts of this machine.
    pub fn new(step: Step, source: io::Error) -> Self {
        let refusal = Refusal::explain(&Facts::probe(step, source.raw_os_error().unwrap_or(0)));
        Self { step, source, refusal }
    }
}

/// A network namespace, alive as long as a clone of this, a thread or a process is in it.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<File>,
}

impl Namespace {
    /// Makes a new network namespace whose loopback interface is up.
    ///
    /// # Errors
    /// When the caller is not [privileged](is_privileged) or the system forbids it.
    pub fn create() -> Result<Self, NamespaceError> {
        let made = on_fresh_thread("namespace", || {
            unshare(libc::CLONE_NEWNET)?;
            let namespace = Self::current()?;
            crate::links::Links::open()
                .and_then(|mut links| links.set_up("lo"))
                .map_err(|error| io::Error::other(error.to_string()))?;
            Ok(namespace)
        });
        made.and_then(|inner| inner).map_err(|source| NamespaceError::new(Step::NetNamespace, source))
    }

    /// The namespace that the calling thread is in.
    ///
    /// # Errors
    /// When /proc is not mounted.
    pub fn current() -> io::Result<Self> {
        Ok(Self { file: Arc::new(File::open("/proc/thread-self/ns/net")?) })
    }

    /// The kernel's number of this namespace, as in `ls -l /proc/self/ns/net`.
    ///
    /// # Errors
    /// When the descriptor cannot be examined, which no known kernel refuses.
    pub fn number(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Runs `work` on a fresh thread inside this namespace and waits for its result. A panic of `work` passes on.
    ///
    /// # Panics
    /// When the system has no room for a thread. Entering cannot fail: only a process with the privilege over
    /// this namespace can hold it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts `work` on a named thread inside this namespace.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = self.clone();
        let inside = move || {
            namespace.enter();
            work()
        };
        // Documented panic: std::thread::spawn does the same.
        thread::Builder::new().name(name.to_owned()).spawn(inside).expect("the system has room for a thread")
    }

    fn enter(&self) {
        // SAFETY: plain system call on a descriptor that lives through it; it moves only the calling thread.
        let rc = unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) };
        let error = io::Error::last_os_error();
        assert_eq!(rc, 0, "enter a network namespace of our own: {error}");
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Writes a setting of the calling thread's network namespace; `path` is below /proc/sys, such as
/// `net/ipv4/tcp_rmem`.
///
/// # Errors
/// When the setting does not exist here, is not the namespace's own, or /proc/sys is read-only (containers).
pub fn set_sysctl(path: &str, value: &str) -> io::Result<()> {
    std::fs::write(format!("/proc/sys/{path}"), value)
}

/// Runs `work` on a thread that ends with it, so that what it unshares is gone from the caller.
fn on_fresh_thread<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let inside = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)?;
        inside.join().map_err(|_| io::Error::other("the thread panicked"))
    })
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: plain system call without memory; it changes only what the caller asked to be changed.
    if unsafe { libc::unshare(flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_is_its_own_and_the_caller_stays_where_it_was() {
        in_test(|| {
            let home = Namespace::current().unwrap().number().unwrap();
            let (a, b) = (Namespace::create().unwrap(), Namespace::create().unwrap());
            let inside = a.run(|| Namespace::current().unwrap().number().unwrap());
            assert_eq!(inside, a.number().unwrap());
            assert_ne!(inside, b.number().unwrap());
            let spawned = b.spawn("inside", || Namespace::current().unwrap().number().unwrap());
            assert_eq!(spawned.join().unwrap(), b.number().unwrap());
            assert_eq!(Namespace::current().unwrap().number().unwrap(), home);
        });
    }

    #[test]
    fn loopback_works_inside() {
        in_test(|| {
            let namespace = Namespace::create().unwrap();
            let echoed = namespace.run(|| {
                let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
                std::net::TcpStream::connect(listener.local_addr()?).map(drop)
            });
            assert!(echoed.is_ok(), "{echoed:?}");
        });
    }

    #[test]
    fn a_child_process_is_born_inside() {
        in_test(|| {
            let namespace = Namespace::create().unwrap();
            let output = namespace
                .run(|| std::process::Command::new("readlink").arg("/proc/self/ns/net").output().unwrap());
            let link = String::from_utf8(output.stdout).unwrap();
            assert_eq!(link.trim(), format!("net:[{}]", namespace.number().unwrap()));
        });
    }

    #[test]
    fn settings_are_the_namespaces_own() {
        in_test(|| {
            let (a, b) = (Namespace::create().unwrap(), Namespace::create().unwrap());
            let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_no_metrics_save").unwrap();
            a.run(|| set_sysctl("net/ipv4/tcp_no_metrics_save", "1")).unwrap();
            assert_eq!((a.run(read).trim(), b.run(read).trim()), ("1", "0"));
        });
    }
}
