//! One TCP connection: two senders, the handshake, and its round trips.

use super::estimate::ConnectionRtt;
use super::sender::Sender;
use super::sequence::{are_near, is_before};
use super::{Heading, Observation, RttSample, Timed};
use std::time::Duration;
use units::Timestamp;
use wire::{SackBlocks, TcpFlags, TcpSegment};

/// Which of a connection's two ends sent a packet; an index.
pub(super) type Side = usize;

/// How a segment came by.
pub(super) struct Arrival {
    pub now: Timestamp,
    pub heading: Heading,
    /// Who sent it.
    pub side: Side,
    /// Segments that may be timed at once.
    pub room: usize,
    /// The whole packet.
    pub bytes: u32,
}

/// How far the opening has come.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// Who sent the SYN, and when.
    syn: Option<(Side, Timestamp)>,
    /// When the SYN-ACK was sent, and its sequence number.
    syn_ack: Option<(Timestamp, u32)>,
    /// Completed, or not to be timed.
    done: bool,
}

/// The state of a connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    senders: [Sender; 2],
    handshake: Handshake,
    rtt: ConnectionRtt,
}

impl Connection {
    pub fn on_segment(&mut self, at: &Arrival, segment: &TcpSegment, sacks: &SackBlocks) -> Observation {
        let mut seen = Observation::default();
        let is_syn = segment.flags.has(TcpFlags::SYN);
        if is_syn {
            self.on_syn(at, segment, &mut seen);
        }
        let is_reset = segment.flags.has(TcpFlags::RST);
        if segment.flags.has(TcpFlags::ACK) && !is_reset {
            if !is_syn {
                seen.handshake = self.complete_handshake(at, segment);
            }
            if at.heading != Heading::Out {
                seen.sample = self.on_acknowledgement(at, segment, sacks);
            }
        }
        if !is_reset && at.heading != Heading::In {
            let controls = u32::from(is_syn) + u32::from(segment.flags.has(TcpFlags::FIN));
            let length = segment.payload_bytes.saturating_add(controls);
            let is_again = self.senders[at.side].on_sent(at.now, segment.seq, length, at.room);
            seen.retransmit = is_again && !is_syn;
            self.rtt.on_sent(at.now, at.bytes);
        }
        seen
    }

    fn on_acknowledgement(
        &mut self,
        at: &Arrival,
        segment: &TcpSegment,
        sacks: &SackBlocks,
    ) -> Option<RttSample> {
        let rtt = self.senders[1 - at.side].on_acknowledgement(at.now, segment.ack, sacks)?;
        self.rtt.on_sample(at.now, rtt);
        let timed = if segment.flags.has(TcpFlags::SYN) { Timed::Syn } else { Timed::Segment };
        Some(RttSample { rtt, timed })
    }

    /// Tells a new connection on the same ports from a repeated SYN or SYN-ACK, by the initial sequence number.
    fn on_syn(&mut self, at: &Arrival, segment: &TcpSegment, seen: &mut Observation) {
        let (own, peer) = (&self.senders[at.side], &self.senders[1 - at.side]);
        if own.initial == Some(segment.seq) {
            seen.syn_retransmit = true;
            self.handshake.done = true; // Karn's rule: which of the two was answered cannot be known
            return;
        }
        let answers = |ack: u32, to: &Sender| to.initial.is_some_and(|syn| is_past(ack, syn));
        let belongs = if segment.flags.has(TcpFlags::ACK) {
            answers(segment.ack, peer) // also with another number than before, as SYN cookies do
        } else {
            own.initial.is_none() && own.acknowledged() == Some(segment.seq.wrapping_add(1)) // overtaken by its answer
        };
        if !belongs {
            seen.new_connection = true;
            *self = Self::default();
        } else if own.initial.is_some() {
            self.senders[at.side] = Sender::default();
        }
        self.senders[at.side].initial = Some(segment.seq);
        if segment.flags.has(TcpFlags::ACK) {
            self.handshake.syn_ack = Some((at.now, segment.seq));
        } else {
            self.handshake.syn = Some((at.side, at.now));
        }
    }

    /// The time from the SYN to its sender's first acknowledgement, which can only be that of the SYN-ACK. Where the
    /// SYN-ACK was seen, the three must be stamped in this order.
    fn complete_handshake(&mut self, at: &Arrival, segment: &TcpSegment) -> Option<Duration> {
        let Handshake { syn: Some((side, sent)), syn_ack, done: false } = self.handshake else { return None };
        let answers = syn_ack.is_none_or(|(_, initial)| is_past(segment.ack, initial));
        let follows = self.senders[side].initial.is_some_and(|initial| is_past(segment.seq, initial));
        if at.side != side || !answers || !follows {
            return None;
        }
        self.handshake.done = true;
        let answered = syn_ack.map_or(sent, |(time, _)| time);
        (sent <= answered && answered <= at.now).then(|| at.now - sent)
    }

    pub fn rtt(&self) -> &ConnectionRtt {
        &self.rtt
    }

    /// Segments of one side that are under way.
    pub fn segments_of(&self, side: Side) -> usize {
        self.senders[side].len()
    }

    /// Segments under way in both directions.
    pub fn segments(&self) -> usize {
        self.senders.iter().map(Sender::len).sum()
    }

    pub fn memory_bytes(&self) -> usize {
        self.senders.iter().map(Sender::memory_bytes).sum()
    }
}

/// Whether `number` lies behind the SYN numbered `initial`, perhaps with data between, sent with it (RFC 7413) or soon
/// after.
fn is_past(number: u32, initial: u32) -> bool {
    is_before(initial, number) && are_near(initial, number)
}
