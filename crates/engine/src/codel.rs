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
/// (RFC 8289 section 5.5).
const REENTRY_INTERVALS: u32 = 16;

/// The settings that all queues share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelParams {
    /// Sojourn time that is tolerated, in ns: every packet is compared with it.
    pub target_ns: u64,
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
    /// Judges the packet that leaves the head of the queue `now` after `sojourn_ns` in it, with `backlog` wire bytes left
    /// behind. Never drops the last packet, since then `backlog` is 0.
    #[inline]
    pub fn judge(
        &mut self,
        params: &CodelParams,
        now: Timestamp,
        sojourn_ns: u64,
        backlog: u64,
        capable: bool,
    ) -> Verdict {
        let above = self.is_above(params, now, sojourn_ns, backlog);
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

    /// Whether the sojourn has been above target for a whole interval (RFC 8289 section 5.5).
    #[inline]
    fn is_above(&mut self, params: &CodelParams, now: Timestamp, sojourn_ns: u64, backlog: u64) -> bool {
        if sojourn_ns < params.target_ns || backlog <= params.mtu {
            self.first_above = None;
            return false;
        }
        let since = *self.first_above.get_or_insert(now + params.interval);
        now >= since
    }

    /// Enters the dropping state with its first signal (RFC 8289 section 5.5).
    fn enter(&mut self, params: &CodelParams, now: Timestamp) {
        let delta = self.count - self.last_count.min(self.count);
        let recent = now.saturating_since(self.drop_next) < params.interval.saturating_mul(REENTRY_INTERVALS);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + control_law(params.interval, self.count);
        self.dropping = true;
    }
}

