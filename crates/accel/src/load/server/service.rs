//! The server's thread: all connections, whatever each of them is for.

use crate::load::hello::{self, Hello, NotAHello, Role};
use crate::load::report::Report;
use crate::load::series::{Counters, Sent, Series};
use crate::load::{NOT_SENT_LOW_WATER_BYTES, STOP_CHECK, TICK, transfer};
use platform::clock;
use platform::poll::{Event, Interest, Poller};
use platform::tcp::TcpSocket;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{Bytes, Timestamp};

/// Connections served at once; more are closed as they come.
const MAX_CONNECTIONS: usize = 512;
/// A connection that has moved nothing for this long is closed: its peer is gone.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Token of the listener; connections count from zero.
const LISTENER: u64 = u64::MAX;

/// What a connection is for.
enum State {
    /// The hello is incomplete so far.
    Greeting(Vec<u8>),
    Sink {
        received: Bytes,
        /// The rest of a report that the socket did not take.
        unsent: Vec<u8>,
    },
    Source,
}

struct Connection {
    socket: TcpSocket,
    state: State,
    last_moved: Timestamp,
}

/// The server's thread.
pub(super) struct Service {
    listener: TcpSocket,
    stop: Arc<AtomicBool>,
    series: Arc<Mutex<Series>>,
    poller: Poller,
    connections: BTreeMap<u64, Connection>,
    next_token: u64,
    received: Bytes,
    /// What connections that have ended had sent.
    sent_before: Sent,
    buffer: Vec<u8>,
    payload: Vec<u8>,
}

