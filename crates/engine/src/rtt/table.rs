//! Connections by address and port, in bounded memory.

use super::connection::{Connection, Side};
use std::net::IpAddr;
use units::Timestamp;
use wire::{FlowKey, Salt, protocol};

/// Connections that share a place in the table.
const WAYS: usize = 8;

/// A connection's name, the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    network: u64,
    /// Of the direction whose source is the lower endpoint.
    flow: FlowKey,
}

impl Key {
    /// The key of a packet's connection, and which end sent the packet.
    pub fn new(network: u64, flow: &FlowKey) -> (Self, Side) {
        let (source, destination) =
            ((flow.source, flow.source_port), (flow.destination, flow.destination_port));
        if source <= destination {
            return (Self { network, flow: *flow }, 0);
        }
        let reversed = FlowKey {
            source: flow.destination,
            destination: flow.source,
            source_port: flow.destination_port,
            destination_port: flow.source_port,
            protocol: protocol::TCP,
        };
        (Self { network, flow: reversed }, 1)
    }

    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        (self.flow.source, self.flow.destination)
    }
}

#[derive(Debug)]
struct Slot {
    key: Key,
    used: Timestamp,
    connection: Connection,
}

/// A set-associative table: each key has eight places, the one unused for the longest is given away.
#[derive(Debug)]
pub(super) struct Table {
    salt: Salt,
    sets: Vec<Vec<Slot>>,
}

/// What [`Table::entry`] found or made.
pub(super) struct Entry<'a> {
    pub connection: &'a mut Connection,
    pub is_new: bool,
    /// The connection that made room.
    pub evicted: Option<Connection>,
}

impl Table {
    /// A table for at most `connections`, rounded down to a multiple of eight times a power of two; at least eight.
    pub fn new(connections: usize, salt: Salt) -> Self {
        let sets = 1_usize << (connections / WAYS).max(1).ilog2();
        Self { salt, sets: (0..sets).map(|_| Vec::new()).collect() }
    }

    pub fn entry(&mut self, key: Key, now: Timestamp) -> Entry<'_> {
        let hash =
            key.flow.hash(&self.salt) ^ key.network.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        let index = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        if let Some(found) = set.iter().position(|slot| slot.key == key) {
            let slot = &mut set[found];
            slot.used = now;
            return Entry { connection: &mut slot.connection, is_new: false, evicted: None };
        }
        let slot = Slot { key, used: now, connection: Connection::default() };
        let (place, evicted) = if set.len() < WAYS {
            set.push(slot);
            (set.len() - 1, None)
        } else {
            let oldest = (0..WAYS).min_by_key(|&way| set[way].used).unwrap_or(0);
            (oldest, Some(std::mem::replace(&mut set[oldest], slot).connection))
        };
        Entry { connection: &mut set[place].connection, is_new: true, evicted }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Connection)> {
        self.sets.iter().flatten().map(|slot| (&slot.key, &slot.connection))
    }

    pub fn len(&self) -> usize {
        self.sets.iter().map(Vec::len).sum()
    }

    pub fn memory_bytes(&self) -> usize {
        let slots: usize = self.sets.iter().map(Vec::capacity).sum();
        slots * size_of::<Slot>() + self.sets.len() * size_of::<Vec<Slot>>()
    }
}
