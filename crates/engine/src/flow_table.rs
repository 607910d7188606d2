//! Which queue a flow's packets wait in: 1024 queues in sets of eight.
//!
//! A plain hash table of 1024 queues puts one probe in thirty behind one of 32 bulk flows. Here a flow may use
//! any of the eight queues of its set, so that it shares one only when nine flows of a set are active at once.

use crate::codel::Codel;
use crate::store::{Chain, NONE};

/// Number of flow queues (RFC 8290 section 5.2.6).
pub(crate) const QUEUES: usize = 1024;
/// Queues in a set.
const WAYS: usize = 8;
const SETS: usize = QUEUES / WAYS;

/// The list that a queue is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On none: it has no packets.
    Idle,
    /// Among the sparse flows.
    New,
    /// Among the bulk flows, or on its way out.
    Old,
}

/// The queue of one flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueue {
    pub chain: Chain,
    /// Wire bytes in the chain.
    pub bytes: u64,
    /// Packets in the chain.
    pub packets: u32,
    /// Those of them that belong to other flows than the queue's own.
    pub guests: u32,
    /// Wire bytes that the queue may still send in this turn.
    pub deficit: i64,
    pub place: Place,
    /// The queue behind this one on its list.
    pub next: u32,
    pub codel: Codel,
}

impl FlowQueue {
    fn new() -> Self {
        Self {
            chain: Chain::EMPTY,
            bytes: 0,
            packets: 0,
            guests: 0,
            deficit: 0,
            place: Place::Idle,
            next: NONE,
            codel: Codel::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct FlowTable {
    /// Hash of the flow that owns each queue; apart from the queues, so that a set's eight lie in one cache line.
    owners: Box<[[u64; WAYS]]>,
    pub queues: Box<[FlowQueue]>,
}

/// Where a flow's packet goes.
pub(crate) struct Assignment {
    pub queue: u32,
    /// The queue belongs to another flow.
    pub guest: bool,
}

impl FlowTable {
    pub fn new() -> Self {
        Self {
            owners: vec![[0; WAYS]; SETS].into_boxed_slice(),
            queues: vec![FlowQueue::new(); QUEUES].into_boxed_slice(),
        }
    }

    /// The queue for a packet of the flow with this hash.
    #[inline]
    pub fn assign(&mut self, hash: u64) -> Assignment {
        let set = hash as usize % SETS;
        match self.owners[set].iter().position(|&owner| owner == hash) {
            Some(way) => Assignment { queue: index(set, way), guest: false },
            None => self.claim(hash, set),
        }
    }

    /// Gives the flow an idle queue of its set, with fresh CoDel state. When all are in use it becomes a guest in
    /// one that its hash determines, and stays there while that queue holds guests, so that its packets keep
    /// their order.
    fn claim(&mut self, hash: u64, set: usize) -> Assignment {
        let start = (hash >> 32) as usize;
        let shared = index(set, start % WAYS);
        if self.queues[shared as usize].guests > 0 {
            return Assignment { queue: shared, guest: true };
        }
        // Starting at a way of its own, a newcomer does not always end the memory of the same neighbour.
        let idle = (start..start + WAYS)
            .map(|way| way % WAYS)
            .find(|&way| self.queues[index(set, way) as usize].place == Place::Idle);
        let Some(way) = idle else { return Assignment { queue: shared, guest: true } };
        let queue = index(set, way);
        self.owners[set][way] = hash;
        self.queues[queue as usize].codel = Codel::default();
        Assignment { queue, guest: false }
    }
}

fn index(set: usize, way: usize) -> u32 {
    (set * WAYS + way) as u32 // below QUEUES
}
