//! The near end of the load: all flows of one client on one thread.

mod worker;

use super::LoadError;
use super::block::BlockReader;
use super::report::Reports;
use super::series::{Sent, Series};
use super::token::Token;
use crate::probe::Window;
use platform::clock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Timestamp;
use worker::{Worker, open_socket};

/// Between two looks at whether the flows run.
const ESTABLISHED_CHECK: Duration = Duration::from_millis(5);

/// Which load to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    /// A [`Server`](super::Server), of one's own: flows end with a RST, so that nothing trails after a stop.
    pub server: SocketAddr,
    /// Bulk flows from here to the server.
    pub up_flows: usize,
    /// Bulk flows from the server to here.
    pub down_flows: usize,
    /// Congestion control on both ends, by the kernel's name; empty for the system's default.
    pub congestion: String,
}

/// What a client has seen.
#[derive(Clone, Debug)]
pub struct ClientRecord {
    /// Received: downloads. Sent: uploads.
    pub own: Series,
    /// Received: uploads, as the server has reported them, at the server's times on this machine's clock.
    pub uploads: Series,
    /// Sent: each download flow, as the server has reported it, on this machine's clock.
    pub downloads: Vec<Series>,
}

impl ClientRecord {
    /// Bulk segments of both ends within the window.
    pub fn sent(&self, window: Window) -> Sent {
        self.downloads.iter().fold(self.own.sent(window), |sum, flow| sum + flow.sent(window))
    }
}

/// What the thread shows to the outside.
#[derive(Debug)]
struct Shown {
    established: AtomicUsize,
    /// Bytes read and bytes that the sockets took.
    moved: AtomicU64,
    /// Where that shall end.
    most: u64,
    own: Mutex<Series>,
    uploads: Mutex<Reports>,
    downloads: Mutex<Vec<BlockReader>>,
}

/// A running load. Dropping it stops it.
#[derive(Debug)]
pub struct Client {
    flows: usize,
    stop: Arc<AtomicBool>,
    shown: Arc<Shown>,
    thread: Option<JoinHandle<Result<(), LoadError>>>,
}

impl Client {
    /// Starts the flows from a thread in the network namespace of the calling one, a few ms apart, and returns
    /// at once; they run until [`stop`](Self::stop).
    ///
    /// # Errors
    /// When the congestion control is not to be had (with the list of those that are), or the system gives no
    /// thread.
    pub fn start(plan: LoadPlan) -> Result<Self, LoadError> {
        Self::start_with(plan, None, u64::MAX)
    }

    /// The same with a server that wants to be shown a token, and to an end: when both ways together have moved about
    /// `most` bytes, the flows stand still ([`is_used_up`](Self::is_used_up)).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(plan: LoadPlan, token: Option<&Token>, most: u64) -> Result<Self, LoadError> {
        // Tried out here, so that a wrong name is refused before anything runs.
        open_socket(&plan)?;
        let shown = Arc::new(Shown {
            established: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            most,
            own: Mutex::new(Series::default()),
            uploads: Mutex::new(Reports::new(plan.up_flows)),
            downloads: Mutex::new(vec![BlockReader::default(); plan.down_flows]),
        });
        let (flows, stop) = (plan.up_flows + plan.down_flows, Arc::new(AtomicBool::new(false)));
        let worker = Worker::open(plan, token.cloned(), Arc::clone(&shown))
            .map_err(LoadError::system("open a poller"))?;
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("load-client".to_owned())
            .spawn(move || worker.run(&stopped))
            .map_err(LoadError::system("start the client's thread"))?;
        Ok(Self { flows, stop, shown, thread: Some(thread) })
    }

    /// Waits until every flow runs, `deadline` at the latest; whether they all do.
    ///
    /// # Errors
    /// What has ended the load.
    pub fn wait_established(&mut self, deadline: Timestamp) -> Result<bool, LoadError> {
        while self.shown.established.load(Ordering::Relaxed) < self.flows {
            self.check()?;
            let now = clock::now();
            if now >= deadline {
                return Ok(false);
            }
            clock::sleep_until(deadline.min(now + ESTABLISHED_CHECK));
        }
        self.check().map(|()| true)
    }

    /// Whether all is well so far.
    ///
    /// # Errors
    /// What has ended the load.
    pub fn check(&mut self) -> Result<(), LoadError> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    }

    /// Bytes that this end has read and that its sockets have taken to be sent.
    pub fn moved_bytes(&self) -> u64 {
        self.shown.moved.load(Ordering::Relaxed)
    }

    /// Whether all that may be moved has been moved.
    pub fn is_used_up(&self) -> bool {
        self.moved_bytes() >= self.shown.most
    }

    /// What has been seen up to now.
    pub fn record(&self) -> ClientRecord {
        let own = self.shown.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let uploads = self.shown.uploads.lock().unwrap_or_else(PoisonError::into_inner).series();
        let downloads = self.shown.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        let downloads = downloads.iter().map(BlockReader::series).collect();
        ClientRecord { own, uploads, downloads }
    }

    /// Ends all flows at once (within 0.1 s) and returns the whole record. Packets that are already in the
    /// network's queues still have to drain.
    ///
    /// # Errors
    /// What had ended the load before.
    pub fn stop(mut self) -> Result<ClientRecord, LoadError> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(self.record())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Nobody is left to tell; a panic has been printed by then.
            drop(thread.join());
        }
    }
}
