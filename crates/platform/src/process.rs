//! A supervisor and its worker: start, watch, kill, and the lock that keeps a second supervisor away.

mod channel;
mod descriptors;
mod lock;
mod signals;
mod terminate;
mod wait;
mod worker;

pub use channel::{Channel, Received};
pub use descriptors::raise_descriptor_limit;
pub use lock::{InstanceLock, LockError};
pub use signals::{Signals, ignore_termination};
pub use terminate::{end_with_thread, terminate};
pub use wait::{append_without_blocking, print_without_blocking, wait_any};
pub use worker::{EndingWorker, Worker};
