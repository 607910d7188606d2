//! The far end of the load: sink of uploads, source of downloads, on one thread.

mod connection;
mod handover;
mod service;

pub(crate) use handover::{Greeted, Handover, Place, Takeover, handover};

use super::LoadError;
use super::policy::Policy;
use super::series::Series;
use platform::tcp::TcpSocket;
use service::Service;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Room for clients that connect all at once.
const BACKLOG: i32 = 1_024;

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    series: Arc<Mutex<Series>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Listens on `address` (port 0: one that is free) and serves everybody from a thread of its own, both in the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub fn start(address: SocketAddr) -> Result<Self, LoadError> {
        Self::start_with(address, Policy::default(), None)
    }

    /// The same for those whom `policy` admits; connections to be echoed are passed on to `echo`.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub(crate) fn start_with(
        address: SocketAddr,
        policy: Policy,
        echo: Option<Handover>,
    ) -> Result<Self, LoadError> {
        let listen_error = |source| LoadError::Listen { address, source };
        let listener = TcpSocket::listen(address, BACKLOG).map_err(listen_error)?;
        let address = listener.local_address().map_err(listen_error)?;
        let (stop, series) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Series::default())));
        let served = Service::open(listener, policy, echo, Arc::clone(&stop), Arc::clone(&series))
            .map_err(LoadError::system("open a poller"))?;
        let thread = thread::Builder::new()
            .name("load-server".to_owned())
            .spawn(move || served.run())
            .map_err(LoadError::system("start the server's thread"))?;
        Ok(Self { address, stop, series, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Received: uploads, over all clients. Sent: downloads.
    pub fn series(&self) -> Series {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// What has ended it.
    pub fn check(&mut self) -> Result<(), LoadError> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map_err(LoadError::system("serve")),
            None => Ok(()),
        }
    }

    /// Ends all connections and returns the whole series.
    ///
    /// # Errors
    /// When the server has broken down before.
    pub fn stop(mut self) -> Result<Series, LoadError> {
        self.join().map_err(LoadError::system("serve"))?;
        Ok(self.series())
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Nobody is left to tell; a panic has been printed by then.
            drop(thread.join());
        }
    }
}
