//! The client's thread: starts the flows, moves their bytes, notes the counters.

use super::{LoadPlan, Shown};
use crate::load::hello::{Answer, Hello, Role};
use crate::load::report::ReportReader;
use crate::load::series::{Counters, Sent};
use crate::load::token::Token;
use crate::load::{LoadError, NOT_SENT_LOW_WATER_BYTES, STOP_CHECK, TICK, transfer};
use platform::clock;
use platform::poll::{Event, Interest, Poller};
use platform::tcp::TcpSocket;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use units::{Bytes, Timestamp};

/// Between the starts of two flows, so that their slow starts do not run in lockstep.
const STAGGER: Duration = Duration::from_millis(5);
/// Longest wait for a handshake and the answer to the hello: room for two or three retransmitted SYNs (after 1, 3 and 7 s by RFC 6298).
const START_TIMEOUT: Duration = Duration::from_secs(8);
/// Longest silence of all flows together; even an upload that makes no progress gets reports.
const SILENCE_LIMIT: Duration = Duration::from_secs(8);

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
    /// `Some` until the server has answered the hello.
    starting_since: Option<Timestamp>,
    /// Whether the hello has been said.
    greeted: bool,
    reports: ReportReader,
}

/// The client's thread.
pub(super) struct Worker {
    plan: LoadPlan,
    token: Option<Token>,
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
    pub(super) fn open(plan: LoadPlan, token: Option<Token>, shown: Arc<Shown>) -> io::Result<Self> {
        Ok(Self {
            plan,
            token,
            shown,
            poller: Poller::new()?,
            flows: Vec::new(),
            received: Bytes::ZERO,
            last_heard: clock::now(),
            buffer: transfer::read_buffer(),
            payload: transfer::payload(),
        })
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), LoadError> {
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
        self.flows.push(Flow { role, number, socket, starting_since: Some(now), greeted: false, reports });
        self.last_heard = now;
        Ok(())
    }

    fn connect_error(&self, source: io::Error) -> LoadError {
        LoadError::Connect { server: self.plan.server, source }
    }

    fn serve(&mut self, now: Timestamp, event: Event) -> Result<(), LoadError> {
        // Tokens are indices of flows, which are never removed.
        let index = event.token as usize;
        let flow = &self.flows[index];
        if !flow.greeted {
            return self.on_connected(index);
        }
        if flow.starting_since.is_some() {
            return self.on_answer(now, index);
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

    /// The handshake has ended: says hello.
    fn on_connected(&mut self, index: usize) -> Result<(), LoadError> {
        let flow = &mut self.flows[index];
        flow.greeted = true;
        let token = self.token.as_ref().map_or(Vec::new(), |token| token.as_bytes().to_vec());
        let hello = Hello { role: flow.role, congestion: self.plan.congestion.clone(), token }.encode();
        let greeted = flow.socket.take_error().and_then(|error| error.map_or(Ok(()), Err)).and_then(|()| {
            // The send buffer is empty and takes a few bytes whole.
            (&flow.socket).write_all(&hello)?;
            self.poller.change(&flow.socket, index as u64, Interest::READ)
        });
        greeted.map_err(|source| self.connect_error(source))
    }

    /// The server has answered: lets the flow run, if it may.
    fn on_answer(&mut self, now: Timestamp, index: usize) -> Result<(), LoadError> {
        let flow = &mut self.flows[index];
        let mut answer = [0];
        let read = match (&flow.socket).read(&mut answer) {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it hung up; is it an accel of this version?",
            )),
            Ok(_) => Ok(Answer::of(answer[0]).unwrap_or(Answer::NotOffered)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => Err(error),
        };
        flow.starting_since = None;
        let interest = if flow.role == Role::Sink { Interest::READ_WRITE } else { Interest::READ };
        let changed = self.poller.change(&flow.socket, index as u64, interest);
        let answer = read.and_then(|answer| changed.map(|()| answer)).map_err(|e| self.connect_error(e))?;
        if let Some(reason) = answer.refusal() {
            return Err(LoadError::TurnedAway { server: self.plan.server, reason });
        }
        self.shown.established.fetch_add(1, Ordering::Relaxed);
        self.last_heard = now;
        Ok(())
    }

    /// Moves what can be moved; whether the server has ended the flow.
    fn transfer(&mut self, now: Timestamp, index: usize, event: Event) -> io::Result<bool> {
        if self.shown.moved.load(Ordering::Relaxed) >= self.shown.most {
            return self.rest(index);
        }
        let flow = &mut self.flows[index];
        if event.writable && flow.role == Role::Sink {
            let taken = transfer::fill(&flow.socket, &self.payload)?;
            self.shown.moved.fetch_add(taken, Ordering::Relaxed);
        }
        if !event.readable {
            return Ok(false);
        }
        self.last_heard = now;
        let Flow { role, number, socket, reports, .. } = flow;
        match role {
            Role::Source => {
                let mut downloads = self.shown.downloads.lock().unwrap_or_else(PoisonError::into_inner);
                transfer::drain(socket, &mut self.buffer, |bytes| {
                    self.received += Bytes::new(bytes.len() as u64);
                    self.shown.moved.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    downloads[*number].push(now, bytes);
                })
            }
            _ => {
                let mut uploads = self.shown.uploads.lock().unwrap_or_else(PoisonError::into_inner);
                transfer::drain(socket, &mut self.buffer, |bytes| {
                    reports.push(bytes, |report| uploads.on_report(now, *number, report));
                })
            }
        }
    }

    /// The flow has moved all it may: it is looked at no more.
    fn rest(&mut self, index: usize) -> io::Result<bool> {
        self.poller.change(&self.flows[index].socket, index as u64, Interest::NONE)?;
        Ok(false)
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), LoadError> {
        self.note(now);
        let is_overdue = |since: Timestamp| now.saturating_since(since) > START_TIMEOUT;
        if self.flows.iter().any(|flow| flow.starting_since.is_some_and(is_overdue)) {
            return Err(self.connect_error(io::ErrorKind::TimedOut.into()));
        }
        let silence = now.saturating_since(self.last_heard);
        let may_move = self.shown.moved.load(Ordering::Relaxed) < self.shown.most;
        if may_move && silence > SILENCE_LIMIT && !self.flows.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use platform::tcp::available_congestion_controls;

    #[test]
    fn a_flow_has_the_congestion_control_asked_for() {
        let server = "127.0.0.1:9".parse().unwrap();
        for congestion in available_congestion_controls().unwrap() {
            let plan = LoadPlan { server, up_flows: 1, down_flows: 0, congestion };
            match open_socket(&plan) {
                Ok(socket) => assert_eq!(socket.congestion().unwrap(), plan.congestion),
                Err(error) => assert!(matches!(error, LoadError::ReservedCongestion { .. }), "{error}"),
            }
        }
    }
}
