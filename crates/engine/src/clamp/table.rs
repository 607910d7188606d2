//! Connections by their outgoing flow, in bounded memory.

use super::connection::Connection;
use units::Timestamp;
use wire::{FlowKey, Salt};

/// Connections that share a place in the table.
const WAYS: usize = 8;

#[derive(Debug)]
struct Slot {
    flow: FlowKey,
    used: Timestamp,
    connection: Connection,
}

/// A set-associative table: each flow has eight places, the one unused for the longest is given away.
#[derive(Debug)]
pub(super) struct Table {
    salt: Salt,
    sets: Vec<Vec<Slot>>,
}

impl Table {
    /// A table for at most `connections`, rounded down to a multiple of eight times a power of two; at least eight.
    pub fn new(connections: usize, salt: Salt) -> Self {
        let sets = 1_usize << (connections / WAYS).max(1).ilog2();
        Self { salt, sets: (0..sets).map(|_| Vec::new()).collect() }
    }

    pub fn entry(&mut self, flow: FlowKey, now: Timestamp) -> &mut Connection {
        let index = flow.hash(&self.salt) as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        let place = match set.iter().position(|slot| slot.flow == flow) {
            Some(place) => place,
            None => {
                let slot = Slot { flow, used: now, connection: Connection::new(now) };
                if set.len() < WAYS {
                    set.push(slot);
                    set.len() - 1
                } else {
                    let oldest = (0..WAYS).min_by_key(|&way| set[way].used).unwrap_or(0);
                    set[oldest] = slot;
                    oldest
                }
            }
        };
        set[place].used = now;
        &mut set[place].connection
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.sets.iter_mut().flatten().map(|slot| &mut slot.connection)
    }

    pub fn len(&self) -> usize {
        self.sets.iter().map(Vec::len).sum()
    }
}
