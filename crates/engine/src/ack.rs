//! Pure ACKs skip the queue.
//!
//! ```text
//! push --> lane (first in, first out) --> room in the pacer: sent, charged to it
//!                                    \--> waited for longer than CoDel's target: all of them go into their flows'
//!                                         queues, and so do later ones until the last of these has left
//! ```
//! A download turns this side into a sender of ACKs; each one that waits behind an upload slows the download. They
//! occupy no sequence space, so they may overtake the data of their connection: a receiver tells an old window from a
//! new one by sequence and acknowledgement numbers (RFC 9293 section 3.10.7.4).
//!
//! * Among themselves the ACKs of a connection never change their order, whichever way they go: while one waits in a
//!   queue, none uses the lane. SACK blocks, ECN echoes and window updates arrive as they were sent.
//! * They may be ahead of the pacer by one burst, the same that the express lane has and shared with that one. Beyond
//!   it they wait here, but not for long: a train of data is answered by a train of ACKs, which passes; where ACKs alone want more than the link (300/1 Mbit/s) the rest queues, and the fair queue gives each connection and all
//!   other traffic its share.
//! * CoDel does not judge them: their sender cannot slow down for them, and a lost SACK block or window update costs a
//!   timeout. Only a full buffer drops one.
//!
//! The lane comes before the priority tier and the express lane, which it leaves no room only for that one burst.

use crate::store::{Chain, Held, Store};

/// ACKs between push and the next poll.
#[derive(Debug)]
pub(crate) struct AckLane {
    chain: Chain,
}

impl AckLane {
    pub const fn new() -> Self {
        Self { chain: Chain::EMPTY }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    #[inline]
    pub fn push<H>(&mut self, store: &mut Store<H>, held: Held<H>) {
        store.append(&mut self.chain, held);
    }

    /// The ACK that has waited here the longest.
    #[inline]
    pub fn first<'a, H>(&self, store: &'a Store<H>) -> Option<&'a Held<H>> {
        store.head(&self.chain)
    }

    #[inline]
    pub fn pop<H>(&mut self, store: &mut Store<H>) -> Option<Held<H>> {
        store.take(&mut self.chain)
    }
}
