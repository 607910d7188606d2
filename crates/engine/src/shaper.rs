//! The shaper: fair queue, CoDel and pacer behind push and poll.

use crate::codel::{CodelParams, Verdict};
use crate::config::{Limits, MTU_BYTES};
use crate::fair_queue::FairQueue;
use crate::pacer::Pacer;
use crate::store::Held;
use crate::{Class, Packet, ShaperConfig, Stats};
use units::{Bytes, Rate, Timestamp};

/// Slots allocated at the start; a larger packet limit grows into its own by doubling.
const INITIAL_SLOTS: usize = 16_384;

/// What the caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll<H> {
    /// Send this packet now.
    Send {
        /// The packet's handle.
        handle: H,
        /// Set Congestion Experienced first (`wire::set_ce`).
        mark: bool,
    },
    /// Drop this packet.
    Drop {
        /// The packet's handle.
        handle: H,
        /// Why.
        reason: DropReason,
    },
    /// Packets wait; poll again at this time or after the next push.
    WaitUntil(Timestamp),
    /// Nothing is held; poll again after the next push.
    Idle,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// CoDel signals congestion to the packet's flow.
    Aqm,
    /// The buffer was full and the packet's queue was the largest.
    Overflow,
}

/// What waits in the queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets; a super-packet counts once.
    pub packets: u32,
    /// Bytes as charged to the link.
    pub bytes: Bytes,
}

/// By what right a queue is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its turn, or the express lane at a time when the pacer is ready anyway.
    Turn,
    /// The express lane, ahead of the pacer.
    Express,
    /// The priority tier.
    Tier,
}

/// FlowQueue-CoDel with a pacer. `H` is the caller's handle of a packet.
#[derive(Debug)]
pub struct Shaper<H> {
    config: ShaperConfig,
    limits: Limits,
    codel: CodelParams,
    queue: FairQueue<H>,
    pacer: Pacer,
    stats: Stats,
}

impl<H> Shaper<H> {
    /// An empty shaper.
    pub fn new(config: ShaperConfig) -> Self {
        let limits = Limits::new(&config);
        let capacity = (limits.packets as usize).saturating_add(1).min(INITIAL_SLOTS);
        Self {
            config,
            limits,
            codel: codel_params(&config, &limits),
            queue: FairQueue::new(capacity),
            pacer: Pacer::new(limits.rate, config.credit),
            stats: Stats::default(),
        }
    }

    /// Takes a packet in. If that overfills the buffer, packets of the largest queue are taken out; the next polls
    /// hand them back as drops.
    #[inline]
    pub fn push(&mut self, now: Timestamp, packet: Packet<H>) {
        let wire_bytes = packet.wire_bytes(&self.config.overhead);
        self.stats.enqueued.add(packet.bytes);
        let is_normal = packet.class == Class::Normal;
        let held = Held { packet, enqueued: now, wire_bytes, guest: false };
        let shared = if is_normal {
            self.queue.push(held, self.limits.quantum).guest
        } else {
            let shared = self.queue.push_classed(held, &self.limits);
            self.stats.demotions = self.queue.tier.demotions;
            self.stats.acks_queued = self.queue.queued_acks;
            shared
        };
        self.stats.shared += u64::from(shared);
        self.shed_overflow();
        let held = self.queue.backlog();
        self.stats.peak_packets = self.stats.peak_packets.max(held.packets);
        self.stats.peak_bytes = self.stats.peak_bytes.max(held.bytes);
    }

