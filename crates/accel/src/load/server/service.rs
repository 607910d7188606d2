//! The server's thread: all connections, whatever each of them is for.

use super::connection::{Connection, State};
use super::handover::{Greeted, Handover, Place};
use crate::load::block::BlockWriter;
use crate::load::hello::{self, Answer, Hello, NotAHello, Role};
use crate::load::policy::{Clients, Policy, client_of};
use crate::load::series::{Counters, Sent, Series};
use crate::load::{NOT_SENT_LOW_WATER_BYTES, STOP_CHECK, TICK, transfer};
use platform::clock;
use platform::poll::{Event, Interest, Poller};
use platform::tcp::TcpSocket;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{Bytes, Timestamp};

/// Connections without a complete hello; beyond, the oldest gives way, so that silent ones never bar a client.
const MAX_GREETING: usize = 256;
/// A hello has to come within this time.
const GREETING_LIMIT: Duration = Duration::from_secs(10);
/// A connection that has moved nothing for this long is closed: its peer is gone.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Token of the listener; connections count from zero.
const LISTENER: u64 = u64::MAX;

/// What happens to a connection after its turn.
enum Next {
    Stay,
    /// The peer has ended it.
    Close,
    /// It is turned away, with an answer that must reach the peer.
    Refuse,
    /// It belongs to the echo thread from now on.
    PassOn(Role),
}

