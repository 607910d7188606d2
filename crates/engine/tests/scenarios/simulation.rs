//! A world of packet sources around one shaper, driven by events in virtual time.

use engine::{Class, DropReason, Packet, Poll, Shaper, ShaperConfig, Stats};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};
use wire::Ecn;

/// When a flow sends.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// One packet each period, whatever happens to them: UDP.
    Every(Duration),
    /// So many packets at once each period, whatever happens to them.
    Burst { packets: u32, period: Duration },
    /// So many packets in flight, each replaced a round-trip time after it left or was dropped: a TCP of fixed window.
    Window { packets: u32, rtt: Duration },
}

/// One flow and the packets it sends.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub hash: u64,
    pub bytes: u32,
    pub segment_bytes: u16,
    pub ecn: Ecn,
    pub class: Class,
    pub pattern: Pattern,
    pub start: Timestamp,
    /// Nothing is sent from then on.
    pub end: Timestamp,
}

impl Flow {
    /// Full packets with 40 in flight over 20 ms.
    pub fn bulk(hash: u64) -> Self {
        Self {
            hash: hash.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            bytes: 1_500,
            segment_bytes: 0,
            ecn: Ecn::NotEct,
            class: Class::Normal,
            pattern: Pattern::Window { packets: 40, rtt: Duration::from_millis(20) },
            start: Timestamp::from_millis(1),
            end: Timestamp::MAX,
        }
    }

    /// Packets of `bytes` every `period`.
    pub fn every(hash: u64, bytes: u32, period: Duration) -> Self {
        Self { bytes, pattern: Pattern::Every(period), ..Self::bulk(hash) }
    }

    /// A sparse flow that is in step with nothing else: small packets at 137 per second.
    pub fn probe(hash: u64) -> Self {
        Self::every(hash, 60, Duration::from_nanos(7_299_713))
    }
}

/// What became of one flow's packets.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Time of leaving and sojourn, in order.
    pub sent: Vec<(Timestamp, Duration)>,
    pub dropped: Vec<(Timestamp, DropReason)>,
    pub marked: u64,
    pub sent_bytes: Bytes,
}

impl Outcome {
    /// The sojourn at quantile `q`, nearest rank.
    pub fn sojourn(&self, q: f64) -> Duration {
        let mut sojourns: Vec<Duration> = self.sent.iter().map(|&(_, sojourn)| sojourn).collect();
        sojourns.sort_unstable();
        sojourns[((q * sojourns.len() as f64).ceil() as usize).clamp(1, sojourns.len()) - 1]
    }

    pub fn drops(&self, reason: DropReason) -> usize {
        self.dropped.iter().filter(|&&(_, why)| why == reason).count()
    }
}

/// What became of everything.
pub struct Story {
    pub flows: Vec<Outcome>,
    pub stats: Stats,
    /// Times the timer fired.
    pub wake_ups: u64,
    /// Wire rate between start and end.
    pub rate: Rate,
}

/// Runs the flows through a shaper for `length`; every timer fires `lateness` after the time asked for.
pub fn run(config: ShaperConfig, flows: &[Flow], length: Duration, lateness: Duration) -> Story {
    let mut world = World {
        shaper: Shaper::new(config),
        arrivals: BinaryHeap::new(),
        outcomes: vec![Outcome::default(); flows.len()],
        flows,
        serial: 0,
    };
    for (index, flow) in flows.iter().enumerate() {
        let packets = match flow.pattern {
            Pattern::Every(_) => 1,
            Pattern::Burst { packets, .. } | Pattern::Window { packets, .. } => packets,
        };
        (0..packets).for_each(|_| world.schedule(flow.start, index));
    }
    let (end, mut timer, mut wake_ups) = (Timestamp::ZERO + length, Timestamp::MAX, 0);
    loop {
        let arrival = world.arrivals.peek().map_or(Timestamp::MAX, |Reverse((at, ..))| *at);
        let now = arrival.min(timer);
        if now >= end {
            break;
        }
        if timer <= arrival {
            wake_ups += 1;
        } else {
            world.arrive(now);
        }
        timer = world.poll(now).map_or(Timestamp::MAX, |at| at + lateness);
    }
    let stats = world.shaper.stats().clone();
    Story { rate: Rate::of(stats.sent_wire_bytes, length), flows: world.outcomes, stats, wake_ups }
}

struct World<'a> {
    /// A packet's handle is its flow's index and its time of arrival.
    shaper: Shaper<(usize, Timestamp)>,
    /// Time, serial number (order among equal times), flow.
    arrivals: BinaryHeap<Reverse<(Timestamp, u64, usize)>>,
    outcomes: Vec<Outcome>,
    flows: &'a [Flow],
    serial: u64,
}

impl World<'_> {
    fn schedule(&mut self, at: Timestamp, flow: usize) {
        if at >= self.flows[flow].end {
            return;
        }
        self.serial += 1;
        self.arrivals.push(Reverse((at, self.serial, flow)));
    }

    fn arrive(&mut self, now: Timestamp) {
        let Some(Reverse((_, _, index))) = self.arrivals.pop() else { return };
        let Flow { hash, bytes, segment_bytes, ecn, pattern, class, .. } = self.flows[index];
        let packet =
            Packet { handle: (index, now), flow: hash, bytes, segment_bytes, header_bytes: 52, ecn, class };
        self.shaper.push(now, packet);
        if let Pattern::Every(period) | Pattern::Burst { period, .. } = pattern {
            self.schedule(now + period, index);
        }
    }

    /// Polls until the shaper waits, and gives the time that it waits for.
    fn poll(&mut self, now: Timestamp) -> Option<Timestamp> {
        loop {
            let index = match self.shaper.poll(now) {
                Poll::Send { handle: (index, arrived), mark } => {
                    let outcome = &mut self.outcomes[index];
                    outcome.sent.push((now, now - arrived));
                    outcome.sent_bytes += Bytes::from(self.flows[index].bytes);
                    outcome.marked += u64::from(mark);
                    index
                }
                Poll::Drop { handle: (index, _), reason } => {
                    self.outcomes[index].dropped.push((now, reason));
                    index
                }
                Poll::WaitUntil(at) => return Some(at),
                Poll::Idle => return None,
            };
            if let Pattern::Window { rtt, .. } = self.flows[index].pattern {
                self.schedule(now + rtt, index);
            }
        }
    }
}
