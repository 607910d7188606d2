//! One direction of a line: a FIFO in front of a transmitter of fixed rate, then loss, delay and jitter.
//!
//! ```text
//! push -> [FIFO, drop-tail] -> transmitter: bytes * 8 / rate -> lost? -> delay + jitter -> poll
//! ```
//! The transmitter has its own virtual clock: a packet is due at
//! `max(arrival, next_free) + bytes * 8 / rate + delay`, so the rate is exact however late the caller polls, and a
//! late timer shows as jitter of the delivery only. The part of a nanosecond that a packet leaves over is carried to
//! the next one.

use crate::Pcg32;
use std::collections::VecDeque;
use std::time::Duration;
use units::{Bytes, Rate, Ratio, Timestamp};

/// How much may wait, the packet under transmission included. A packet that would exceed it is dropped, unless the
/// line is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// The time that the whole backlog takes to transmit. No limit on a link without a rate.
    Time(Duration),
    /// The bytes of the backlog.
    Bytes(Bytes),
    /// The packets of the backlog, whatever their size.
    Packets(u32),
}

/// What a [`Link`] does to packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// The transmitter's rate for IP bytes; `None` is a line without a bottleneck.
    pub rate: Option<Rate>,
    /// From the end of transmission to delivery, without jitter.
    pub delay: Duration,
    /// Added to the delay, drawn evenly from zero to this for each packet. A packet never overtakes another unless
    /// [`Link::allow_reordering`] was called: it waits for the one before it.
    pub jitter: Duration,
    /// The share of packets that disappear on the line, each by chance of its own. They take transmission time.
    pub loss: Ratio,
    /// The FIFO's limit.
    pub queue: QueueLimit,
    /// Of the random numbers for loss and jitter.
    pub seed: u64,
}

/// Why a packet was not taken to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The FIFO was full.
    Queue,
    /// Lost on the line.
    Loss,
}

/// A packet that will not be delivered, handed back so that its buffer can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Why.
    pub reason: DropReason,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPoll<P> {
    /// This packet has arrived at the other end. Poll again.
    Deliver(P),
    /// Nothing is due before this.
    WaitUntil(Timestamp),
    /// Nothing is under way.
    Idle,
}

/// What a [`Link`] has done; only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets pushed.
    pub pushed: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// IP bytes delivered.
    pub delivered_bytes: u64,
    /// Packets that the FIFO had no room for.
    pub queue_drops: u64,
    /// Packets lost on the line.
    pub losses: u64,
    /// The largest backlog right after a packet was taken, as time to transmit.
    pub largest_backlog: Duration,
    /// The same in bytes.
    pub largest_backlog_bytes: Bytes,
}

/// One direction of a line that carries packets `P`, opaque to it.
#[derive(Clone, Debug)]
pub struct Link<P> {
    config: LinkConfig,
    random: Pcg32,
    reordering: bool,
    transmitter: Transmitter,
    /// In the order of delivery.
    under_way: VecDeque<UnderWay<P>>,
    stats: LinkStats,
}

