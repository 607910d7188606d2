//! Frames on one established connection.

use super::connect::connect;
use crate::echo::FRAME_BYTES;
use crate::load::{LoadError, Role, Token};
use platform::clock;
use platform::tcp::TcpSocket;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use units::Timestamp;

/// Bytes of a frame's first write, where there are two: a header, as many protocols send one.
const FIRST_WRITE_BYTES: usize = 8;
/// Frames that wait for room in the socket at most; a path that stands still takes no more.
const MAX_UNSENT_BYTES: usize = 1_024 * FRAME_BYTES;

/// What the frames of one window showed, in the order of sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamSeries {
    /// When each was due.
    pub(crate) scheduled: Vec<Timestamp>,
    /// From the write to the moment the program had the whole frame back; `None` = not within the time-out.
    pub(crate) round_trips: Vec<Option<Duration>>,
}

struct InFlight {
    sent: Timestamp,
    /// Its place in the series; `None` for one of an earlier window.
    index: Option<usize>,
}

pub(super) struct Stream {
    socket: TcpSocket,
    two_writes: bool,
    series: StreamSeries,
    /// The connection keeps their order.
    in_flight: VecDeque<InFlight>,
    unsent: VecDeque<u8>,
    received: usize,
    broken: bool,
}

impl Stream {
    pub(super) fn connect(
        server: SocketAddr,
        token: Option<&Token>,
        two_writes: bool,
        patience: Duration,
    ) -> Result<Self, LoadError> {
        let socket = connect(server, token, Role::Echo, patience)?;
        if !two_writes {
            let refused = |source| LoadError::System { operation: "set TCP_NODELAY", source };
            socket.set_no_delay().map_err(refused)?;
        }
        Ok(Self {
            socket,
            two_writes,
            series: StreamSeries::default(),
            in_flight: VecDeque::new(),
            unsent: VecDeque::new(),
            received: 0,
            broken: false,
        })
    }

    pub(super) fn socket(&self) -> &TcpSocket {
        &self.socket
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// A new window begins; what is under way belongs to the old one.
    pub(super) fn start(&mut self) {
        self.series = StreamSeries::default();
        self.in_flight.iter_mut().for_each(|frame| frame.index = None);
    }

    pub(super) fn send(&mut self, scheduled: Timestamp) {
        if self.broken || self.unsent.len() >= MAX_UNSENT_BYTES {
            return;
        }
        self.in_flight.push_back(InFlight { sent: clock::now(), index: Some(self.series.scheduled.len()) });
        self.series.scheduled.push(scheduled);
        self.series.round_trips.push(None);
        let frame = [0x5A; FRAME_BYTES];
        let (first, rest) = frame.split_at(if self.two_writes { FIRST_WRITE_BYTES } else { 0 });
        for piece in [first, rest].into_iter().filter(|piece| !piece.is_empty()) {
            self.unsent.extend(piece);
            self.flush();
        }
    }

    /// Writes what waits, as far as the socket takes it.
    fn flush(&mut self) {
        let bytes = self.unsent.make_contiguous();
        match (&self.socket).write(bytes) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.broken = true,
        }
    }

    pub(super) fn receive(&mut self) {
        let mut buffer = [0; 64 * FRAME_BYTES];
        match (&self.socket).read(&mut buffer) {
            Ok(0) => self.broken = true,
            Ok(count) => self.on_bytes(count, clock::now()),
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.broken = true,
        }
        if !self.unsent.is_empty() {
            self.flush();
        }
    }

    fn on_bytes(&mut self, count: usize, now: Timestamp) {
        self.received += count;
        while self.received >= FRAME_BYTES {
            self.received -= FRAME_BYTES;
            let Some(InFlight { sent, index }) = self.in_flight.pop_front() else {
                // More comes back than was sent: no echo.
                self.broken = true;
                return;
            };
            if let Some(index) = index {
                self.series.round_trips[index] = Some(now.saturating_since(sent));
            }
        }
    }

    pub(super) fn is_all_answered(&self) -> bool {
        self.broken || self.in_flight.iter().all(|frame| frame.index.is_none())
    }

    /// The window's series; frames that were not given their time by `ended` are left out.
    pub(super) fn finish(&mut self, timeout: Duration, ended: Timestamp) -> StreamSeries {
        let mut series = std::mem::take(&mut self.series);
        for answer in &mut series.round_trips {
            *answer = answer.filter(|&took| took <= timeout);
        }
        // In the order of sending: those without their time are the last ones.
        while series.round_trips.last() == Some(&None)
            && series.scheduled.last().is_some_and(|&at| ended < at + timeout)
        {
            series.round_trips.pop();
            series.scheduled.pop();
        }
        self.in_flight.iter_mut().for_each(|frame| frame.index = None);
        series
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
