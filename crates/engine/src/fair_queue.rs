//! The fair queue: deficit round robin over flow queues, sparse flows first (RFC 8290 section 4), and an express lane.
//!
//! The RFC's NEW list alone does not keep a game or a call out of the bulk flows' way: its queue goes through OLD before
//! it counts as new again, so whoever sends twice within one round waits for its turn like a bulk flow (with 20 of
//! them at 20 Mbit/s for up to 12 ms). But each listed queue has a right to its deficit in every round; only the order
//! within the round is a convention. So a small packet that finds its queue empty may use the queue's deficit at once,
//! whichever list the queue is on. Nobody gets more bytes a round than by the RFC, and a flow whose queue does not
//! run empty never enters the lane.

use crate::ack::AckLane;
use crate::config::Limits;
use crate::flow_table::{Assignment, FlowTable, Place, QUEUES};
use crate::queue_list::{Link, QueueList};
use crate::store::{Chain, Held, Store};
use crate::tier::Tier;
use crate::{Backlog, Class, EXPRESS_BYTES, Packet};
use units::{Bytes, Timestamp};

/// Most packets that one overflow takes from the fattest queue (RFC 8290 section 4.1).
const DROP_BATCH: u32 = 64;

#[derive(Debug)]
pub(crate) struct FairQueue<H> {
    pub store: Store<H>,
    pub table: FlowTable,
    new: QueueList,
    old: QueueList,
    /// Queues that may send a small packet out of turn; entries that no longer may are sorted out when looked at.
    express: QueueList,
    pub tier: Tier,
    pub acks: AckLane,
    /// Pure ACKs in the flows' queues; while there are some, none uses the lane.
    waiting_acks: u32,
    /// Pure ACKs put into the flows' queues since the start.
    pub queued_acks: u64,
    /// Packets that the overflow rule took out of their queues and poll has not handed back yet.
    doomed: Chain,
    backlog: Backlog,
}

