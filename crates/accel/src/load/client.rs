//! The near end of the load: all flows of one client on one thread.

use super::hello::{Hello, Role};
use super::report::{ReportReader, Reports};
use super::series::{Counters, Sent, Series};
use super::{LoadError, NOT_SENT_LOW_WATER_BYTES, STOP_CHECK, TICK, transfer};
use platform::clock;
use platform::poll::{Event, Interest, Poller};
use platform::tcp::TcpSocket;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::{Bytes, Timestamp};

/// Between the starts of two flows, so that their slow starts do not run in lockstep.
const STAGGER: Duration = Duration::from_millis(5);
/// Longest wait for a handshake: three retransmitted SYNs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Longest silence of all flows together; even an upload that makes no progress gets reports.
const SILENCE_LIMIT: Duration = Duration::from_secs(8);

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
}

/// What the thread shows to the outside.
#[derive(Debug)]
struct Shown {
    established: AtomicUsize,
    own: Mutex<Series>,
    uploads: Mutex<Reports>,
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
        // Tried out here, so that a wrong name is refused before anything runs.
        open_socket(&plan)?;
        let shown = Arc::new(Shown {
            established: AtomicUsize::new(0),
            own: Mutex::new(Series::default()),
            uploads: Mutex::new(Reports::new(plan.up_flows)),
        });
        let (flows, stop) = (plan.up_flows + plan.down_flows, Arc::new(AtomicBool::new(false)));
        let worker = Worker::open(plan, Arc::clone(&shown)).map_err(LoadError::system("open a poller"))?;
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
            clock::sleep_until(deadline.min(now + STAGGER));
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

