//! The fair queue: deficit round robin over flow queues, sparse flows first (RFC 8290 section 4), and an express lane.
//!
//! The RFC's NEW list alone does not keep a game or a call out of the bulk flows' way: its queue goes through OLD before
//! it counts as new again, so whoever sends twice within one round waits for its turn like a bulk flow (with 20 of
//! them at 20 Mbit/s for up to 12 ms). But each listed queue has a right to its deficit in every round; only the order
//! within the round is a convention. So a small packet that finds its queue empty may use the queue's deficit at once,
//! whichever list the queue is on. Nobody gets more bytes a round than by the RFC, and a flow whose queue does not
//! run empty never enters the lane.

use crate::flow_table::{FlowTable, Place, QUEUES};
use crate::queue_list::{Link, QueueList};
use crate::store::{Chain, Held, Store};
use crate::{Backlog, EXPRESS_BYTES, Packet};
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
        let enters_express = queue.packets == 1 && !queue.express && is_small(&packet, wire_bytes);
        queue.express |= enters_express;
        self.store.append(&mut queue.chain, Held { packet, enqueued: now, wire_bytes, guest });
        if queue.place == Place::Idle {
            queue.place = Place::New;
            queue.deficit = quantum;
            self.new.push_back(&mut self.table.queues, assignment.queue);
        }
        if enters_express {
            self.express.push_back(&mut self.table.queues, assignment.queue);
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
    pub fn drain(&mut self) -> Vec<Held<H>> {
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
mod tests {
    use super::*;
    use wire::Ecn;

    const QUANTUM: i64 = 1_514;

    fn packet(flow: u64, handle: u32, bytes: u32) -> Packet<u32> {
        Packet { handle, flow, bytes, segment_bytes: 0, header_bytes: 40, ecn: Ecn::NotEct }
    }

    /// A fair queue with its pushes and sends in short form.
    struct Bench(FairQueue<u32>);

    impl Bench {
        fn new() -> Self {
            Self(FairQueue::new(16))
        }

        /// Queues a packet and gives the index of its queue.
        fn push(&mut self, flow: u64, handle: u32, bytes: u32) -> u32 {
            self.0.push(Timestamp::ZERO, packet(flow, handle, bytes), bytes, QUANTUM);
            self.0.table.assign(flow).queue
        }

        /// Sends the next packet and pays for it.
        fn send(&mut self) -> Option<u32> {
            let index = self.0.select(QUANTUM)?;
            let held = self.0.take(index)?;
            self.0.table.queues[index as usize].deficit -= i64::from(held.wire_bytes);
            Some(held.packet.handle)
        }

        fn queue(&self, index: u32) -> &crate::flow_table::FlowQueue {
            &self.0.table.queues[index as usize]
        }

        /// Puts `flow` onto OLD with `packets` large packets waiting.
        fn bulk(&mut self, flow: u64, packets: u32) -> u32 {
            let index = self.push(flow, 0, 1_514);
            (1..=packets).for_each(|_| {
                self.push(flow, 0, 1_514);
            });
            assert_eq!(self.send(), Some(0));
            assert_eq!(self.0.select(QUANTUM), Some(index));
            assert_eq!(self.queue(index).place, Place::Old);
            index
        }
    }

    #[test]
    fn a_packet_for_an_idle_queue_puts_it_at_the_tail_of_new_with_one_quantum() {
        let mut bench = Bench::new();
        let (first, second) = (bench.push(1, 0, 100), bench.push(2, 0, 100));
        assert_eq!(bench.0.new.iter(&bench.0.table.queues).collect::<Vec<_>>(), [first, second]);
        assert_eq!((bench.queue(second).place, bench.queue(second).deficit), (Place::New, QUANTUM));
    }

    #[test]
    fn a_packet_for_a_listed_queue_touches_neither_list_nor_deficit() {
        let mut bench = Bench::new();
        let index = bench.push(1, 0, 1_000);
        bench.send();
        bench.push(1, 1, 1_000);
        assert_eq!((bench.queue(index).place, bench.queue(index).deficit), (Place::New, QUANTUM - 1_000));

        let mut bench = Bench::new();
        let old = bench.bulk(2, 1);
        let deficit = bench.queue(old).deficit;
        bench.push(2, 0, 1_514);
        assert_eq!((bench.queue(old).place, bench.queue(old).deficit), (Place::Old, deficit));
    }

    #[test]
    fn new_is_served_before_old() {
        let mut bench = Bench::new();
        bench.bulk(1, 3);
        bench.push(2, 77, 100);
        assert_eq!(bench.send(), Some(77));
        assert_eq!(bench.send(), Some(0));
    }

    #[test]
    fn a_queue_without_deficit_gets_a_quantum_and_goes_to_the_tail_of_old() {
        let mut bench = Bench::new();
        let other = bench.bulk(2, 2);
        let index = bench.push(1, 5, 1_600);
        bench.push(1, 6, 1_600);
        assert_eq!(bench.send(), Some(5));
        assert_eq!(bench.send(), Some(0), "the queue in debt gives way");
        assert_eq!(bench.queue(index).deficit, QUANTUM - 1_600 + QUANTUM);
        assert_eq!(bench.0.old.iter(&bench.0.table.queues).collect::<Vec<_>>(), [other, index]);
    }

    #[test]
    fn an_empty_queue_of_new_goes_to_the_tail_of_old_and_an_empty_one_of_old_away() {
        let mut bench = Bench::new();
        let bulk = bench.bulk(1, 2);
        let sparse = bench.push(2, 77, 100);
        assert_eq!(bench.send(), Some(77));
        assert_eq!(bench.queue(sparse).place, Place::New, "found empty only at its next turn");
        assert_eq!(bench.send(), Some(0));
        assert_eq!(bench.0.old.iter(&bench.0.table.queues).collect::<Vec<_>>(), [bulk, sparse]);
        assert_eq!(bench.send(), Some(0));
        assert_eq!(bench.send(), None);
        assert_eq!(bench.queue(sparse).place, Place::Idle);
    }

    #[test]
    fn a_flow_of_single_packets_cannot_starve_old_by_becoming_new_again() {
        let mut bench = Bench::new();
        bench.bulk(1, 50);
        let mut sent = [0, 0];
        for _ in 0..60 {
            bench.push(2, 1, 100);
            sent[bench.send().unwrap() as usize] += 1;
        }
        assert!(sent[0] >= 3, "{sent:?}"); // one large packet for each quantum of small ones
    }

    #[test]
    fn codel_state_outlives_the_packets_of_the_queue() {
        let mut bench = Bench::new();
        let index = bench.push(1, 0, 100);
        bench.0.table.queues[index as usize].codel = crate::codel::Codel::with_count(7);
        bench.send();
        assert_eq!(bench.send(), None);
        assert_eq!(bench.queue(index).place, Place::Idle);
        assert_eq!(bench.push(1, 1, 100), index);
        assert_eq!(bench.queue(index).codel.count(), 7);
    }

    #[test]
    fn overflow_takes_half_the_bytes_of_the_fattest_queue_from_its_head() {
        let mut bench = Bench::new();
        bench.push(1, 100, 3_000);
        let fat = (0..10).map(|handle| bench.push(2, handle, 1_000)).last().unwrap();
        bench.0.shed_fattest();
        let doomed: Vec<u32> =
            std::iter::from_fn(|| bench.0.take_doomed()).map(|held| held.packet.handle).collect();
        assert_eq!(doomed, [0, 1, 2, 3, 4]);
        assert_eq!(bench.queue(fat).bytes, 5_000);
        assert_eq!(bench.0.backlog(), Backlog { packets: 6, bytes: Bytes::new(8_000) });
    }

    #[test]
    fn one_overflow_takes_at_most_64_packets() {
        let mut bench = Bench::new();
        for handle in 0..200 {
            bench.push(1, handle, 1_000);
        }
        bench.0.shed_fattest();
        assert_eq!(std::iter::from_fn(|| bench.0.take_doomed()).count(), 64);
    }

    /// Turn by turn this would take 14 million rounds of 500 queues, minutes instead of milliseconds.
    #[test]
    fn queues_deep_in_debt_do_not_take_their_rounds_one_by_one() {
        let mut bench = Bench::new();
        for flow in 1..=500 {
            bench.push(flow, 0, u32::MAX);
            bench.push(flow, 1, 1_000);
        }
        (0..500).for_each(|_| assert_eq!(bench.send(), Some(0)));
        let index = bench.0.select(300).unwrap();
        assert!((1..=300).contains(&bench.queue(index).deficit));
    }

    #[test]
    fn skipped_rounds_keep_the_shares_of_turns_taken_one_by_one() {
        let mut bench = Bench::new();
        for (flow, bytes) in [(1, 30_000), (2, 9_000), (3, 60_000)] {
            bench.push(flow, 0, bytes);
            bench.push(flow, flow as u32, 1_000);
        }
        (0..3).for_each(|_| assert_eq!(bench.send(), Some(0)));
        let order: Vec<u32> = std::iter::from_fn(|| bench.send()).collect();
        assert_eq!(order, [2, 1, 3]);
    }

    #[test]
    fn the_express_lane_takes_small_packets_that_find_their_queue_empty() {
        let mut bench = Bench::new();
        bench.bulk(1, 1);
        bench.push(1, 5, 64);
        assert_eq!(bench.0.select_express(), None, "small, but behind others of its flow");
        bench.push(2, 6, EXPRESS_BYTES + 1);
        assert_eq!(bench.0.select_express(), None, "alone, but large");
        let small = bench.push(3, 7, EXPRESS_BYTES);
        assert_eq!(bench.0.select_express(), Some(small));
    }

    #[test]
    fn the_express_lane_never_gives_more_than_the_deficit_of_the_round() {
        let mut bench = Bench::new();
        let flood = bench.push(1, 0, 100);
        (1..100).for_each(|handle| {
            bench.push(1, handle, 100);
        });
        let mut sent = 0;
        while let Some(index) = bench.0.select_express() {
            bench.0.take(index);
            bench.0.table.queues[index as usize].deficit -= 100;
            sent += 1;
        }
        assert_eq!(sent, 16, "1514 bytes, the last packet on credit");
        bench.push(1, 100, 100);
        bench.0.table.queues[flood as usize].deficit = QUANTUM;
        assert_eq!(bench.0.select_express(), None, "a queue that does not run empty stays out");
    }

    #[test]
    fn a_sparse_flow_that_waits_in_old_uses_its_deficit_by_the_express_lane() {
        let mut bench = Bench::new();
        bench.bulk(1, 5);
        let sparse = bench.push(2, 7, 100);
        assert_eq!(bench.send(), Some(7));
        assert_eq!(bench.send(), Some(0));
        assert_eq!(bench.queue(sparse).place, Place::Old);
        bench.push(2, 8, 100);
        assert_eq!(bench.0.select_express(), Some(sparse));
    }
}
