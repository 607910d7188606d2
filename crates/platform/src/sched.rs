//! The scheduling class of the calling thread.

use std::fmt;

/// How the kernel schedules a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The usual time-sharing class (SCHED_OTHER, SCHED_BATCH, SCHED_IDLE).
    Normal,
    /// SCHED_FIFO with its priority, 1 to 99.
    Fifo(u8),
    /// Another real-time class, by number.
    Other(i32),
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::Other(class) => write!(f, "class {class}"),
        }
    }
}

/// Asks for SCHED_FIFO at `priority` (1 to 99) for the calling thread and returns what is in force afterwards.
/// An ordinary user is refused unless RLIMIT_RTPRIO allows it, and so is root of a user namespace; that is no
/// error. Threads and processes started later are normal again. A thread under SCHED_FIFO must never spin: it
/// would be throttled for 50 ms of each second (man 7 sched).
pub fn request_fifo(priority: u8) -> Scheduler {
    let parameter = libc::sched_param { sched_priority: i32::from(priority) };
    let class = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` lives through the call; 0 names the calling thread. A refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, class, &raw const parameter) };
    current()
}

/// The scheduling class of the calling thread.
pub fn current() -> Scheduler {
    // SAFETY: plain system call without memory; 0 names the calling thread.
    let class = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    match class {
        libc::SCHED_FIFO => Scheduler::Fifo(priority()),
        libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => Scheduler::Normal,
        other => Scheduler::Other(other),
    }
}

fn priority() -> u8 {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is valid and writable through the call.
    unsafe { libc::sched_getparam(0, &raw mut parameter) };
    parameter.sched_priority as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_granted_or_leaves_the_thread_as_it_was() {
        std::thread::spawn(|| {
            assert_eq!(current(), Scheduler::Normal);
            let now = request_fifo(10);
            assert!(now == Scheduler::Fifo(10) || now == Scheduler::Normal, "{now}");
            assert_eq!(std::thread::spawn(current).join().unwrap(), Scheduler::Normal);
        })
        .join()
        .unwrap();
    }
}