impl<P> Link<P> {
    /// An idle link.
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            random: Pcg32::new(config.seed),
            reordering: false,
            transmitter: Transmitter::default(),
            under_way: VecDeque::new(),
            stats: LinkStats::default(),
        }
    }

    /// Lets jitter reorder packets.
    #[must_use]
    pub fn allow_reordering(mut self) -> Self {
        self.reordering = true;
        self
    }

    /// Takes a packet of `bytes` IP bytes that arrived at `now`.
    ///
    /// # Errors
    /// Hands the packet back when the FIFO is full, and when it will be lost on the line (it has taken its
    /// transmission time then).
    pub fn push(&mut self, now: Timestamp, bytes: Bytes, packet: P) -> Result<(), Dropped<P>> {
        self.stats.pushed += 1;
        self.transmitter.advance(now);
        if !self.transmitter.has_room(now, bytes, self.config) {
            self.stats.queue_drops += 1;
            return Err(Dropped { packet, reason: DropReason::Queue });
        }
        let sent = self.transmitter.take(now, bytes, self.config.rate);
        self.stats.largest_backlog = self.stats.largest_backlog.max(sent - now);
        self.stats.largest_backlog_bytes =
            self.stats.largest_backlog_bytes.max(self.transmitter.backlog_bytes);
        let (lost, extra) = self.draw();
        if lost {
            self.stats.losses += 1;
            return Err(Dropped { packet, reason: DropReason::Loss });
        }
        self.send_off(sent + self.config.delay + extra, bytes, packet);
        Ok(())
    }

    /// What is due at `now`. Call until it is not [`LinkPoll::Deliver`].
    pub fn poll(&mut self, now: Timestamp) -> LinkPoll<P> {
        match self.next_due() {
            None => LinkPoll::Idle,
            Some(due) if due > now => LinkPoll::WaitUntil(due),
            Some(_) => self.deliver(),
        }
    }

    /// When the next packet is due at the other end; `None` when nothing is under way.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.under_way.front().map(|first| first.due)
    }

    /// Packets taken and not yet delivered: in the FIFO, under transmission and on the line.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// What the backlog at `now` takes to transmit.
    pub fn backlog(&self, now: Timestamp) -> Duration {
        self.transmitter.next_free - now
    }

    /// What was done so far.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Draws for each packet the same number of times, so that the losses do not depend on the jitter asked for.
    fn draw(&mut self) -> (bool, Duration) {
        let (loss, jitter) = (self.random.next_f64(), self.random.next_f64());
        (loss < self.config.loss.get(), self.config.jitter.mul_f64(jitter))
    }

    fn send_off(&mut self, due: Timestamp, bytes: Bytes, packet: P) {
        let last = self.under_way.back().map_or(Timestamp::ZERO, |other| other.due);
        if due < last && self.reordering {
            let place = self.under_way.partition_point(|other| other.due <= due);
            self.under_way.insert(place, UnderWay { due, bytes, packet });
        } else {
            self.under_way.push_back(UnderWay { due: due.max(last), bytes, packet });
        }
    }

    fn deliver(&mut self) -> LinkPoll<P> {
        let Some(first) = self.under_way.pop_front() else { return LinkPoll::Idle };
        self.stats.delivered += 1;
        self.stats.delivered_bytes += first.bytes.get();
        LinkPoll::Deliver(first.packet)
    }
}

/// A packet from the FIFO to the other end.
#[derive(Clone, Debug)]
struct UnderWay<P> {
    /// When it arrives at the other end.
    due: Timestamp,
    bytes: Bytes,
    packet: P,
}

/// The FIFO and the transmitter behind it.
#[derive(Clone, Debug, Default)]
struct Transmitter {
    /// When everything taken so far has been transmitted.
    next_free: Timestamp,
    /// What the last packet took beyond whole nanoseconds, in 1/rate nanoseconds (smaller than the rate).
    carry: u64,
    /// End of transmission and size of each packet of the backlog.
    backlog: VecDeque<(Timestamp, Bytes)>,
    backlog_bytes: Bytes,
}

impl Transmitter {
    /// Forgets what has been transmitted by `now`.
    fn advance(&mut self, now: Timestamp) {
        while let Some((_, bytes)) = self.backlog.pop_front_if(|(sent, _)| *sent <= now) {
            self.backlog_bytes -= bytes;
        }
    }

    fn has_room(&self, now: Timestamp, bytes: Bytes, config: LinkConfig) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        match config.queue {
            QueueLimit::Time(limit) => {
                let own = config.rate.map_or(Duration::ZERO, |rate| bytes / rate);
                (self.next_free - now).saturating_add(own) <= limit
            }
            QueueLimit::Bytes(limit) => self.backlog_bytes + bytes <= limit,
            QueueLimit::Packets(limit) => self.backlog.len() < limit as usize,
        }
    }

    /// Queues a packet and returns the end of its transmission.
    fn take(&mut self, now: Timestamp, bytes: Bytes, rate: Option<Rate>) -> Timestamp {
        let Some(rate) = rate else { return now };
        if self.next_free <= now {
            (self.next_free, self.carry) = (now, 0);
        }
        let took = self.transmission_time(bytes, rate);
        self.next_free += took;
        self.backlog.push_back((self.next_free, bytes));
        self.backlog_bytes += bytes;
        self.next_free
    }

    /// bytes * 8 / rate in whole nanoseconds, rounded down, with the carry of the packet before.
    fn transmission_time(&mut self, bytes: Bytes, rate: Rate) -> Duration {
        let bits_per_s = u128::from(rate.as_bits_per_s());
        if bits_per_s == 0 {
            return Duration::MAX;
        }
        let work = u128::from(bytes.get()) * 8 * 1_000_000_000 + u128::from(self.carry);
        self.carry = (work % bits_per_s) as u64;
        Duration::from_nanos(u64::try_from(work / bits_per_s).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
