//! The far end of the echoes, on one thread that never touches bulk data.

mod connection;
mod service;
mod session;

use crate::load::Takeover;
use platform::udp::UdpSocket;
use service::Service;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A running echo. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct EchoServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl EchoServer {
    /// Answers on the connections that are handed over, and datagrams on `udp`.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub(crate) fn start(udp: UdpSocket, takeover: Takeover) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let service = Service::open(udp, takeover, Arc::clone(&stop))?;
        let thread = thread::Builder::new().name("echo-server".to_owned()).spawn(move || service.run())?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// What has ended it.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Nobody is left to tell; a panic has been printed by then.
            drop(thread.join());
        }
    }
}
