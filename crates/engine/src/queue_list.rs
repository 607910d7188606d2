//! A list of flow queues, chained through the queues themselves.

use crate::flow_table::FlowQueue;
use crate::store::NONE;

/// NEW or OLD: queues in the order of their turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueList {
    head: u32,
    tail: u32,
    len: u32,
}

impl QueueList {
    pub const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub fn push_back(&mut self, queues: &mut [FlowQueue], index: u32) {
        queues[index as usize].next = NONE;
        match queues.get_mut(self.tail as usize) {
            Some(tail) => tail.next = index,
            None => self.head = index,
        }
        self.tail = index;
        self.len += 1;
    }

    #[inline]
    pub fn pop_front(&mut self, queues: &[FlowQueue]) -> Option<u32> {
        let index = self.front()?;
        self.head = queues[index as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        self.len -= 1;
        Some(index)
    }

    /// The queues from front to back.
    pub fn iter<'a>(&self, queues: &'a [FlowQueue]) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(self.front(), move |&index| behind(queues, index))
    }
}

/// The queue behind this one on its list.
pub(crate) fn behind(queues: &[FlowQueue], index: u32) -> Option<u32> {
    let next = queues[index as usize].next;
    (next != NONE).then_some(next)
}
