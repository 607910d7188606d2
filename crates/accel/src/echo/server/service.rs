//! The echo's thread.

use super::connection::{Connection, Kind};
use super::session::Arrivals;
use crate::echo::{Question, Session};
use crate::load::{Greeted, Role, Takeover};
use platform::poll::{Interest, Poller};
use platform::udp::UdpSocket;
use platform::{clock, random};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Timestamp;

/// Between two looks at idle connections; also how soon a stop is noticed.
const TICK: Duration = Duration::from_millis(100);
/// A connection whose frames or datagrams have ceased for this long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// Datagrams taken before the connections have their turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Longest datagram that is answered: an Ethernet frame's.
const MAX_DATAGRAM_BYTES: usize = 1_500;
const WAKE: u64 = u64::MAX;
const UDP: u64 = u64::MAX - 1;

pub(super) struct Service {
    udp: UdpSocket,
    takeover: Takeover,
    stop: Arc<AtomicBool>,
    poller: Poller,
    connections: BTreeMap<u64, Connection>,
    /// The connections that keep sessions, by name.
    sessions: BTreeMap<Session, u64>,
    next_token: u64,
}

impl Service {
    pub(super) fn open(udp: UdpSocket, takeover: Takeover, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&takeover.wake, WAKE, Interest::READ)?;
        poller.add(&udp, UDP, Interest::READ)?;
        let (connections, sessions) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { udp, takeover, stop, poller, connections, sessions, next_token: 0 })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        clock::set_exact_timers()?;
        let mut next_tick = clock::now() + TICK;
        while !self.stop.load(Ordering::Relaxed) {
            let events = self.poller.wait(next_tick)?.to_vec();
            let now = clock::now();
            if now >= next_tick {
                self.tick(now);
                next_tick = now + TICK;
            }
            for event in events {
                match event.token {
                    WAKE => self.take_over(now)?,
                    UDP => self.answer_datagrams(now),
                    token => self.serve(token, now),
                }
            }
        }
        Ok(())
    }

    fn take_over(&mut self, now: Timestamp) -> io::Result<()> {
        let mut wake = &self.takeover.wake;
        while wake.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        while let Ok(greeted) = self.takeover.receiver.try_recv() {
            self.admit(greeted, now)?;
        }
        Ok(())
    }

    fn admit(&mut self, greeted: Greeted, now: Timestamp) -> io::Result<()> {
        let Greeted { socket, role, peer, place } = greeted;
        let token = self.next_token;
        self.next_token += 1;
        let kind = if role == Role::Datagrams {
            let mut session = Session::default();
            random::fill(&mut session)?;
            // The send buffer is empty; a client that has gone is found out later.
            if (&socket).write_all(&session).is_err() {
                return Ok(());
            }
            self.sessions.insert(session, token);
            Kind::Datagrams { session, peer, arrivals: Arrivals::default() }
        } else {
            Kind::Echo { partial: Vec::new(), unsent: Vec::new() }
        };
        if self.poller.add(&socket, token, Interest::READ).is_ok() {
            self.connections.insert(token, Connection { socket, kind, last_moved: now, _place: place });
        }
        Ok(())
    }

    fn serve(&mut self, token: u64, now: Timestamp) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let goes_on = connection.advance(now).unwrap_or(false);
        let interest = if connection.is_full() { Interest::WRITE } else { Interest::READ };
        if !goes_on || self.poller.change(&connection.socket, token, interest).is_err() {
            self.end(token);
        }
    }

    fn end(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(&token)
            && let Kind::Datagrams { session, .. } = connection.kind
        {
            self.sessions.remove(&session);
        }
    }

    fn answer_datagrams(&mut self, now: Timestamp) {
        let mut buffer = [0; MAX_DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_PER_TURN {
            // An error is what ICMP says of an earlier answer: its client is gone.
            let Ok(Some(arrival)) = self.udp.receive(&mut buffer) else { return };
            let datagram = &mut buffer[..arrival.bytes];
            let Some(question) = Question::read(datagram) else { continue };
            let Some(token) = self.sessions.get(&question.session) else { continue };
            let Some(connection) = self.connections.get_mut(token) else { continue };
            let Kind::Datagrams { peer, arrivals, .. } = &mut connection.kind else { continue };
            if *peer != arrival.from.ip().to_canonical() {
                continue;
            }
            connection.last_moved = now;
            if let Some(answer) = arrivals.answer(question, arrival.at, clock::now()) {
                answer.write(datagram);
                // A full send buffer loses it, as any queue may.
                drop(self.udp.send_to(datagram, arrival.from));
            }
        }
    }

    fn tick(&mut self, now: Timestamp) {
        let mut idle = Vec::new();
        for (&token, connection) in &mut self.connections {
            if let Kind::Datagrams { arrivals, .. } = &mut connection.kind {
                arrivals.on_tick();
            }
            if now.saturating_since(connection.last_moved) > IDLE_LIMIT {
                idle.push(token);
            }
        }
        idle.into_iter().for_each(|token| self.end(token));
    }
}
