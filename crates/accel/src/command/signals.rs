//! Ctrl-C and its like as a flag.

use super::{Exit, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that Ctrl-C, SIGTERM and SIGHUP set. Once per process.
pub(super) fn cancelled_by_signals() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(cancel)
}
