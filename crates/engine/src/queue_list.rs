//! A list of flow queues, chained through the queues themselves.

use crate::flow_table::FlowQueue;
use crate::store::NONE;

/// Which of a queue's links a list uses; a queue can be on one list of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    /// NEW and OLD: the order of turns.
    Turn,
    /// The express lane.
    Express,
    /// The priority tier.
    Priority,
}

/// Queues in the order in which they were put there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueList {
    link: Link,
    head: u32,
    tail: u32,
    len: u32,
}

impl QueueList {
    pub const fn new(link: Link) -> Self {
        Self { link, head: NONE, tail: NONE, len: 0 }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub fn push_back(&mut self, queues: &mut [FlowQueue], index: u32) {
        queues[index as usize].behind[self.link as usize] = NONE;
        match queues.get_mut(self.tail as usize) {
            Some(tail) => tail.behind[self.link as usize] = index,
            None => self.head = index,
        }
        self.tail = index;
        self.len += 1;
    }

    #[inline]
    pub fn pop_front(&mut self, queues: &[FlowQueue]) -> Option<u32> {
        let index = self.front()?;
        self.head = queues[index as usize].behind[self.link as usize];
        if self.head == NONE {
            self.tail = NONE;
        }
        self.len -= 1;
        Some(index)
    }

    /// The queue behind this one.
    pub fn behind(&self, queues: &[FlowQueue], index: u32) -> Option<u32> {
        let behind = queues[index as usize].behind[self.link as usize];
        (behind != NONE).then_some(behind)
    }

    /// The queues from front to back.
    pub fn iter(self, queues: &[FlowQueue]) -> impl Iterator<Item = u32> {
        std::iter::successors(self.front(), move |&index| self.behind(queues, index))
    }
}