impl<H> FairQueue<H> {
    pub fn new(capacity: usize) -> Self {
        Self {
            store: Store::with_capacity(capacity),
            table: FlowTable::new(),
            new: QueueList::new(Link::Turn),
            old: QueueList::new(Link::Turn),
            express: QueueList::new(Link::Express),
            tier: Tier::new(),
            acks: AckLane::new(),
            waiting_acks: 0,
            queued_acks: 0,
            doomed: Chain::EMPTY,
            backlog: Backlog { packets: 0, bytes: Bytes::ZERO },
        }
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Appends a packet to its flow's queue. A queue on no list starts at the tail of NEW with one quantum; on a list
    /// it keeps its place and its deficit.
    #[inline]
    pub fn push(&mut self, held: Held<H>, quantum: i64) -> Assignment {
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::from(held.wire_bytes);
        self.enqueue(held, quantum)
    }

    /// Takes in a packet that is not [`Class::Normal`]: a pure ACK into its lane while that is open, all else into its
    /// flow's queue. Tells whether that queue belongs to another flow. Apart from [`Self::push`], which most packets
    /// take.
    #[inline(never)]
    pub fn push_classed(&mut self, held: Held<H>, limits: &Limits) -> bool {
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::from(held.wire_bytes);
        match held.packet.class {
            Class::Ack if self.waiting_acks == 0 && is_small(&held.packet, held.wire_bytes) => {
                self.acks.push(&mut self.store, held);
                false
            }
            Class::Ack => {
                self.close_ack_lane(limits); // one too large for the lane must not overtake those in it
                self.enqueue_ack(held, limits)
            }
            Class::Normal | Class::Priority => {
                let Assignment { queue, guest } = self.enqueue(held, limits.quantum);
                self.tier.review(&mut self.table.queues, queue, limits.priority);
                guest
            }
        }
    }

    /// There is no room for the ACKs in the lane: into their flows' queues with them.
    pub fn close_ack_lane(&mut self, limits: &Limits) {
        while let Some(held) = self.acks.pop(&mut self.store) {
            self.enqueue_ack(held, limits);
        }
    }

    fn enqueue_ack(&mut self, held: Held<H>, limits: &Limits) -> bool {
        self.waiting_acks += 1;
        self.queued_acks += 1;
        self.enqueue(held, limits.quantum).guest
    }

    /// A pure ACK left its flow's queue.
    pub fn on_ack_left(&mut self) {
        self.waiting_acks -= 1;
    }

    #[inline]
    fn enqueue(&mut self, mut held: Held<H>, quantum: i64) -> Assignment {
        let assignment = self.table.assign(held.packet.flow);
        held.guest = assignment.guest;
        let queue = &mut self.table.queues[assignment.queue as usize];
        queue.bytes += u64::from(held.wire_bytes);
        queue.packets += 1;
        queue.guests += u32::from(assignment.guest);
        let enters_express = queue.packets == 1 && !queue.express && is_small(&held.packet, held.wire_bytes);
        queue.express |= enters_express;
        self.store.append(&mut queue.chain, held);
        if queue.place == Place::Idle {
            queue.place = Place::New;
            queue.deficit = quantum;
            self.new.push_back(&mut self.table.queues, assignment.queue);
        }
        if enters_express {
            self.express.push_back(&mut self.table.queues, assignment.queue);
        }
        assignment
    }

    /// When the first ACK in the lane came.
    #[inline]
    pub fn first_ack(&self) -> Option<Timestamp> {
        self.acks.first(&self.store).map(|held| held.enqueued)
    }

    /// Takes the next ACK from the lane.
    #[inline]
    pub fn take_ack(&mut self) -> Option<Held<H>> {
        let held = self.acks.pop(&mut self.store)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= Bytes::from(held.wire_bytes);
        Some(held)
    }

    /// The queue whose turn it is among those that the tier does not serve anyway; `None` when there is none.
    pub fn select_beside_tier(&mut self, quantum: i64) -> Option<u32> {
        let mut looks = 0..=self.new.len() + self.old.len();
        loop {
            let index = self.select(quantum)?;
            if !Tier::serves(&self.table.queues[index as usize]) {
                return Some(index);
            }
            looks.next()?;
            self.rotate(index); // keeps its deficit
        }
    }

    /// The queue whose turn it is (RFC 8290 section 4.2): NEW before OLD; one without deficit gets a quantum and goes
    /// to the tail of OLD; an empty one goes from NEW to OLD and from OLD away. `None` when nothing is held.
    #[inline]
    pub fn select(&mut self, quantum: i64) -> Option<u32> {
        let mut fruitless = 0;
        loop {
            let index = self.new.front().or_else(|| self.old.front())?;
            let queue = &mut self.table.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += quantum;
                self.rotate(index);
                fruitless += 1;
                if fruitless > self.new.len() + self.old.len() {
                    self.skip_rounds(quantum);
                    fruitless = 0;
                }
            } else if queue.packets == 0 {
                queue.codel.on_empty();
                self.retire(index);
            } else {
                return Some(index);
            }
        }
    }

    /// Whether anything may leave without a turn: overflowed packets, ACKs in their lane, marked flows. Without
    /// branches, since it is asked at each poll.
    #[inline]
    pub fn has_exceptions(&self) -> bool {
        !self.doomed.is_empty() | !self.acks.is_empty() | !self.tier.is_empty()
    }

    /// Whether the express lane has entries; it is empty most of the time.
    #[inline]
    pub fn has_express(&self) -> bool {
        self.express.front().is_some()
    }

    /// The first queue in the express lane, with a small head packet and some deficit.
    #[inline]
    pub fn select_express(&mut self) -> Option<u32> {
        while let Some(index) = self.express.front() {
            let queue = &mut self.table.queues[index as usize];
            let small = |held: &Held<H>| is_small(&held.packet, held.wire_bytes);
            if queue.deficit > 0 && self.store.head(&queue.chain).is_some_and(small) {
                return Some(index);
            }
            queue.express = false;
            self.express.pop_front(&self.table.queues);
        }
        None
    }

    /// Takes the head packet of a queue.
    #[inline]
    pub fn take(&mut self, index: u32) -> Option<Held<H>> {
        let queue = &mut self.table.queues[index as usize];
        let held = self.store.take(&mut queue.chain)?;
        queue.bytes -= u64::from(held.wire_bytes);
        queue.packets -= 1;
        queue.guests -= u32::from(held.guest);
        self.backlog.packets -= 1;
        self.backlog.bytes -= Bytes::from(held.wire_bytes);
        Some(held)
    }

