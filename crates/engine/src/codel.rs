//! Controlled Delay: when to signal congestion to one queue (RFC 8289).
//!
//! The RFC's pseudocode dequeues in a loop; here each call judges one packet, and the caller comes back with the
//! next head after a drop. Two consequences, neither visible in what is dropped when:
//! * after the drop that enters the dropping state, the next packet may leave that state at once instead of one
//!   dequeue later (it re-arms the crossing either way);
//! * when the state is left in the middle of a run of drops, `drop_next` has already moved on by one step, at most
//!   one interval beside the 16 that bound a re-entry.

use std::time::Duration;
use units::Timestamp;

/// Re-entering the dropping state within this many intervals of the last drop continues near the previous count
/// (RFC 8289 section 5.4).
const REENTRY_INTERVALS: u32 = 16;

/// The settings that all queues share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelParams {
    /// Sojourn time that is tolerated.
    pub target: Duration,
    /// How long the sojourn must stay above target, and the first gap between signals.
    pub interval: Duration,
    /// Backlog in wire bytes up to which nothing is signalled.
    pub mtu: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// The state of one queue. It outlives the queue's packets: a flow that returns soon is met where it left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When the sojourn has been above target for a whole interval; `None` while below.
    first_above: Option<Timestamp>,
    /// When the next signal is due; meaningful while `dropping` and for the re-entry rule.
    drop_next: Timestamp,
    /// Signals since the dropping state was entered; the control law's n.
    count: u32,
    /// `count` when the state was last entered.
    last_count: u32,
    dropping: bool,
}

/// What becomes of the packet at the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Deliver,
    /// Deliver with Congestion Experienced.
    Mark,
    Drop,
}

impl Codel {
    /// Judges the packet that leaves the head of the queue `now` after `sojourn` in it, with `backlog` wire bytes left
    /// behind. Never drops the last packet, since then `backlog` is 0.
    #[inline]
    pub fn judge(
        &mut self,
        params: &CodelParams,
        now: Timestamp,
        sojourn: Duration,
        backlog: u64,
        capable: bool,
    ) -> Verdict {
        let above = self.is_above(params, now, sojourn, backlog);
        if !above {
            self.dropping = false;
            return Verdict::Deliver;
        }
        if !self.dropping {
            self.enter(params, now);
        } else if now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.drop_next += control_law(params.interval, self.count);
        } else {
            return Verdict::Deliver;
        }
        if capable && params.ecn { Verdict::Mark } else { Verdict::Drop }
    }

    /// The queue was found empty: nothing stands in it any more.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Whether the sojourn has been above target for a whole interval (RFC 8289 section 5.6, dodequeue).
    fn is_above(&mut self, params: &CodelParams, now: Timestamp, sojourn: Duration, backlog: u64) -> bool {
        if sojourn < params.target || backlog <= params.mtu {
            self.first_above = None;
            return false;
        }
        let since = *self.first_above.get_or_insert(now + params.interval);
        now >= since
    }

    /// Enters the dropping state with its first signal (RFC 8289 section 5.6, deque).
    fn enter(&mut self, params: &CodelParams, now: Timestamp) {
        let delta = self.count - self.last_count.min(self.count);
        let recent = now.saturating_since(self.drop_next) < params.interval.saturating_mul(REENTRY_INTERVALS);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + control_law(params.interval, self.count);
        self.dropping = true;
    }
}

/// The gap to the next signal, interval / sqrt(count) (RFC 8289 section 5.3), with the true square root: it is
/// computed once a signal, not once a packet.
fn control_law(interval: Duration, count: u32) -> Duration {
    interval.div_f64(f64::from(count.max(1)).sqrt())
}
