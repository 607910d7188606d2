//! One direction of the line: ring -> link -> sender.

use super::counters::DirectionCounters;
use super::pool::{Frame, Pool};
use lab::{Dropped, Link, LinkConfig, LinkPoll};
use platform::clock;
use platform::links::Mac;
use platform::packet_ring::{
    BATCH, Filter, PacketRing, PacketSender, Received, RingOptions, VNET_HEADER_BYTES,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use units::{Bytes, Timestamp};

/// Slots of a ring: 100 ms of full packets at 1 Gbit/s, should the relay be kept from running.
const RING_SLOTS: u32 = 8192;
/// Most frames taken from the ring before due frames are looked at again.
const TAKE_AT_MOST: usize = 256;
/// When the receiving interface lags behind, it is asked again after this.
const RETRY_AFTER: Duration = Duration::from_micros(100);
/// Buffers of each size to begin with.
const BUFFERS: usize = 1024;

const ETHERNET_HEADER_BYTES: usize = 14;
const MAX_FRAME_BYTES: usize = ETHERNET_HEADER_BYTES + 1500;

/// Where a direction begins and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    /// The receiving host; frames to others (multicast) are not for the line.
    pub(super) receiver: Mac,
}

pub(super) struct Direction {
    ring: PacketRing,
    intake: Intake,
    sender: PacketSender,
    /// Due frames in order; those before `sent` are with the kernel.
    batch: Vec<Frame>,
}

/// From the ring into the link.
struct Intake {
    link: Link<Frame>,
    pool: Pool,
    receiver: Mac,
    last_arrival: Timestamp,
    counters: DirectionCounters,
}

impl Direction {
    /// Opens ring and sender in the calling thread's namespace.
    pub(super) fn open(path: Path, config: LinkConfig) -> io::Result<Self> {
        let ring = PacketRing::open(RingOptions {
            interface: path.from,
            slots: RING_SLOTS,
            outgoing: false,
            vnet_header: true,
            filter: Filter::All,
        })?;
        let intake = Intake {
            link: Link::new(config),
            pool: Pool::with_buffers(BUFFERS),
            receiver: path.receiver,
            last_arrival: Timestamp::ZERO,
            counters: DirectionCounters::default(),
        };
        let sender = PacketSender::open(path.to, true)?;
        Ok(Self { ring, intake, sender, batch: Vec::with_capacity(BATCH) })
    }

    /// Becomes readable when a frame has come.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// Takes what has come and sends what is due; true when something was done.
    pub(super) fn work(&mut self) -> bool {
        let now = clock::now();
        let intake = &mut self.intake;
        let taken = (0..TAKE_AT_MOST).take_while(|_| self.ring.receive(|r| intake.take(now, r))).count();
        let sent = self.send_due();
        taken > 0 || sent
    }

    /// When the next frame is due, or a refused one is to be tried again.
    pub(super) fn next_due(&self) -> Timestamp {
        if !self.batch.is_empty() {
            return clock::now() + RETRY_AFTER;
        }
        self.intake.link.next_due().unwrap_or(Timestamp::MAX)
    }

    /// Keeps the ring's clock true and counts its drops.
    pub(super) fn maintain(&mut self) {
        self.ring.sync_clock();
        self.intake.counters.ring_drops = self.ring.dropped();
    }

    pub(super) fn counters(&self) -> DirectionCounters {
        DirectionCounters { link: *self.intake.link.stats(), ..self.intake.counters.clone() }
    }

    fn send_due(&mut self) -> bool {
        let mut any = false;
        loop {
            self.fill_batch();
            if self.batch.is_empty() || !self.send_batch() {
                return any;
            }
            any = true;
        }
    }

    fn fill_batch(&mut self) {
        let now = clock::now();
        while self.batch.len() < BATCH {
            let due = self.intake.link.next_due();
            let (LinkPoll::Deliver(frame), Some(due)) = (self.intake.link.poll(now), due) else { return };
            self.intake.counters.lateness.record(now - due);
            self.batch.push(frame);
        }
    }

    /// Sends the batch or its beginning; false when the receiving interface lags behind.
    fn send_batch(&mut self) -> bool {
        let done = match self.sender.send(&self.batch) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            // Refused for good (interface down, no memory): this one is lost, and counted as our error.
            Err(_) => {
                self.intake.counters.send_drops += 1;
                1
            }
        };
        for frame in self.batch.drain(..done) {
            self.intake.pool.reuse(frame);
        }
        true
    }
}

impl Intake {
    fn take(&mut self, now: Timestamp, received: Received<'_>) {
        if received.frame().get(..6) != Some(&self.receiver) {
            return;
        }
        if received.frame_bytes > MAX_FRAME_BYTES {
            self.counters.oversized += 1;
            return;
        }
        // The wall clock that stamps may have been stepped since it was last compared: no arrival in the future, none
        // before the last one.
        let arrival = received.arrival.min(now).max(self.last_arrival);
        self.last_arrival = arrival;
        let ip_bytes = Bytes::new((received.bytes.len() - VNET_HEADER_BYTES - ETHERNET_HEADER_BYTES) as u64);
        let frame = self.pool.copy(received.bytes);
        if let Err(Dropped { packet, .. }) = self.link.push(arrival, ip_bytes, frame) {
            self.pool.reuse(packet);
        }
    }
}