    /// What to do now. To be called until it answers `WaitUntil` or `Idle`.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) -> Poll<H> {
        if self.queue.has_exceptions()
            && let Some(answer) = self.poll_exceptions(now)
        {
            return answer;
        }
        if self.queue.backlog().packets == 0 {
            self.queue.clear_lists();
            return Poll::Idle;
        }
        let ready = self.pacer.is_ready(now);
        if ready || self.queue.has_express() && self.pacer.has_express_room(now) {
            return self.poll_queues(now, ready);
        }
        Poll::WaitUntil(self.pacer.wake_up(now))
    }

    /// Serves a queue: by the express lane, or in its turn when the pacer is ready. Apart from [`Self::poll`], half of
    /// whose answers are to wait.
    #[inline(never)]
    fn poll_queues(&mut self, now: Timestamp, ready: bool) -> Poll<H> {
        let express = if self.queue.has_express() { self.queue.select_express() } else { None };
        let index = if ready { express.or_else(|| self.queue.select(self.limits.quantum)) } else { express };
        match index {
            Some(index) => self.serve(now, index, if ready { Way::Turn } else { Way::Express }),
            None => Poll::WaitUntil(self.pacer.wake_up(now)),
        }
    }

    /// What does not wait for a turn: packets that overflowed, ACKs in their lane, marked flows. `None` when the turns
    /// decide after all. Apart from [`Self::poll`], since most polls find nothing of this.
    #[inline(never)]
    fn poll_exceptions(&mut self, now: Timestamp) -> Option<Poll<H>> {
        if let Some(held) = self.queue.take_doomed() {
            self.stats.dropped_overflow.add(held.packet.bytes);
            return Some(Poll::Drop { handle: held.packet.handle, reason: DropReason::Overflow });
        }
        if !self.queue.acks.is_empty()
            && let Some(answer) = self.poll_ack(now)
        {
            return Some(answer);
        }
        if !self.pacer.is_ready(now) {
            return None;
        }
        let (index, way) = self.choose_by_tier()?;
        Some(self.serve(now, index, way))
    }

    /// The queue to serve next while some claim priority: one of those, unless it is time for another one.
    fn choose_by_tier(&mut self) -> Option<(u32, Way)> {
        let FairQueue { tier, store, table, .. } = &mut self.queue;
        let marked = tier.select(store, &mut table.queues, self.limits.priority);
        self.stats.demotions = tier.demotions;
        let marked = marked?;
        if self.queue.tier.must_yield()
            && let Some(other) = self.queue.select_beside_tier(self.limits.quantum)
        {
            self.stats.priority_yields += 1;
            return Some((other, Way::Turn));
        }
        Some((marked, Way::Tier))
    }

    /// Sends the next ACK of the lane as soon as the pacer has room. When it has waited there for longer than CoDel
    /// tolerates, moves them all into their flows' queues instead.
    fn poll_ack(&mut self, now: Timestamp) -> Option<Poll<H>> {
        let since = self.queue.first_ack()?;
        let sojourn_ns = now.as_nanos().saturating_sub(since.as_nanos());
        if sojourn_ns > self.codel.target_ns {
            self.queue.close_ack_lane(&self.limits);
            self.stats.acks_queued = self.queue.queued_acks;
            return None;
        }
        if !self.pacer.has_express_room(now) {
            return Some(Poll::WaitUntil(self.pacer.room_at(now)));
        }
        let held = self.queue.take_ack()?;
        self.stats.acks_bypassed.add(held.packet.bytes);
        self.stats.ack_sojourn.record_nanos(sojourn_ns);
        self.pay(now, &held, true);
        Some(Poll::Send { handle: held.packet.handle, mark: false })
    }

    /// Continues at another rate (raised to [`crate::MIN_RATE`]). Target, quantum and buffer follow; if the buffer
    /// shrinks below what is held, the next polls hand back the excess as drops.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        self.config.rate = rate;
        self.limits = Limits::new(&self.config);
        self.codel = codel_params(&self.config, &self.limits);
        self.pacer.set_rate(now, self.limits.rate);
        self.shed_overflow();
    }

    /// The present rate.
    pub fn rate(&self) -> Rate {
        self.limits.rate
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What waits now, without the packets that are about to be handed back as drops.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Hands out every packet that is held, in the order of arrival, for a clean exit.
    pub fn drain(&mut self) -> impl Iterator<Item = H> + use<H> {
        let held = self.queue.drain(&self.limits);
        for packet in &held {
            self.stats.drained.add(packet.packet.bytes);
        }
        held.into_iter().map(|held| held.packet.handle)
    }

    /// Keeps the backlog within the buffer. A packet that is held alone stays, however large it is: otherwise a
    /// super-packet beyond the buffer of a slow link could never pass.
    #[inline]
    fn shed_overflow(&mut self) {
        loop {
            let Backlog { packets, bytes } = self.queue.backlog();
            if (packets <= self.limits.packets && bytes <= self.limits.buffer) || packets <= 1 {
                return;
            }
            self.queue.close_ack_lane(&self.limits);
            self.stats.acks_queued = self.queue.queued_acks;
            self.queue.shed_fattest();
        }
    }

    /// Lets CoDel judge the head of queue `index` and sends or drops it.
    #[inline(always)]
    fn serve(&mut self, now: Timestamp, index: u32, way: Way) -> Poll<H> {
        let Some(held) = self.queue.take(index) else {
            debug_assert!(false, "select gives queues with packets");
            return Poll::Idle;
        };
        let queue = &mut self.queue.table.queues[index as usize];
        let sojourn_ns = now.as_nanos().saturating_sub(held.enqueued.as_nanos());
        let verdict = if held.packet.class == Class::Ack {
            Verdict::Deliver
        } else {
            let capable = held.packet.ecn.is_capable();
            queue.codel.judge(&self.codel, now, sojourn_ns, queue.bytes, capable)
        };
        if verdict == Verdict::Drop {
            self.stats.dropped_aqm.add(held.packet.bytes);
            return Poll::Drop { handle: held.packet.handle, reason: DropReason::Aqm };
        }
        queue.deficit -= i64::from(held.wire_bytes);
        self.pay(now, &held, way == Way::Express);
        self.stats.express += u64::from(way == Way::Express);
        self.queue.tier.count(way == Way::Tier);
        if held.packet.class == Class::Normal {
            self.stats.sojourn.record_nanos(sojourn_ns);
        } else {
            self.record_classed(index, &held, sojourn_ns, way);
        }
        let mark = verdict == Verdict::Mark;
        self.stats.marked += u64::from(mark);
        Poll::Send { handle: held.packet.handle, mark }
    }

    /// Keeps the books on a sent packet that is a pure ACK or marked.
    #[inline(never)]
    fn record_classed(&mut self, index: u32, held: &Held<H>, sojourn_ns: u64, way: Way) {
        if held.packet.class == Class::Ack {
            self.queue.on_ack_left();
            return self.stats.ack_sojourn.record_nanos(sojourn_ns);
        }
        self.stats.sojourn.record_nanos(sojourn_ns);
        let FairQueue { tier, table, .. } = &mut self.queue;
        if way == Way::Tier {
            tier.on_served(&mut table.queues, index);
            self.stats.priority.add(held.packet.bytes);
        } else if table.queues[index as usize].packets > 0 {
            tier.review(&mut table.queues, index, self.limits.priority);
        }
        self.stats.demotions = tier.demotions;
    }

    /// Charges a sent packet to the pacer, `ahead` of its time or not, and counts it.
    #[inline]
    fn pay(&mut self, now: Timestamp, held: &Held<H>, ahead: bool) {
        if ahead {
            self.pacer.charge_express(now, held.wire_bytes);
        } else {
            self.pacer.charge(now, held.wire_bytes);
        }
        self.stats.sent.add(held.packet.bytes);
        self.stats.sent_wire_bytes += Bytes::from(held.wire_bytes);
    }
}

fn codel_params(config: &ShaperConfig, limits: &Limits) -> CodelParams {
    CodelParams {
        target_ns: u64::try_from(limits.target.as_nanos()).unwrap_or(u64::MAX),
        interval: config.interval,
        mtu: MTU_BYTES.into(),
        ecn: config.ecn,
    }
}