    /// What has been seen up to now.
    pub fn record(&self) -> ClientRecord {
        let own = self.shown.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let uploads = self.shown.uploads.lock().unwrap_or_else(PoisonError::into_inner).series();
        ClientRecord { own, uploads }
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

/// Opens a socket with all options of a flow set.
pub(super) fn open_socket(plan: &LoadPlan) -> Result<TcpSocket, LoadError> {
    let socket = TcpSocket::open(plan.server).map_err(LoadError::system("open a socket"))?;
    if !plan.congestion.is_empty() {
        let refused = |source| LoadError::congestion(&plan.congestion, source);
        socket.set_congestion(&plan.congestion).map_err(refused)?;
    }
    socket
        .reset_on_close()
        .and_then(|()| socket.set_not_sent_low_water(NOT_SENT_LOW_WATER_BYTES))
        .map_err(LoadError::system("set the socket's options"))?;
    Ok(socket)
}

/// One bulk flow.
struct Flow {
    role: Role,
    /// Number among the flows of its direction.
    number: usize,
    socket: TcpSocket,
    /// `Some` until the handshake has ended.
    connecting_since: Option<Timestamp>,
    reports: ReportReader,
}

/// The client's thread.
struct Worker {
    plan: LoadPlan,
    shown: Arc<Shown>,
    poller: Poller,
    /// In the order of their start; the index is the poller's token.
    flows: Vec<Flow>,
    received: Bytes,
    last_heard: Timestamp,
    buffer: Vec<u8>,
    payload: Vec<u8>,
}

impl Worker {
    fn open(plan: LoadPlan, shown: Arc<Shown>) -> io::Result<Self> {
        Ok(Self {
            plan,
            shown,
            poller: Poller::new()?,
            flows: Vec::new(),
            received: Bytes::ZERO,
            last_heard: clock::now(),
            buffer: transfer::read_buffer(),
            payload: transfer::payload(),
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        let start = clock::now();
        let mut next_tick = start;
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            let next_start = self.start_due(now, start)?;
            if now >= next_tick {
                self.tick(now)?;
                next_tick = now + TICK;
            }
            let deadline = next_tick.min(next_start).min(now + STOP_CHECK);
            let events = self.poller.wait(deadline).map_err(LoadError::system("wait"))?.to_vec();
            let now = clock::now();
            for event in events {
                self.serve(now, event)?;
            }
        }
        self.note(clock::now());
        Ok(())
    }

    /// Starts the flows whose time has come; when the next one's is.
    fn start_due(&mut self, now: Timestamp, start: Timestamp) -> Result<Timestamp, LoadError> {
        let flows = self.plan.up_flows + self.plan.down_flows;
        while self.flows.len() < flows {
            // A plan has few flows: the number of them fits.
            let due = start + STAGGER * self.flows.len() as u32;
            if now < due {
                return Ok(due);
            }
            self.start_flow(now)?;
        }
        Ok(Timestamp::MAX)
    }

    /// Starts the next flow, uploads first.
    fn start_flow(&mut self, now: Timestamp) -> Result<(), LoadError> {
        let index = self.flows.len();
        let (role, number) = match index.checked_sub(self.plan.up_flows) {
            None => (Role::Sink, index),
            Some(number) => (Role::Source, number),
        };
        let socket = open_socket(&self.plan)?;
        socket.connect(self.plan.server).map_err(|source| self.connect_error(source))?;
        self.poller
            .add(&socket, index as u64, Interest::WRITE)
            .map_err(LoadError::system("poll a socket"))?;
        let reports = ReportReader::default();
        self.flows.push(Flow { role, number, socket, connecting_since: Some(now), reports });
        self.last_heard = now;
        Ok(())
    }

    fn connect_error(&self, source: io::Error) -> LoadError {
        LoadError::Connect { server: self.plan.server, source }
    }

    fn serve(&mut self, now: Timestamp, event: Event) -> Result<(), LoadError> {
        // Tokens are indices of flows, which are never removed.
        let index = event.token as usize;
        if self.flows[index].connecting_since.is_some() {
            return self.on_connected(now, index);
        }
        let broken_off = match self.transfer(now, index, event) {
            Ok(false) => return Ok(()),
            Ok(true) => io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed it"),
            Err(error) => error,
        };
        let Flow { role, number, .. } = self.flows[index];
        let direction = if role == Role::Sink { "upload" } else { "download" };
        let flow = format!("{direction} {}", number + 1);
        Err(LoadError::BrokenOff { flow, server: self.plan.server, source: broken_off })
    }

    /// The handshake has ended: says hello and lets the flow run.
    fn on_connected(&mut self, now: Timestamp, index: usize) -> Result<(), LoadError> {
        let flow = &mut self.flows[index];
        flow.connecting_since = None;
        let hello = Hello { role: flow.role, congestion: self.plan.congestion.clone() }.encode();
        let interest = if flow.role == Role::Sink { Interest::READ_WRITE } else { Interest::READ };
        let greeted = flow.socket.take_error().and_then(|error| error.map_or(Ok(()), Err)).and_then(|()| {
            // The send buffer is empty and takes a few bytes whole.
            (&flow.socket).write_all(&hello)?;
            self.poller.change(&flow.socket, index as u64, interest)
        });
        greeted.map_err(|source| self.connect_error(source))?;
        self.shown.established.fetch_add(1, Ordering::Relaxed);
        self.last_heard = now;
        Ok(())
    }

    /// Moves what can be moved; whether the server has ended the flow.
    fn transfer(&mut self, now: Timestamp, index: usize, event: Event) -> io::Result<bool> {
        let flow = &mut self.flows[index];
        if event.writable && flow.role == Role::Sink {
            transfer::fill(&flow.socket, &self.payload)?;
        }
        if !event.readable {
            return Ok(false);
        }
        self.last_heard = now;
        let Flow { role, number, socket, reports, .. } = flow;
        match role {
            Role::Source => transfer::drain(socket, &mut self.buffer, |bytes| {
                self.received += Bytes::new(bytes.len() as u64);
            }),
            Role::Sink => {
                let mut uploads = self.shown.uploads.lock().unwrap_or_else(PoisonError::into_inner);
                transfer::drain(socket, &mut self.buffer, |bytes| {
                    reports.push(bytes, |report| uploads.on_report(now, *number, report));
                })
            }
        }
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), LoadError> {
        self.note(now);
        let is_overdue = |since: Timestamp| now.saturating_since(since) > CONNECT_TIMEOUT;
        if self.flows.iter().any(|flow| flow.connecting_since.is_some_and(is_overdue)) {
            return Err(self.connect_error(io::ErrorKind::TimedOut.into()));
        }
        let silence = now.saturating_since(self.last_heard);
        if silence > SILENCE_LIMIT && !self.flows.is_empty() {
            return Err(LoadError::Silent { server: self.plan.server, silence });
        }
        Ok(())
    }

    fn note(&self, now: Timestamp) {
        let uploads = self.flows.iter().filter(|flow| flow.role == Role::Sink);
        let sent = uploads.fold(Sent::default(), |sum, flow| sum + transfer::sent(&flow.socket));
        let counters = Counters { received: self.received, sent };
        self.shown.own.lock().unwrap_or_else(PoisonError::into_inner).push(now, counters);
    }
}