/// The server's thread.
pub(super) struct Service {
    listener: TcpSocket,
    policy: Policy,
    clients: Arc<Mutex<Clients>>,
    echo: Option<Handover>,
    stop: Arc<AtomicBool>,
    series: Arc<Mutex<Series>>,
    poller: Poller,
    connections: BTreeMap<u64, Connection>,
    /// Those that are greeting, oldest first.
    greeting: BTreeSet<u64>,
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
        policy: Policy,
        echo: Option<Handover>,
        stop: Arc<AtomicBool>,
        series: Arc<Mutex<Series>>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::READ)?;
        Ok(Self {
            listener,
            clients: Arc::new(Mutex::new(Clients::new(&policy))),
            policy,
            echo,
            stop,
            series,
            poller,
            connections: BTreeMap::new(),
            greeting: BTreeSet::new(),
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
                Ok(Some((socket, peer))) => self.admit(now, socket, peer),
                Ok(None) => return Ok(()),
                Err(_) => return self.poller.change(&self.listener, LISTENER, Interest::NONE),
            }
        }
    }

    /// Starts to serve a connection; it is closed right away where that is not possible.
    fn admit(&mut self, now: Timestamp, socket: TcpSocket, peer: SocketAddr) {
        let token = self.next_token;
        let prepared = socket
            .set_not_sent_low_water(NOT_SENT_LOW_WATER_BYTES)
            .and_then(|()| self.poller.add(&socket, token, Interest::READ));
        if prepared.is_err() {
            return;
        }
        self.next_token += 1;
        let state = State::Greeting(Vec::new());
        let connection = Connection { socket, state, client: peer.ip(), last_moved: now, paused: false };
        self.connections.insert(token, connection);
        self.greeting.insert(token);
        if self.greeting.len() > MAX_GREETING
            && let Some(oldest) = self.greeting.pop_first()
            && let Some(connection) = self.connections.remove(&oldest)
        {
            self.abort(connection);
        }
    }

    fn serve(&mut self, now: Timestamp, event: Event) {
        let Some(mut connection) = self.connections.remove(&event.token) else { return };
        let next = self.advance(&mut connection, now, event);
        if !connection.is_greeting() || !matches!(next, Ok(Next::Stay)) {
            self.greeting.remove(&event.token);
        }
        match next {
            Ok(Next::Stay) => drop(self.connections.insert(event.token, connection)),
            Ok(Next::Close) => self.close(connection, now),
            // An ordinary close, so that the answer arrives.
            Ok(Next::Refuse) => {}
            Ok(Next::PassOn(role)) => self.pass_on(connection, role),
            Err(_) => self.abort(connection),
        }
    }

    /// Moves what can be moved.
    fn advance(&mut self, connection: &mut Connection, now: Timestamp, event: Event) -> io::Result<Next> {
        if connection.is_greeting() {
            return self.greet(connection, event.token, now);
        }
        let client = connection.client;
        let (way, most) = self.with_clients(|clients| {
            let way = connection.way();
            (way, clients.budget(client, way))
        });
        if most == 0 {
            connection.paused = true;
            self.poller.change(&connection.socket, event.token, Interest::NONE)?;
            return Ok(Next::Stay);
        }
        let Connection { socket, state, .. } = connection;
        let mut moved = 0;
        if event.writable
            && let State::Source(blocks) = state
        {
            moved += transfer::fill_blocks(socket, blocks, &mut self.payload, most)?;
        }
        let mut ended = Ok(false);
        if event.readable {
            let mut read = 0;
            let room = most.min(self.buffer.len());
            ended = transfer::drain(socket, &mut self.buffer[..room], |bytes| read += bytes.len() as u64);
            // Counted before an error ends the connection: what was read was received. A client of a source has
            // nothing more to say.
            if let State::Sink { received, .. } = state {
                *received += Bytes::new(read);
                self.received += Bytes::new(read);
            }
            moved += read;
        }
        if moved > 0 {
            connection.last_moved = now;
        }
        self.with_clients(|clients| clients.spend(client, way, moved));
        ended.map(|ended| if ended { Next::Close } else { Next::Stay })
    }

    /// Reads the hello, answers it and takes up the role. A client waits for the answer before it says more.
    fn greet(&mut self, connection: &mut Connection, token: u64, now: Timestamp) -> io::Result<Next> {
        let Connection { socket, state, client, .. } = connection;
        let State::Greeting(said) = state else { return Ok(Next::Stay) };
        let ended = transfer::drain(socket, &mut self.buffer[..hello::MAX_BYTES], |bytes| {
            said.extend_from_slice(bytes);
        })?;
        let hello = match Hello::parse(said) {
            _ if ended => return Ok(Next::Close),
            Ok(Some((hello, length))) if length == said.len() => hello,
            Ok(None) => return Ok(Next::Stay),
            Ok(Some(_)) | Err(NotAHello) => return Ok(Next::Close),
        };
        let peer = client_of(*client);
        let answer = self.judge(&hello, socket, peer);
        let mut socket = &connection.socket;
        let answered = socket.write(&[answer.byte()]);
        if answer != Answer::Accepted {
            return answered.map(|_| Next::Refuse);
        }
        match hello.role {
            Role::Echo | Role::Datagrams if answered.is_ok() => return Ok(Next::PassOn(hello.role)),
            Role::Source => connection.state = State::Source(BlockWriter::default()),
            _ => connection.state = State::Sink { received: Bytes::ZERO, unsent: Vec::new() },
        }
        // From here on the connection is on its client's account.
        (connection.client, connection.last_moved) = (peer, now);
        connection.report(now)?;
        self.poller.change(&connection.socket, token, connection.interest())?;
        answered.map(|_| Next::Stay)
    }

    /// Whether the client gets what it wants; if so, the connection is on its account.
    fn judge(&mut self, hello: &Hello, socket: &TcpSocket, client: IpAddr) -> Answer {
        if self.policy.token.as_ref().is_some_and(|token| !token.is(&hello.token)) {
            return Answer::WrongToken;
        }
        if self.echo.is_none() && matches!(hello.role, Role::Echo | Role::Datagrams) {
            return Answer::NotOffered;
        }
        // Reports and echoes must not wait for the acknowledgement of the one before (Nagle's algorithm): that may be
        // held up in the very queue that an upload has filled. Bulk data fill their segments anyway.
        let congestion = &hello.congestion;
        let prepared = socket
            .set_no_delay()
            .and_then(|()| if congestion.is_empty() { Ok(()) } else { socket.set_congestion(congestion) });
        if prepared.is_err() {
            return Answer::NoCongestion;
        }
        let policy = self.policy.clone();
        if self.with_clients(|clients| clients.admit(client, &policy)) {
            Answer::Accepted
        } else {
            Answer::TooMany
        }
    }

    fn pass_on(&mut self, connection: Connection, role: Role) {
        let Connection { socket, client, .. } = connection;
        let place = Place::new(client_of(client), Arc::clone(&self.clients));
        if let Some(echo) = &mut self.echo
            && self.poller.remove(&socket).is_ok()
        {
            echo.pass(Greeted { socket, role, peer: client.to_canonical(), place });
        }
    }

    /// Ends a connection that the client has ended; a sink says a last time how much has come.
    fn close(&mut self, mut connection: Connection, now: Timestamp) {
        self.settle(&connection);
        // The client may be gone altogether; then there is nobody to tell.
        drop(connection.report(now));
    }

    /// Ends a connection that goes on or has failed, without a trailing close.
    fn abort(&mut self, connection: Connection) {
        self.settle(&connection);
        let Connection { socket, .. } = connection;
        // Should that be refused, an ordinary close follows, which is slower and no worse.
        drop(socket.reset_on_close());
    }

    /// Closes the books of a connection that ends.
    fn settle(&mut self, connection: &Connection) {
        self.sent_before = self.sent_before + connection.sent();
        if !connection.is_greeting() {
            self.with_clients(|clients| clients.release(connection.client));
        }
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.poller.change(&self.listener, LISTENER, Interest::READ)?;
        self.note(now);
        self.with_clients(Clients::on_tick);
        let mut ended = Vec::new();
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = |connection: &Connection| clients.budget(connection.client, connection.way());
        for (&token, connection) in &mut self.connections {
            let limit = if connection.is_greeting() { GREETING_LIMIT } else { IDLE_LIMIT };
            let idle = now.saturating_since(connection.last_moved) > limit;
            if idle || connection.report(now).is_err() {
                ended.push(token);
            } else if connection.paused && budget(connection) > 0 {
                connection.paused = false;
                self.poller.change(&connection.socket, token, connection.interest())?;
            }
        }
        drop(clients);
        for token in ended {
            self.greeting.remove(&token);
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

    fn with_clients<T>(&self, act: impl FnOnce(&mut Clients) -> T) -> T {
        act(&mut self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
