//! Why the program ends early, with what to do about it.

use platform::netlink::NetlinkError;
use std::io;
use units::Rate;

/// Every way to fail. The message says what happened, [`ShaperError::help`] what to do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message beside each variant is its documentation")]
pub enum ShaperError {
    #[error("there is no interface '{name}'")]
    UnknownInterface { name: String, existing: Vec<String> },
    #[error("no route leads out of this network namespace, so the interface must be named")]
    NoDefaultRoute { existing: Vec<String> },
    #[error("'{name}' is the loopback interface, which has no queue to shape")]
    Loopback { name: String },
    #[error("{rate} is not below the {speed} of {interface}: the queue would stand in the driver, not here")]
    AboveLink { rate: Rate, speed: Rate, interface: String },
    #[error("cannot open the log file {path}: {source}")]
    Log { path: String, source: io::Error },
    #[error("shaping needs CAP_NET_ADMIN in this network namespace")]
    NoPrivilege { command: String },
    #[error("another shaper{} is shaping {interface}", holder.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    AlreadyRunning { interface: String, holder: Option<i32> },
    #[error("{what}: {reason}")]
    KernelLacks { what: &'static str, reason: String, modules: &'static str },
    #[error("the worker failed twice (last: {reason}); the packet rules are removed, traffic flows unshaped")]
    WorkerFailed { reason: String },
    #[error("the worker did not start: {0}")]
    WorkerStart(String),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error("{operation}: {source}")]
    Io { operation: &'static str, source: io::Error },
}

impl ShaperError {
    /// The exit code, as `--help` lists them.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownInterface { .. }
            | Self::NoDefaultRoute { .. }
            | Self::Loopback { .. }
            | Self::AboveLink { .. }
            | Self::Log { .. } => 2,
            Self::NoPrivilege { .. } => 3,
            Self::AlreadyRunning { .. } => 4,
            Self::KernelLacks { .. } => 5,
            Self::WorkerFailed { .. } => 6,
            Self::WorkerStart(_) | Self::Netlink(_) | Self::Io { .. } => 1,
        }
    }

    /// What to do about it, where there is something.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::UnknownInterface { existing, .. } => Some(format!("there are: {}", list(existing))),
            Self::NoDefaultRoute { existing } => {
                Some(format!("name one with --interface; there are: {}", list(existing)))
            }
            Self::AboveLink { .. } => {
                Some("give about 95 % of the rate that the line behind it really has".to_owned())
            }
            Self::NoPrivilege { command } => Some(format!("run it as root: sudo {command}")),
            Self::AlreadyRunning { holder: Some(pid), .. } => Some(format!("end it first: sudo kill {pid}")),
            Self::KernelLacks { modules, .. } => {
                Some(format!("load the kernel's module(s): sudo modprobe -a {modules}"))
            }
            Self::WorkerFailed { .. } => {
                Some("start it again with --log FILE and report the file".to_owned())
            }
            _ => None,
        }
    }

    /// Wraps a system error with what was tried.
    pub(crate) fn io(operation: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { operation, source }
    }
}

fn list(names: &[String]) -> String {
    names.join(", ")
}