#[cfg(test)]
impl Codel {
    /// State with `count` signals behind it.
    pub fn with_count(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    pub fn count(&self) -> u32 {
        self.count
    }
}

/// The gap to the next signal, interval / sqrt(count) (RFC 8289 sections 3.3 and 5.6), with the true square root: it is
/// computed once a signal, not once a packet.
fn control_law(interval: Duration, count: u32) -> Duration {
    interval.div_f64(f64::from(count.max(1)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Deliver, Drop, Mark};

    const PARAMS: CodelParams =
        CodelParams { target_ns: 5_000_000, interval: Duration::from_millis(100), mtu: 1_514, ecn: true };
    const STANDING: u64 = 20_000_000;
    const BACKLOG: u64 = 100_000;

    fn ms(n: u64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn judge(codel: &mut Codel, now: Timestamp) -> Verdict {
        codel.judge(&PARAMS, now, STANDING, BACKLOG, false)
    }

    /// Judges a packet of a standing queue every `step` and gives the times of the drops.
    fn drops(codel: &mut Codel, from: Timestamp, to: Timestamp, step: Duration) -> Vec<Timestamp> {
        let times = std::iter::successors(Some(from), |&at| Some(at + step)).take_while(|&at| at < to);
        times.filter(|&at| judge(codel, at) == Drop).collect()
    }

    #[test]
    fn below_target_or_within_one_mtu_the_crossing_is_forgotten() {
        for (sojourn, backlog) in [(4_999_999, BACKLOG), (STANDING, 1_514), (STANDING, 0)] {
            let mut codel = Codel::default();
            assert_eq!(judge(&mut codel, ms(0)), Deliver);
            assert_eq!(codel.judge(&PARAMS, ms(90), sojourn, backlog, false), Deliver);
            assert_eq!(judge(&mut codel, ms(101)), Deliver, "the crossing of 0 ms no longer counts");
            assert_eq!(judge(&mut codel, ms(201)), Drop);
        }
    }

    #[test]
    fn the_last_packet_of_a_queue_is_never_dropped() {
        let mut codel = Codel::default();
        for at in 0..10_000 {
            assert_eq!(codel.judge(&PARAMS, ms(at), 9_000_000_000, 0, false), Deliver);
        }
    }

    #[test]
    fn the_first_crossing_arms_and_a_whole_interval_later_the_first_drop_comes() {
        let mut codel = Codel::default();
        let first = drops(&mut codel, ms(10), ms(111), Duration::from_millis(1));
        assert_eq!(first, [ms(110)]);
    }

    #[test]
    fn after_the_first_drop_the_next_packet_is_delivered_and_the_next_drop_is_an_interval_away() {
        let mut codel = Codel::default();
        drops(&mut codel, ms(0), ms(101), Duration::from_millis(100));
        assert_eq!(judge(&mut codel, ms(100)), Deliver);
        assert_eq!((codel.count, codel.drop_next, codel.dropping), (1, ms(200), true));
    }

    #[test]
    fn gaps_shrink_with_the_exact_square_root_of_the_count() {
        let mut codel = Codel::default();
        let times = drops(&mut codel, ms(0), ms(700), Duration::from_micros(1));
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
        for (gap, exact) in gaps.iter().zip([100.0, 70.711, 57.735, 50.0, 44.721, 40.825]) {
            assert!((gap - exact).abs() < 0.002, "{gaps:?}");
        }
        assert!(gaps.len() >= 6);
    }

    #[test]
    fn a_late_dequeue_drops_what_is_due_from_drop_next_not_from_now() {
        let mut codel = Codel::default();
        drops(&mut codel, ms(0), ms(101), Duration::from_millis(100));
        // Due at 200, 270.7, 328.4 and 378.4 ms: the dequeue at 350 ms makes up for the first three.
        let verdicts: Vec<Verdict> = (0..4).map(|_| judge(&mut codel, ms(350))).collect();
        assert_eq!(verdicts, [Drop, Drop, Drop, Deliver]);
        assert_eq!(codel.drop_next.as_nanos() / 1_000, 378_445);
    }

    #[test]
    fn dropping_ends_as_soon_as_the_queue_is_below_target() {
        let mut codel = Codel::default();
        drops(&mut codel, ms(0), ms(101), Duration::from_millis(100));
        assert_eq!(codel.judge(&PARAMS, ms(350), 1_000_000, BACKLOG, false), Deliver);
        assert!(!codel.dropping);
        assert_eq!(judge(&mut codel, ms(351)), Deliver);
    }

    #[test]
    fn a_return_within_16_intervals_continues_near_the_old_count_and_a_later_one_starts_again() {
        for (pause, expected) in [(1_000, 9), (1_800, 1)] {
            let mut codel = Codel::default();
            let first = drops(&mut codel, ms(0), ms(600), Duration::from_millis(1));
            assert_eq!((first.len(), codel.count), (10, 10), "{first:?}");
            codel.judge(&PARAMS, ms(600), 0, BACKLOG, false);
            let again = drops(&mut codel, ms(600 + pause), ms(600 + pause + 101), Duration::from_millis(100));
            assert_eq!((again.len(), codel.count, codel.last_count), (1, expected, expected));
        }
    }

    #[test]
    fn re_entry_takes_the_signals_since_the_last_entry() {
        let mut codel = Codel { count: 9, last_count: 4, drop_next: ms(100), ..Codel::default() };
        drops(&mut codel, ms(200), ms(301), Duration::from_millis(100));
        assert_eq!((codel.count, codel.last_count), (5, 5));
        let mut codel = Codel { count: 5, last_count: 4, drop_next: ms(100), ..Codel::default() };
        drops(&mut codel, ms(200), ms(301), Duration::from_millis(100));
        assert_eq!(codel.count, 1, "a difference of one is no memory");
    }

    #[test]
    fn a_capable_packet_is_marked_once_a_dequeue_and_delivered() {
        let mut codel = Codel::default();
        codel.judge(&PARAMS, ms(0), STANDING, BACKLOG, true);
        assert_eq!(codel.judge(&PARAMS, ms(100), STANDING, BACKLOG, true), Mark);
        assert_eq!(codel.judge(&PARAMS, ms(101), STANDING, BACKLOG, true), Deliver);
        assert_eq!(codel.judge(&PARAMS, ms(200), STANDING, BACKLOG, true), Mark);
        let off = CodelParams { ecn: false, ..PARAMS };
        assert_eq!(codel.judge(&off, ms(400), STANDING, BACKLOG, true), Drop);
    }
}
