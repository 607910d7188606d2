//! Who sends, and when.

use std::time::Duration;
use units::Timestamp;

/// IP bytes of a full segment.
pub const SEGMENT_BYTES: u32 = 1500;

/// How a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// A packet of `bytes` each `period`, whatever becomes of it.
    Steady {
        /// IP bytes of each packet.
        bytes: u32,
        /// Between two of them; at least a nanosecond.
        period: Duration,
    },
    /// Full segments without end, as many under way as a window allows that grows and halves by RFC 5681 section 3.1:
    /// slow start, congestion avoidance, one halving for each window with a loss. It tells losses from gaps, does not
    /// repeat what was lost, and starts over when nothing was acknowledged for a second (RFC 6298 section 2.4).
    Window,
}

/// Segments of the first window (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Sender {
    sending: Sending,
    /// Of a steady one: its next packet. Of a window: its start, then its timeout.
    next_at: Timestamp,
    next_seq: u64,
    window: Window,
}

#[derive(Clone, Debug)]
struct Window {
    started: bool,
    segments: f64,
    threshold: f64,
    in_flight: u64,
    /// The lowest sequence number not known to be delivered or lost.
    expected: u64,
    /// Losses below this one belong to a halving that has been done.
    recover: u64,
}

impl Sender {
    pub(super) fn new(start: Timestamp, sending: Sending) -> Self {
        let window = Window {
            started: false,
            segments: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            in_flight: 0,
            expected: 0,
            recover: 0,
        };
        Self { sending, next_at: start, next_seq: 0, window }
    }

    /// When it has something to do without being acknowledged.
    pub(super) fn next_event(&self) -> Timestamp {
        self.next_at
    }

    /// Sequence number and bytes of a packet to send now. Ask until `None`.
    pub(super) fn next_packet(&mut self, now: Timestamp) -> Option<(u64, u32)> {
        let bytes = match self.sending {
            Sending::Steady { bytes, period } => {
                if now < self.next_at {
                    return None;
                }
                self.next_at += period.max(Duration::from_nanos(1));
                bytes
            }
            Sending::Window => {
                self.check_timer(now);
                if !self.window.started || self.window.in_flight as f64 + 1.0 > self.window.segments {
                    return None;
                }
                self.window.in_flight += 1;
                SEGMENT_BYTES
            }
        };
        self.next_seq += 1;
        Some((self.next_seq - 1, bytes))
    }

    /// Packet `seq` has been delivered.
    pub(super) fn on_acknowledgement(&mut self, now: Timestamp, seq: u64) {
        if self.sending == Sending::Window && seq >= self.window.expected {
            self.window.on_acknowledgement(seq, self.next_seq);
            self.next_at = now + RETRANSMISSION_TIMEOUT;
        }
    }

    fn check_timer(&mut self, now: Timestamp) {
        if now < self.next_at {
            return;
        }
        if self.window.started {
            self.window.start_over(self.next_seq);
        }
        self.window.started = true;
        self.next_at = now + RETRANSMISSION_TIMEOUT;
    }
}

impl Window {
    fn on_acknowledgement(&mut self, seq: u64, next_seq: u64) {
        let lost = seq - self.expected;
        self.in_flight = self.in_flight.saturating_sub(1 + lost);
        self.expected = seq + 1;
        if lost > 0 && seq >= self.recover {
            self.threshold = (self.segments / 2.0).max(2.0);
            self.segments = self.threshold;
            self.recover = next_seq;
        } else if self.segments < self.threshold {
            self.segments += 1.0;
        } else {
            self.segments += 1.0 / self.segments;
        }
    }

    fn start_over(&mut self, next_seq: u64) {
        self.threshold = (self.segments / 2.0).max(2.0);
        self.segments = 1.0;
        self.in_flight = 0;
        (self.expected, self.recover) = (next_seq, next_seq);
    }
}
