//! The packets that the engine holds: one slab, chained into queues by index, without allocation in the steady state.

use crate::Packet;
use units::Timestamp;

/// The end of a chain.
pub(crate) const NONE: u32 = u32::MAX;

/// A held packet.
#[derive(Debug)]
pub(crate) struct Held<H> {
    pub packet: Packet<H>,
    pub enqueued: Timestamp,
    /// Bytes as charged to the link.
    pub wire_bytes: u32,
    /// It waits in the queue of another flow.
    pub guest: bool,
}

#[derive(Debug)]
struct Slot<H> {
    /// `None` exactly while the slot is on the free chain.
    held: Option<Held<H>>,
    next: u32,
}

/// A queue of held packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    pub const EMPTY: Self = Self { head: NONE, tail: NONE };

    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

/// The slab. Freed slots are used again before it grows, and it grows by doubling.
#[derive(Debug)]
pub(crate) struct Store<H> {
    slots: Vec<Slot<H>>,
    /// First slot of the chain of free ones.
    free: u32,
}

impl<H> Store<H> {
    pub fn with_capacity(packets: usize) -> Self {
        Self { slots: Vec::with_capacity(packets), free: NONE }
    }

    /// Appends a packet to `chain`.
    #[inline]
    pub fn append(&mut self, chain: &mut Chain, held: Held<H>) {
        let index = self.insert(held);
        self.link(chain, index);
    }

    /// The packet at the head of `chain`.
    #[inline]
    pub fn head(&self, chain: &Chain) -> Option<&Held<H>> {
        self.slots.get(chain.head as usize)?.held.as_ref()
    }

    /// Takes the packet at the head of `chain`.
    #[inline]
    pub fn take(&mut self, chain: &mut Chain) -> Option<Held<H>> {
        let index = self.unlink(chain)?;
        let slot = &mut self.slots[index as usize];
        slot.next = self.free;
        self.free = index;
        slot.held.take()
    }

    /// Moves the head of `from` to the tail of `to` without touching the packet.
    pub fn transfer(&mut self, from: &mut Chain, to: &mut Chain) {
        if let Some(index) = self.unlink(from) {
            self.link(to, index);
        }
    }

    fn insert(&mut self, held: Held<H>) -> u32 {
        if let Some(slot) = self.slots.get_mut(self.free as usize) {
            let index = self.free;
            self.free = slot.next;
            slot.held = Some(held);
            return index;
        }
        let index = self.slots.len() as u32; // the packet limit keeps it far below u32::MAX
        self.slots.push(Slot { held: Some(held), next: NONE });
        index
    }

    fn link(&mut self, chain: &mut Chain, index: u32) {
        self.slots[index as usize].next = NONE;
        match self.slots.get_mut(chain.tail as usize) {
            Some(tail) => tail.next = index,
            None => chain.head = index,
        }
        chain.tail = index;
    }

    fn unlink(&mut self, chain: &mut Chain) -> Option<u32> {
        let index = chain.head;
        let slot = self.slots.get(index as usize)?;
        chain.head = slot.next;
        if chain.head == NONE {
            chain.tail = NONE;
        }
        Some(index)
    }
}
