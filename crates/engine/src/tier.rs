//! The priority tier: packets of marked flows first, within bounds that make a wrong mark harmless.
//!
//! DRR serves a flow once a round, and with 20 bulk flows at 20 Mbit/s a round takes up to 12 ms. A marked flow is
//! served as soon as it has something, but pays from the same deficit as in its turns:
//!
//! * It keeps the tier only while no more than the limit waits in its queue: a flow that can hold a backlog has stopped
//!   being sparse. And it may be ahead of its turns by no more than the limit. So a marked bulk flow gains one limit's
//!   worth of bytes once; over any longer time it gets what DRR gives it unmarked, and so do the others.
//! * One that crosses either bound is demoted: it is served in its turns like any flow. It comes back by itself as
//!   soon as its backlog is within the limit and its debt is paid.
//! * After four packets of the tier one of another queue goes first, so that many marked flows together do not shut
//!   the others out for long.
//! * The tier's flows take turns packet by packet.
//!
//! A marked flow that wants more than its fair share for long is thus not helped: a mark is a claim to come first,
//! not to a larger part.

use crate::Class;
use crate::flow_table::FlowQueue;
use crate::queue_list::{Link, QueueList};
use crate::store::Store;

/// Packets that the tier sends in a row while others wait.
const MOST_IN_A_ROW: u32 = 4;

#[derive(Debug)]
pub(crate) struct Tier {
    /// Queues with marked packets at their head; entries that have lost the right are sorted out when looked at.
    lane: QueueList,
    /// Packets of the tier since the last one of another queue.
    in_a_row: u32,
    /// Flows that lost the tier, since the start.
    pub demotions: u64,
}

impl Tier {
    pub const fn new() -> Self {
        Self { lane: QueueList::new(Link::Priority), in_a_row: 0, demotions: 0 }
    }

    /// Whether a queue may have a right to go first; there is none most of the time.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lane.front().is_none()
    }

    /// Whether it is another queue's turn.
    pub fn must_yield(&self) -> bool {
        self.in_a_row >= MOST_IN_A_ROW
    }

    /// Whether the queue goes first, so that it has no need of its turn.
    pub fn serves(queue: &FlowQueue) -> bool {
        queue.priority && !queue.demoted
    }

    /// A marked packet was put into the queue, or one was taken from it in its turn while others remain: the queue
    /// enters the tier, keeps it, or loses it.
    #[inline(never)]
    pub fn review(&mut self, queues: &mut [FlowQueue], index: u32, limit: i64) {
        let queue = &mut queues[index as usize];
        let fits = queue.bytes <= limit as u64; // the limit is positive
        if fits && queue.deficit > 0 {
            queue.demoted = false;
        } else if !fits && !queue.demoted {
            self.demote(queue);
        }
        if !queue.demoted && !queue.priority {
            queue.priority = true;
            self.lane.push_back(queues, index);
        }
    }

    /// The first queue with a right to go first.
    pub fn select<H>(&mut self, store: &Store<H>, queues: &mut [FlowQueue], limit: i64) -> Option<u32> {
        while let Some(index) = self.lane.front() {
            let queue = &mut queues[index as usize];
            let is_marked = store.head(&queue.chain).is_some_and(|held| held.packet.class == Class::Priority);
            if is_marked && !queue.demoted {
                if queue.deficit > -limit {
                    return Some(index);
                }
                self.demote(queue);
            }
            queue.priority = false;
            self.lane.pop_front(queues);
        }
        None
    }

    /// The queue at the front sent a packet by right of the tier: the next one's turn.
    pub fn on_served(&mut self, queues: &mut [FlowQueue], index: u32) {
        debug_assert_eq!(self.lane.front(), Some(index), "only the front queue is served");
        self.lane.pop_front(queues);
        self.lane.push_back(queues, index);
    }

    /// A packet left, by right of the tier or not.
    #[inline]
    pub fn count(&mut self, by_tier: bool) {
        self.in_a_row = if by_tier { self.in_a_row + 1 } else { 0 };
    }

    fn demote(&mut self, queue: &mut FlowQueue) {
        queue.demoted = true;
        self.demotions += 1;
    }
}
