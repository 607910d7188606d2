//! One direction of a connection: what was sent and is not acknowledged yet.

use super::sequence::{are_near, is_at_most, is_before};
use std::collections::VecDeque;
use std::time::Duration;
use units::Timestamp;
use wire::SackBlocks;

/// A segment under way.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: u32,
    /// One behind its last byte.
    end: u32,
    sent: Timestamp,
    /// A part of it was acknowledged already, and timed.
    timed: bool,
}

/// What one side has sent.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// Sequence number of its SYN; `None` when that was not seen.
    pub initial: Option<u32>,
    /// One behind the highest byte sent.
    next: Option<u32>,
    /// The highest acknowledgement of it.
    acknowledged: Option<u32>,
    /// Start of the lowest and end of the highest retransmission that is not acknowledged yet.
    repeated: Option<(u32, u32)>,
    /// By sequence number; never overlapping, all below `next`.
    outstanding: VecDeque<Outstanding>,
}

impl Sender {
    /// Notes that `length` bytes (SYN and FIN count as one each) from `start` on were sent; at most `room` segments
    /// are timed at once. Gives whether this is a retransmission.
    pub fn on_sent(&mut self, now: Timestamp, start: u32, length: u32, room: usize) -> bool {
        let end = start.wrapping_add(length);
        let next = match self.next {
            Some(next) if are_near(next, start) => next,
            Some(_) => {
                *self = Self::default(); // another stream on the same ports, its SYN unseen
                start
            }
            None => start,
        };
        if length == 0 {
            self.next.get_or_insert(start);
            return false;
        }
        let is_new = is_at_most(next, start);
        if is_new && self.outstanding.len() < room {
            self.outstanding.push_back(Outstanding { start, end, sent: now, timed: false });
        }
        if !is_new {
            self.on_repeated(start, end);
        }
        self.next = Some(if is_before(next, end) { end } else { next });
        // A keep-alive repeats one byte that was acknowledged already (RFC 9293 section 3.8.4).
        let is_keep_alive = length == 1 && self.acknowledged == Some(end);
        !is_new && !is_keep_alive
    }

    /// Forgets the segments that end behind `start`, whose acknowledgement may wait for this retransmission.
    fn on_repeated(&mut self, start: u32, end: u32) {
        if self.acknowledged.is_none_or(|highest| is_before(highest, end)) {
            let (low, high) = self.repeated.unwrap_or((start, end));
            let low = if is_before(start, low) { start } else { low };
            self.repeated = Some((low, if is_before(high, end) { end } else { high }));
        }
        while self.outstanding.pop_back_if(|segment| is_before(start, segment.end)).is_some() {}
    }

    /// Takes an acknowledgement from the other side; gives the round trip of the newest segment that it is the first
    /// to cover, in whole or in part: the first answer to a super-packet does not contain the time that the rest of
    /// it took on the line.
    pub fn on_acknowledgement(&mut self, now: Timestamp, ack: u32, sacks: &SackBlocks) -> Option<Duration> {
        let Some(next) = self.next.filter(|&next| are_near(next, ack) && is_at_most(ack, next)) else {
            self.on_unseen(ack);
            return None;
        };
        let advances = self.acknowledged.is_none_or(|highest| is_before(highest, ack));
        let mut newest = None;
        if advances {
            self.acknowledged = Some(ack);
            newest = self.take_covered(ack);
            if self.covers_repeated(ack) {
                newest = None;
            }
        }
        let selective = self.take_selective(ack, next, sacks);
        self.release_memory();
        newest.max(selective).filter(|&sent| sent <= now).map(|sent| now - sent)
    }

    /// Takes out what `ack` covers; gives when the newest segment that it reaches into was sent, unless an earlier one
    /// did so.
    fn take_covered(&mut self, ack: u32) -> Option<Timestamp> {
        let mut newest = None;
        while let Some(covered) = self.outstanding.pop_front_if(|segment| is_at_most(segment.end, ack)) {
            newest = (!covered.timed).then_some(covered.sent);
        }
        match self.outstanding.front_mut() {
            Some(reached) if is_before(reached.start, ack) => {
                (!std::mem::replace(&mut reached.timed, true)).then_some(reached.sent)
            }
            _ => newest,
        }
    }

    /// Whether an acknowledgement may be the answer to a retransmission rather than to what it covers besides, when
    /// an earlier acknowledgement was lost.
    fn covers_repeated(&mut self, ack: u32) -> bool {
        let Some((low, high)) = self.repeated else { return false };
        if is_at_most(high, ack) {
            self.repeated = None;
        }
        is_before(low, ack)
    }

    /// Bytes were acknowledged that were not seen: whatever is known of this direction is out of date.
    fn on_unseen(&mut self, ack: u32) {
        *self = Self { initial: self.initial, next: Some(ack), acknowledged: Some(ack), ..Self::default() };
    }

    /// Takes out the segments within the blocks; gives when the newest of the first block was sent: that block
    /// contains the segment which triggered the acknowledgement, or is a report of a duplicate below `ack`.
    fn take_selective(&mut self, ack: u32, next: u32, sacks: &SackBlocks) -> Option<Timestamp> {
        let mut newest = None;
        for (index, &(left, right)) in sacks.as_slice().iter().enumerate() {
            let is_plausible = is_at_most(ack, left) && is_before(left, right) && is_at_most(right, next);
            if !is_plausible || self.outstanding.is_empty() {
                continue;
            }
            self.outstanding.retain(|segment| {
                let inside = is_at_most(left, segment.start) && is_at_most(segment.end, right);
                if inside && index == 0 {
                    newest = newest.max(Some(segment.sent));
                }
                !inside
            });
        }
        newest
    }

    /// Gives back what a burst has grown, so that memory follows the segments that are under way.
    fn release_memory(&mut self) {
        const KEPT: usize = 64;
        if self.outstanding.is_empty() && self.outstanding.capacity() > KEPT {
            self.outstanding = VecDeque::new();
        }
    }

    /// The highest acknowledgement seen.
    pub fn acknowledged(&self) -> Option<u32> {
        self.acknowledged
    }

    /// Segments under way.
    pub fn len(&self) -> usize {
        self.outstanding.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.outstanding.capacity() * size_of::<Outstanding>()
    }
}