    /// Nothing is held: every queue still on a list is empty and leaves it, as a dequeue would have found.
    pub fn clear_lists(&mut self) {
        debug_assert_eq!(self.backlog.packets, 0, "a listed queue may hold packets");
        while let Some(index) = self.new.front().or_else(|| self.old.front()) {
            self.table.queues[index as usize].codel.on_empty();
            self.retire(index);
        }
    }

    /// The overflow rule (RFC 8290 section 4.1): dooms packets from the head of the queue with the most bytes until
    /// half of them are gone, at most a batch.
    pub fn shed_fattest(&mut self) {
        let queues = &mut self.table.queues;
        let listed = self.new.iter(queues).chain(self.old.iter(queues)); // every queue with packets is listed
        let Some(fattest) = listed.max_by_key(|&index| queues[index as usize].bytes) else { return };
        let queue = &mut queues[fattest as usize];
        let keep = queue.bytes / 2;
        for _ in 0..DROP_BATCH {
            let Some(head) = self.store.head(&queue.chain) else { return };
            queue.bytes -= u64::from(head.wire_bytes);
            queue.packets -= 1;
            queue.guests -= u32::from(head.guest);
            self.waiting_acks -= u32::from(head.packet.class == Class::Ack);
            self.backlog.packets -= 1;
            self.backlog.bytes -= Bytes::from(head.wire_bytes);
            self.store.transfer(&mut queue.chain, &mut self.doomed);
            if queue.bytes <= keep {
                return;
            }
        }
    }

    /// Takes the next doomed packet.
    #[inline]
    pub fn take_doomed(&mut self) -> Option<Held<H>> {
        self.store.take(&mut self.doomed)
    }

    /// Empties every queue: doomed packets first, then the others in the order of their arrival.
    pub fn drain(&mut self, limits: &Limits) -> Vec<Held<H>> {
        self.close_ack_lane(limits);
        let mut packets: Vec<Held<H>> = std::iter::from_fn(|| self.take_doomed()).collect();
        let first_queued = packets.len();
        for index in 0..QUEUES as u32 {
            // A flow keeps its order even if the caller's clock went back.
            let mut newest = Timestamp::ZERO;
            packets.extend(std::iter::from_fn(|| self.take(index)).map(|mut held| {
                newest = newest.max(held.enqueued);
                held.enqueued = newest;
                held
            }));
        }
        packets[first_queued..].sort_by_key(|held| held.enqueued); // stable
        self.waiting_acks = 0;
        self.clear_lists();
        packets
    }

    /// Moves the front queue (of NEW, or of OLD if NEW is empty) to the tail of OLD.
    fn rotate(&mut self, index: u32) {
        self.pop(index);
        self.table.queues[index as usize].place = Place::Old;
        self.old.push_back(&mut self.table.queues, index);
    }

    /// An empty front queue: from NEW to the tail of OLD, so that a flow of single packets cannot starve OLD by
    /// becoming new again and again; from OLD away.
    fn retire(&mut self, index: u32) {
        if self.table.queues[index as usize].place == Place::New {
            self.rotate(index);
        } else {
            self.pop(index);
            self.table.queues[index as usize].place = Place::Idle;
        }
    }

    fn pop(&mut self, index: u32) {
        let list =
            if self.table.queues[index as usize].place == Place::New { &mut self.new } else { &mut self.old };
        let popped = list.pop_front(&self.table.queues);
        debug_assert_eq!(popped, Some(index), "only the front queue has a turn");
    }

    /// After a whole round in which every queue was in debt (super-packets cost many quanta): gives all of them at once
    /// the rounds that would pass before the one in which the first gets out of debt.
    fn skip_rounds(&mut self, quantum: i64) {
        let queues = &mut self.table.queues;
        let rounds_in_debt = |index: u32| (-queues[index as usize].deficit).max(0) / quantum;
        let rounds = self.old.iter(queues).map(rounds_in_debt).min().unwrap_or(0);
        let mut next = self.old.front();
        while let Some(index) = next {
            queues[index as usize].deficit += rounds * quantum;
            next = self.old.behind(queues, index);
        }
    }
}

/// Whether a packet may use the express lane.
fn is_small<H>(packet: &Packet<H>, wire_bytes: u32) -> bool {
    wire_bytes <= EXPRESS_BYTES && !packet.is_super()
}

#[cfg(test)]
mod tests;
