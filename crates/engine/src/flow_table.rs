//! Which queue a flow's packets wait in: 1024 queues in sets of eight.
//!
//! A plain hash table of 1024 queues puts one probe in thirty behind one of 32 bulk flows. Here a flow may use
//! any of the eight queues of its set, so that it shares one only when nine flows of a set are active at once.

use crate::codel::Codel;
use crate::store::{Chain, NONE};

/// Number of flow queues (RFC 8290 section 5.2.5).
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
    /// It is in the express lane.
    pub express: bool,
    /// It is in the priority tier.
    pub priority: bool,
    /// Its marked packets have lost the tier until its backlog is small and its debt paid.
    pub demoted: bool,
    /// The queue behind this one on each kind of list ([`crate::queue_list::Link`]).
    pub behind: [u32; 3],
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
            express: false,
            priority: false,
            demoted: false,
            behind: [NONE; 3],
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Hashes that all fall into set 5, with different preferred ways.
    fn of_one_set(n: u64) -> u64 {
        n << 32 | n << 12 | 5
    }

    /// Makes the queue busy, as a push does.
    fn occupy(table: &mut FlowTable, hash: u64) -> Assignment {
        let assignment = table.assign(hash);
        let queue = &mut table.queues[assignment.queue as usize];
        queue.place = Place::New;
        queue.packets += 1;
        queue.guests += u32::from(assignment.guest);
        assignment
    }

    #[test]
    fn eight_flows_of_one_set_have_eight_queues() {
        let mut table = FlowTable::new();
        let queues: BTreeSet<u32> = (1..=8).map(|n| occupy(&mut table, of_one_set(n)).queue).collect();
        assert_eq!(queues.len(), 8);
        for n in 1..=8 {
            assert!(!table.assign(of_one_set(n)).guest);
        }
    }

    #[test]
    fn a_probe_never_shares_with_32_bulk_flows() {
        // The flows' hashes come from SipHash; these are the first 33 of 1000 salts each.
        let mut shared = 0;
        for salt in 0..1_000 {
            let mut table = FlowTable::new();
            for port in 0..33 {
                let flow = wire::FlowKey {
                    source: [198, 18, 0, 1].into(),
                    destination: [198, 18, 0, 2].into(),
                    source_port: 40_000 + port,
                    destination_port: 443,
                    protocol: 6,
                };
                shared += u32::from(occupy(&mut table, flow.hash(&wire::Salt([salt, 7]))).guest);
            }
        }
        assert_eq!(shared, 0);
    }

    #[test]
    fn the_ninth_flow_is_a_guest_and_stays_where_its_packets_are() {
        let mut table = FlowTable::new();
        (1..=8).for_each(|n| {
            occupy(&mut table, of_one_set(n));
        });
        let guest = occupy(&mut table, of_one_set(9));
        assert!(guest.guest);
        // Another queue of the set becomes idle: the guest's packets still wait in the shared one.
        let other = (1..=8).map(|n| table.assign(of_one_set(n)).queue).find(|&q| q != guest.queue).unwrap();
        table.queues[other as usize].place = Place::Idle;
        assert_eq!(table.assign(of_one_set(9)).queue, guest.queue);
        table.queues[guest.queue as usize].guests = 0;
        let moved = table.assign(of_one_set(9));
        assert_eq!((moved.queue, moved.guest), (other, false));
    }

    #[test]
    fn a_new_owner_starts_with_fresh_codel_state() {
        let mut table = FlowTable::new();
        let queue = table.assign(of_one_set(1)).queue;
        table.queues[queue as usize].codel = Codel::with_count(7);
        assert_eq!(table.assign(of_one_set(1)).queue, queue);
        assert_eq!(table.queues[queue as usize].codel.count(), 7);
        let heirs = (2..10).map(|n| table.assign(of_one_set(n)).queue);
        assert!(heirs.into_iter().any(|heir| heir == queue));
        assert_eq!(table.queues[queue as usize].codel.count(), 0);
    }
}
