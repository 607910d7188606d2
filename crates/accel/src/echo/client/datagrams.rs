//! Datagrams of one size, and which way the lost ones were lost.

use super::connect::{connect, read_exact};
use crate::echo::{Answer, Question, Session};
use crate::load::{LoadError, Role, Token};
use platform::clock;
use platform::tcp::TcpSocket;
use platform::udp::UdpSocket;
use std::net::SocketAddr;
use std::time::Duration;
use units::Timestamp;

/// UDP and IP headers (RFC 768, RFC 791, RFC 8200).
const UDP_HEADER_BYTES: usize = 8;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// Longest answer.
const MAX_ANSWER_BYTES: usize = 2_000;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It came back.
    Answered,
    /// It did not reach the server.
    LostUp,
    /// It reached the server, and the answer did not come back.
    LostDown,
    /// No later answer tells.
    Unknown,
}

/// The datagrams of one window, in the order of sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatagramSeries {
    /// IP bytes of each.
    pub(crate) ip_bytes: u32,
    /// When each was due.
    pub(crate) scheduled: Vec<Timestamp>,
    /// The time on the way there and back, without that in the server; `None` = lost.
    pub(crate) round_trips: Vec<Option<Duration>>,
    /// From the client's clock to the server's, in ns; the clocks do not agree.
    pub(crate) up_ns: Vec<Option<i128>>,
    /// From the server's clock to the client's, in ns.
    pub(crate) down_ns: Vec<Option<i128>>,
    /// What became of each.
    pub(crate) fates: Vec<Fate>,
}

pub(super) struct Datagrams {
    /// Keeps the session alive.
    _control: TcpSocket,
    socket: UdpSocket,
    session: Session,
    bytes: usize,
    ip_bytes: u32,
    next_sequence: u32,
    /// Of the current window.
    first_sequence: u32,
    series: DatagramSeries,
    /// Whether the server has said that the question arrived.
    arrived: Vec<bool>,
    /// Whether the server has said anything about it.
    told: Vec<bool>,
}

impl Datagrams {
    pub(super) fn connect(
        server: SocketAddr,
        token: Option<&Token>,
        bytes: usize,
        patience: Duration,
    ) -> Result<Self, LoadError> {
        let control = connect(server, token, Role::Datagrams, patience)?;
        let mut session = Session::default();
        read_exact(&control, &mut session, clock::now() + patience)
            .map_err(|source| LoadError::Connect { server, source })?;
        let refused = |source| LoadError::System { operation: "open a UDP socket", source };
        let socket = UdpSocket::connect(server).map_err(refused)?;
        let header = if server.is_ipv4() { IPV4_HEADER_BYTES } else { IPV6_HEADER_BYTES };
        Ok(Self {
            _control: control,
            socket,
            session,
            bytes,
            // A datagram fits into a packet.
            ip_bytes: (header + UDP_HEADER_BYTES + bytes) as u32,
            next_sequence: 0,
            first_sequence: 0,
            series: DatagramSeries::default(),
            arrived: Vec::new(),
            told: Vec::new(),
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Whether the session has ended with its connection.
    pub(super) fn is_broken(&self) -> bool {
        let mut byte = [0];
        let heard = std::io::Read::read(&mut &self._control, &mut byte);
        !matches!(heard, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    pub(super) fn start(&mut self) {
        self.series = DatagramSeries { ip_bytes: self.ip_bytes, ..DatagramSeries::default() };
        self.first_sequence = self.next_sequence;
        (self.arrived, self.told) = (Vec::new(), Vec::new());
    }

    pub(super) fn send(&mut self, scheduled: Timestamp) {
        let mut datagram = vec![0x5A; self.bytes];
        let question = Question { session: self.session, sequence: self.next_sequence, sent: clock::now() };
        question.write(&mut datagram);
        if self.socket.send(&datagram).is_err() {
            // It has not left this machine: neither lost nor answered.
            return;
        }
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.series.scheduled.push(scheduled);
        self.series.round_trips.push(None);
        self.series.up_ns.push(None);
        self.series.down_ns.push(None);
        self.arrived.push(false);
        self.told.push(false);
    }

    pub(super) fn receive(&mut self) {
        let mut buffer = [0; MAX_ANSWER_BYTES];
        // An error is what ICMP says of an earlier question, which is lost.
        while let Ok(Some(arrival)) = self.socket.receive(&mut buffer) {
            if let Some(answer) = Answer::read(&buffer[..arrival.bytes])
                && answer.question.session == self.session
            {
                self.on_answer(&answer, arrival.at);
            }
        }
    }

    fn on_answer(&mut self, answer: &Answer, at: Timestamp) {
        let Answer { question, arrived, answered, window, .. } = *answer;
        for back in 0..u64::BITS {
            if let Some(index) = question.sequence.checked_sub(back).and_then(|s| self.index(s)) {
                self.told[index] = true;
                self.arrived[index] |= window >> back & 1 == 1;
            }
        }
        let Some(index) = self.index(question.sequence) else { return };
        if self.series.round_trips[index].is_some() {
            return;
        }
        let minus = |a: Timestamp, b: Timestamp| i128::from(a.as_nanos()) - i128::from(b.as_nanos());
        let in_server = answered.saturating_since(arrived);
        let whole = at.saturating_since(question.sent);
        self.series.round_trips[index] = Some(whole.saturating_sub(in_server));
        self.series.up_ns[index] = Some(minus(arrived, question.sent));
        self.series.down_ns[index] = Some(minus(at, answered));
    }

    /// The place of a question in the series; `None` for one of an earlier window.
    fn index(&self, sequence: u32) -> Option<usize> {
        let index = sequence.checked_sub(self.first_sequence)? as usize;
        (index < self.series.scheduled.len()).then_some(index)
    }

    pub(super) fn is_all_answered(&self) -> bool {
        self.series.round_trips.iter().all(Option::is_some)
    }

    /// The window's series; datagrams that were not given their time by `ended` are left out.
    pub(super) fn finish(&mut self, timeout: Duration, ended: Timestamp) -> DatagramSeries {
        let mut series = std::mem::take(&mut self.series);
        series.ip_bytes = self.ip_bytes;
        let fate =
            |(index, took): (usize, &Option<Duration>)| match (took, self.told[index], self.arrived[index]) {
                (Some(_), ..) => Fate::Answered,
                (None, true, true) => Fate::LostDown,
                (None, true, false) => Fate::LostUp,
                (None, false, _) => Fate::Unknown,
            };
        series.fates = series.round_trips.iter().enumerate().map(fate).collect();
        let kept = |index: usize| {
            series.fates[index] == Fate::Answered || ended >= series.scheduled[index] + timeout
        };
        let keep = (0..series.scheduled.len()).rposition(kept).map_or(0, |last| last + 1);
        series.scheduled.truncate(keep);
        series.round_trips.truncate(keep);
        series.up_ns.truncate(keep);
        series.down_ns.truncate(keep);
        series.fates.truncate(keep);
        series
    }
}