impl Service {
    pub(super) fn open(
        listener: TcpSocket,
        stop: Arc<AtomicBool>,
        series: Arc<Mutex<Series>>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::READ)?;
        Ok(Self {
            listener,
            stop,
            series,
            poller,
            connections: BTreeMap::new(),
            next_token: 0,
            received: Bytes::ZERO,
            sent_before: Sent::default(),
            buffer: transfer::read_buffer(),
            payload: transfer::payload(),
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        let mut next_tick = clock::now();
        while !self.stop.load(Ordering::Relaxed) {
            let now = clock::now();
            if now >= next_tick {
                self.tick(now)?;
                next_tick = now + TICK;
            }
            let events = self.poller.wait(next_tick.min(now + STOP_CHECK))?.to_vec();
            let now = clock::now();
            for event in events {
                if event.token == LISTENER {
                    self.accept(now)?;
                } else {
                    self.serve(now, event);
                }
            }
        }
        while let Some((_, connection)) = self.connections.pop_first() {
            self.abort(connection);
        }
        self.note(clock::now());
        Ok(())
    }

    /// Takes all waiting connections. When the system has none to give (descriptors used up), the listener rests
    /// until the next tick, so that the thread does not spin on it.
    fn accept(&mut self, now: Timestamp) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok(Some((socket, _))) => self.admit(now, socket),
                Ok(None) => return Ok(()),
                Err(_) => return self.poller.change(&self.listener, LISTENER, Interest::NONE),
            }
        }
    }

    /// Starts to serve a connection; it is closed right away where that is not possible.
    fn admit(&mut self, now: Timestamp, socket: TcpSocket) {
        let token = self.next_token;
        let prepared = socket
            .set_not_sent_low_water(NOT_SENT_LOW_WATER_BYTES)
            .and_then(|()| self.poller.add(&socket, token, Interest::READ));
        if prepared.is_ok() && self.connections.len() < MAX_CONNECTIONS {
            self.next_token += 1;
            let state = State::Greeting(Vec::new());
            self.connections.insert(token, Connection { socket, state, last_moved: now });
        }
    }

    fn serve(&mut self, now: Timestamp, event: Event) {
        let Some(mut connection) = self.connections.remove(&event.token) else { return };
        match self.advance(&mut connection, now, event) {
            Ok(true) => drop(self.connections.insert(event.token, connection)),
            Ok(false) => self.close(connection, now),
            Err(_) => self.abort(connection),
        }
    }

    /// Moves what can be moved; whether the connection goes on.
    fn advance(&mut self, connection: &mut Connection, now: Timestamp, event: Event) -> io::Result<bool> {
        let Connection { socket, state, last_moved } = connection;
        if event.writable && matches!(state, State::Source) && transfer::fill(socket, &self.payload)? > 0 {
            *last_moved = now;
        }
        if !event.readable {
            return Ok(true);
        }
        let mut moved = Bytes::ZERO;
        let ended = match state {
            State::Greeting(said) => {
                let ended = transfer::drain(socket, &mut self.buffer[..hello::MAX_BYTES], |bytes| {
                    said.extend_from_slice(bytes);
                })?;
                return Ok(!ended && self.greet(connection, event.token, now)?);
            }
            State::Sink { received, .. } => {
                let count = |bytes: &[u8]| moved += Bytes::new(bytes.len() as u64);
                let ended = transfer::drain(socket, &mut self.buffer, count);
                // Counted before an error ends the connection: what was read was received.
                *received += moved;
                self.received += moved;
                ended?
            }
            // A client of a source has nothing more to say.
            State::Source => transfer::drain(socket, &mut self.buffer, |_| ())?,
        };
        if moved > Bytes::ZERO {
            *last_moved = now;
        }
        Ok(!ended)
    }

    /// Reads the hello and takes up the role; whether the connection goes on. What follows the hello is data.
    fn greet(&mut self, connection: &mut Connection, token: u64, now: Timestamp) -> io::Result<bool> {
        let State::Greeting(said) = &connection.state else { return Ok(true) };
        let (hello, length) = match Hello::parse(said) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(true),
            Err(NotAHello) => return Ok(false),
        };
        let first_data = Bytes::new((said.len() - length) as u64);
        let Hello { role, congestion } = hello;
        if !congestion.is_empty() {
            connection.socket.set_congestion(&congestion)?;
        }
        connection.last_moved = now;
        connection.state = match role {
            Role::Sink => {
                // A report must not wait for the acknowledgement of the one before (Nagle's algorithm): that may
                // be held up in the very queue that the upload has filled.
                connection.socket.set_no_delay()?;
                self.received += first_data;
                State::Sink { received: first_data, unsent: Vec::new() }
            }
            Role::Source => {
                self.poller.change(&connection.socket, token, Interest::READ_WRITE)?;
                State::Source
            }
        };
        Ok(true)
    }

    /// Ends a connection that the client has ended; a sink says a last time how much has come.
    fn close(&mut self, mut connection: Connection, now: Timestamp) {
        self.sent_before = self.sent_before + connection.sent();
        // The client may be gone altogether; then there is nobody to tell.
        drop(connection.report(now));
    }

    /// Ends a connection that goes on or has failed, without a trailing close.
    fn abort(&mut self, connection: Connection) {
        self.sent_before = self.sent_before + connection.sent();
        let Connection { socket, .. } = connection;
        // Should that be refused, an ordinary close follows, which is slower and no worse.
        drop(socket.reset_on_close());
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.poller.change(&self.listener, LISTENER, Interest::READ)?;
        self.note(now);
        let mut ended = Vec::new();
        for (&token, connection) in &mut self.connections {
            let idle = now.saturating_since(connection.last_moved) > IDLE_LIMIT;
            if idle || connection.report(now).is_err() {
                ended.push(token);
            }
        }
        for token in ended {
            if let Some(connection) = self.connections.remove(&token) {
                self.abort(connection);
            }
        }
        Ok(())
    }

    fn note(&mut self, now: Timestamp) {
        let sent =
            self.connections.values().fold(self.sent_before, |sum, connection| sum + connection.sent());
        let counters = Counters { received: self.received, sent };
        self.series.lock().unwrap_or_else(PoisonError::into_inner).push(now, counters);
    }
}

impl Connection {
    /// Bulk data sent; a sink's reports are none.
    fn sent(&self) -> Sent {
        match self.state {
            State::Source => transfer::sent(&self.socket),
            State::Greeting(_) | State::Sink { .. } => Sent::default(),
        }
    }

    /// Sends a sink's report; a new one only when the last one has left completely.
    fn report(&mut self, now: Timestamp) -> io::Result<()> {
        let State::Sink { received, unsent } = &mut self.state else { return Ok(()) };
        if unsent.is_empty() {
            unsent.extend(Report { at: now, received: *received }.encode());
        }
        match (&self.socket).write(unsent) {
            Ok(count) => drop(unsent.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
