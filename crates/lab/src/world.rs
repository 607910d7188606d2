//! A small world in virtual time: senders, a shaper if wanted, a line, and the way back.
//!
//! ```text
//! Sender .. --> engine::Shaper (or none) --> Link --> delay of each packet noted
//!    ^                                                  |
//!    +---------------- acknowledgement <- return delay -+
//! ```
//! The loop jumps from event to event; nothing waits and nothing is random but the [`Link`]'s seeded loss and jitter,
//! so the same world always ends the same.

mod sender;

pub use sender::{SEGMENT_BYTES, Sending};

use crate::{Dropped, Link, LinkConfig, LinkPoll, LinkStats};
use engine::{Class, Packet, Poll, Shaper, ShaperConfig};
use sender::Sender;
use std::collections::VecDeque;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};
use wire::Ecn;

/// What a world is made of.
#[derive(Clone, Copy, Debug)]
pub struct WorldConfig {
    /// In front of the line; `None` sends straight into its FIFO.
    pub shaper: Option<ShaperConfig>,
    /// The line.
    pub link: LinkConfig,
    /// From a packet's delivery to its acknowledgement at the sender.
    pub return_delay: Duration,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    sender: usize,
    seq: u64,
    bytes: u32,
    sent: Timestamp,
}

/// What became of one sender's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped by shaper, FIFO or line.
    pub dropped: u64,
    /// Bytes delivered.
    pub delivered: Bytes,
    /// From sending to delivery, for each packet delivered, in that order.
    pub delays: Vec<Duration>,
}

impl Report {
    /// The delay that a share of `quantile` (0 to 1) of the delivered packets did not exceed; `None` without any.
    pub fn delay(&self, quantile: f64) -> Option<Duration> {
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as f64 * quantile).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }

    /// Delivered bytes over `span`.
    pub fn goodput(&self, span: Duration) -> Rate {
        Rate::of(self.delivered, span)
    }
}

/// Senders, shaper and line, with a clock of their own that begins at zero.
pub struct World {
    now: Timestamp,
    return_delay: Duration,
    shaper: Option<Shaper<Parcel>>,
    /// When the shaper wants to be asked again.
    shaper_at: Timestamp,
    link: Link<Parcel>,
    senders: Vec<Sender>,
    reports: Vec<Report>,
    /// In order of time, since the delay is the same for all.
    acknowledgements: VecDeque<(Timestamp, Parcel)>,
}

impl World {
    /// A world without senders.
    pub fn new(config: WorldConfig) -> Self {
        Self {
            now: Timestamp::ZERO,
            return_delay: config.return_delay,
            shaper: config.shaper.map(Shaper::new),
            shaper_at: Timestamp::MAX,
            link: Link::new(config.link),
            senders: Vec::new(),
            reports: Vec::new(),
            acknowledgements: VecDeque::new(),
        }
    }

    /// Adds a sender that begins at `start` and returns its number.
    pub fn add(&mut self, start: Timestamp, sending: Sending) -> usize {
        self.senders.push(Sender::new(start, sending));
        self.reports.push(Report::default());
        self.senders.len() - 1
    }

    /// Lets everything happen up to and including `end`.
    pub fn run_until(&mut self, end: Timestamp) {
        loop {
            self.happen();
            let next = self.next_event();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
        }
    }

    /// What became of a sender's packets.
    pub fn report(&self, sender: usize) -> &Report {
        &self.reports[sender]
    }

    /// Forgets what was reported so far: the ramp is over.
    pub fn clear_reports(&mut self) {
        self.reports.fill(Report::default());
    }

    /// What the line has done.
    pub fn link_stats(&self) -> &LinkStats {
        self.link.stats()
    }

    /// Everything due now, from the sinks to the sources, so that an acknowledgement can release a packet.
    fn happen(&mut self) {
        while let LinkPoll::Deliver(parcel) = self.link.poll(self.now) {
            self.deliver(parcel);
        }
        while let Some((_, parcel)) = self.acknowledgements.pop_front_if(|(at, _)| *at <= self.now) {
            self.senders[parcel.sender].on_acknowledgement(self.now, parcel.seq);
        }
        for sender in 0..self.senders.len() {
            while let Some((seq, bytes)) = self.senders[sender].next_packet(self.now) {
                self.enter(Parcel { sender, seq, bytes, sent: self.now });
            }
        }
        self.serve_shaper();
    }

    fn next_event(&self) -> Timestamp {
        let senders = self.senders.iter().map(Sender::next_event);
        let acknowledged = self.acknowledgements.front().map(|(at, _)| *at);
        let fixed = [Some(self.shaper_at), self.link.next_due(), acknowledged];
        senders.chain(fixed.into_iter().flatten()).min().unwrap_or(Timestamp::MAX)
    }

    fn enter(&mut self, parcel: Parcel) {
        self.reports[parcel.sender].sent += 1;
        let Some(shaper) = &mut self.shaper else { return self.transmit(parcel) };
        let packet = Packet {
            handle: parcel,
            // Spreads the numbers over 64 bits, as a hash does (Knuth's multiplier, 2^64 / golden ratio).
            flow: (parcel.sender as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            bytes: parcel.bytes,
            segment_bytes: 0,
            header_bytes: 40,
            ecn: Ecn::NotEct,
            class: Class::Normal,
        };
        shaper.push(self.now, packet);
    }

    fn serve_shaper(&mut self) {
        self.shaper_at = loop {
            let Some(shaper) = &mut self.shaper else { break Timestamp::MAX };
            match shaper.poll(self.now) {
                Poll::Send { handle, .. } => self.transmit(handle),
                Poll::Drop { handle, .. } => self.reports[handle.sender].dropped += 1,
                Poll::WaitUntil(at) => break at,
                Poll::Idle => break Timestamp::MAX,
            }
        };
    }

    fn transmit(&mut self, parcel: Parcel) {
        if let Err(Dropped { packet, .. }) = self.link.push(self.now, parcel.bytes.into(), parcel) {
            self.reports[packet.sender].dropped += 1;
        }
    }

    fn deliver(&mut self, parcel: Parcel) {
        let report = &mut self.reports[parcel.sender];
        report.delivered += parcel.bytes.into();
        report.delays.push(self.now - parcel.sent);
        self.acknowledgements.push_back((self.now + self.return_delay, parcel));
    }
}

#[cfg(test)]
mod tests;
