//! The fair queue: deficit round robin over flow queues, sparse flows first (RFC 8290 section 4).

use crate::flow_table::{FlowTable, Place, QUEUES};
use crate::queue_list::{self, QueueList};
use crate::store::{Chain, Held, Store};
use crate::{Backlog, EXPRESS_BYTES, Packet};
use units::{Bytes, Timestamp};

/// How many queues of NEW are looked at for one that may use the express lane.
const EXPRESS_SCAN: usize = 8;
/// Most packets that one overflow takes from the fattest queue (RFC 8290 section 4.1.3).
const DROP_BATCH: u32 = 64;

#[derive(Debug)]
pub(crate) struct FairQueue<H> {
    pub store: Store<H>,
    pub table: FlowTable,
    new: QueueList,
    old: QueueList,
    /// Packets that the overflow rule took out of their queues and poll has not handed back yet.
    doomed: Chain,
    backlog: Backlog,
}

impl<H> FairQueue<H> {
    pub fn new(capacity: usize) -> Self {
        Self {
            store: Store::with_capacity(capacity),
            table: FlowTable::new(),
            new: QueueList::EMPTY,
            old: QueueList::EMPTY,
            doomed: Chain::EMPTY,
            backlog: Backlog { packets: 0, bytes: Bytes::ZERO },
        }
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Appends a packet to its flow's queue. A queue on no list starts at the tail of NEW with one quantum; on a list
    /// it keeps its place and its deficit. Tells whether the queue belongs to another flow.
    #[inline]
    pub fn push(&mut self, now: Timestamp, packet: Packet<H>, wire_bytes: u32, quantum: i64) -> bool {
        let assignment = self.table.assign(packet.flow);
        let guest = assignment.guest;
        let queue = &mut self.table.queues[assignment.queue as usize];
        queue.bytes += u64::from(wire_bytes);
        queue.packets += 1;
        queue.guests += u32::from(guest);
        self.store.append(&mut queue.chain, Held { packet, enqueued: now, wire_bytes, guest });
        if queue.place == Place::Idle {
            queue.place = Place::New;
            queue.deficit = quantum;
            self.new.push_back(&mut self.table.queues, assignment.queue);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::from(wire_bytes);
        guest
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

    /// A queue of NEW whose head packet is small and that has deficit left: a sparse flow's.
    #[inline]
    pub fn select_express(&self) -> Option<u32> {
        self.new.iter(&self.table.queues).take(EXPRESS_SCAN).find(|&index| {
            let queue = &self.table.queues[index as usize];
            let small = |held: &Held<H>| held.wire_bytes <= EXPRESS_BYTES && held.packet.segments <= 1;
            queue.deficit > 0 && self.store.head(&queue.chain).is_some_and(small)
        })
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

    /// The overflow rule (RFC 8290 section 4.1.3): dooms packets from the head of the queue with the most bytes until
    /// half of them are gone, at most a batch.
    pub fn shed_fattest(&mut self) {
        let fattest = (0..QUEUES as u32).max_by_key(|&index| self.table.queues[index as usize].bytes);
        let Some(queue) = fattest.map(|index| &mut self.table.queues[index as usize]) else { return };
        let keep = queue.bytes / 2;
        for _ in 0..DROP_BATCH {
            let Some(head) = self.store.head(&queue.chain) else { return };
            queue.bytes -= u64::from(head.wire_bytes);
            queue.packets -= 1;
            queue.guests -= u32::from(head.guest);
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

    /// Empties every queue; the packets in the order of their arrival.
    pub fn drain(&mut self) -> Vec<Held<H>> {
        let mut packets: Vec<Held<H>> = std::iter::from_fn(|| self.take_doomed()).collect();
        for index in 0..QUEUES as u32 {
            packets.extend(std::iter::from_fn(|| self.take(index)));
        }
        packets.sort_by_key(|held| held.enqueued); // stable: order within a flow stays
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
            next = queue_list::behind(queues, index);
        }
    }
}
