//! Termination signals as something to poll (signalfd), so that no handler runs in the middle of anything.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const TERMINATION: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// Termination signals of this process, held back until read.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Holds back SIGTERM, SIGINT, SIGHUP and SIGQUIT, and ignores what would stop the process (Ctrl-Z, output from
    /// the background: the network would freeze) or end it for a log that has grown too large (RLIMIT_FSIZE; the
    /// write then fails instead). Call while the process has one thread.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn capture() -> io::Result<Self> {
        let set = signal_set(&TERMINATION);
        // SAFETY: `set` is initialised and lives through both calls; no old mask is asked for.
        let raw = unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in [libc::SIGTSTP, libc::SIGTTOU, libc::SIGXFSZ] {
            ignore(signal);
        }
        // SAFETY: `raw` is a fresh descriptor that nothing else owns.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// The descriptor, readable while a signal waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The name of a signal that came, if any.
    pub fn take(&self) -> Option<&'static str> {
        // SAFETY: all-zero is a valid value of this plain C struct.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let len = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is valid and writable for the length passed.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), len) };
        (got == len as isize).then(|| match info.ssi_signo.cast_signed() {
            libc::SIGINT => "SIGINT",
            libc::SIGHUP => "SIGHUP",
            libc::SIGQUIT => "SIGQUIT",
            _ => "SIGTERM",
        })
    }
}

/// Makes this process deaf to termination from the terminal and from the system: a worker ends when its
/// supervisor says so, since only then no new packet is held and the old ones can be handed out.
pub fn ignore_termination() {
    for signal in TERMINATION {
        ignore(signal);
    }
    ignore(libc::SIGTSTP);
}

fn ignore(signal: libc::c_int) {
    // SAFETY: SIG_IGN installs no handler, so nothing of ours runs in signal context.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before sigaddset changes it; both only touch the set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}
