//! When the next packet may leave: a virtual clock with bounded credit.
//!
//! `next` is the time at which the link has carried all that was sent. A packet may leave once `next` has come and
//! moves it on by its own time on the wire. A wake-up that comes late finds `next` in the past and catches up,
//! for as much as `credit`: idle time earns no more than that, or a pacer would not shape at all.
//!
//! ```text
//!          credit                debt
//!      |<---------->|<------------------------->|
//!  now - credit    now                         next      -> time
//!   `next` never    regular packets wait until `next`,
//!   lies before     express packets while the debt is below its bound
//! ```

//! Everything in here is plain nanoseconds: this is the path of every packet, and `Duration` splits off seconds with a
//! division at each step.

use crate::config::MTU_BYTES;
use std::time::Duration;
use units::{Rate, Timestamp};

#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    /// What a late wake-up may catch up.
    credit_ns: u64,
    /// Time of one MTU on the wire.
    mtu_ns: u64,
    /// When the link will have carried everything that was sent.
    next_ns: u64,
    /// The same as of the last regular packet, without the express packets since.
    regular_end_ns: u64,
}

impl Pacer {
    pub fn new(rate: Rate, credit: Duration) -> Self {
        let credit_ns = u64::try_from(credit.as_nanos()).unwrap_or(u64::MAX);
        Self { rate, credit_ns, mtu_ns: wire_time_ns(MTU_BYTES, rate), next_ns: 0, regular_end_ns: 0 }
    }

    /// Whether a regular packet may leave.
    #[inline]
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.next_ns <= now.as_nanos()
    }

    /// Whether a small packet of a sparse flow may leave ahead of its time: while the debt is below one MTU time (or
    /// what is left of the super-packet in flight) and the credit. The debt is paid before the next regular packet.
    #[inline]
    pub fn has_express_room(&self, now: Timestamp) -> bool {
        let in_flight_until = self.regular_end_ns.max(now.as_nanos().saturating_add(self.mtu_ns));
        self.next_ns < in_flight_until.saturating_add(self.credit_ns)
    }

    /// A regular packet left.
    #[inline]
    pub fn charge(&mut self, now: Timestamp, wire_bytes: u32) {
        self.charge_express(now, wire_bytes);
        self.regular_end_ns = self.next_ns;
    }

    /// A packet left by the express lane.
    #[inline]
    pub fn charge_express(&mut self, now: Timestamp, wire_bytes: u32) {
        let earliest = now.as_nanos().saturating_sub(self.credit_ns);
        self.next_ns = self.next_ns.max(earliest).saturating_add(wire_time_ns(wire_bytes, self.rate));
    }

    /// When there will be room ahead of time again, not before half the credit has passed (see [`Self::wake_up`]).
    pub fn room_at(&self, now: Timestamp) -> Timestamp {
        let opens = self.next_ns.saturating_sub(self.mtu_ns).saturating_sub(self.credit_ns).saturating_add(1);
        Timestamp::from_nanos(opens.max(now.as_nanos().saturating_add(self.credit_ns / 2)))
    }

    /// When to look again while packets wait: at `next`, but not before half the credit has passed. The other half
    /// is left for the timer's own lateness, so the rate is kept, and at 1 Gbit/s there is one wake-up for a
    /// dozen packets.
    #[inline]
    pub fn wake_up(&self, now: Timestamp) -> Timestamp {
        let soonest = now.as_nanos().saturating_add(self.credit_ns / 2);
        Timestamp::from_nanos(self.next_ns.max(soonest))
    }

    /// Continues at another rate; the bytes still owed stay the same, their time changes.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        let (now_ns, old) = (now.as_nanos(), self.rate);
        let rescale = |at_ns: u64| match at_ns.saturating_sub(now_ns) {
            0 => at_ns,
            debt_ns => now_ns.saturating_add(rescaled_ns(debt_ns, old, rate)),
        };
        self.next_ns = rescale(self.next_ns);
        self.regular_end_ns = rescale(self.regular_end_ns);
        self.mtu_ns = wire_time_ns(MTU_BYTES, rate);
        self.rate = rate;
    }
}

/// Time on the wire, rounded up so that the pacer never runs fast. Beyond 2.3 GB a packet is charged as 2.3 GB.
#[inline]
fn wire_time_ns(wire_bytes: u32, rate: Rate) -> u64 {
    u64::from(wire_bytes).saturating_mul(8 * 1_000_000_000).div_ceil(rate.as_bits_per_s().max(1))
}

/// The time at rate `new` of what takes `span_ns` at rate `old`, rounded up.
fn rescaled_ns(span_ns: u64, old: Rate, new: Rate) -> u64 {
    let bit_ns = u128::from(span_ns) * u128::from(old.as_bits_per_s());
    u64::try_from(bit_ns.div_ceil(u128::from(new.as_bits_per_s().max(1)))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    const CREDIT: Duration = Duration::from_micros(200);
    const RATE: Rate = Rate::mbit_per_s(20);

    fn micros(n: u64) -> Timestamp {
        Timestamp::from_micros(n)
    }

    fn next(pacer: &Pacer) -> Timestamp {
        Timestamp::from_nanos(pacer.next_ns)
    }

    #[test]
    fn idle_time_earns_no_more_than_the_credit() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        pacer.charge(Timestamp::from_millis(10_000), 1_500); // 600 us
        assert_eq!(next(&pacer), micros(10_000_000 + 600 - 200));
    }

    #[test]
    fn a_late_wake_up_is_caught_up() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        pacer.charge(micros(1_000), 1_500);
        let due = next(&pacer);
        pacer.charge(due + Duration::from_micros(90), 1_500);
        assert_eq!(next(&pacer), due + Duration::from_micros(600));
        pacer.charge(due + Duration::from_micros(900), 1_500); // 300 us late: 100 of them are lost
        assert_eq!(next(&pacer), due + Duration::from_micros(600 + 600 + 100));
    }

    #[test]
    fn wake_ups_are_at_least_half_the_credit_apart() {
        let mut pacer = Pacer::new(Rate::mbit_per_s(1_000), CREDIT);
        let now = micros(1_000);
        while pacer.is_ready(now) {
            pacer.charge(now, 1_500);
        }
        assert!(next(&pacer) - now < Duration::from_micros(13));
        assert_eq!(pacer.wake_up(now), now + CREDIT / 2);
    }

    #[test]
    fn the_express_debt_is_bounded_by_one_mtu_time_and_the_credit() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        let now = micros(1_000);
        pacer.charge(now, MTU_BYTES);
        while pacer.has_express_room(now) {
            pacer.charge_express(now, 64);
        }
        let debt = next(&pacer) - now;
        let bound = Bytes::from(MTU_BYTES) / RATE + CREDIT;
        assert!(debt >= bound && debt < bound + Bytes::new(64) / RATE, "{debt:?}");
    }

    #[test]
    fn a_super_packet_in_flight_does_not_close_the_express_lane() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        let now = micros(1_000);
        pacer.charge(now, 64_000);
        assert!(pacer.has_express_room(now));
        pacer.charge_express(now, 64_000);
        assert!(!pacer.has_express_room(now));
    }

    #[test]
    fn a_new_rate_applies_to_the_bytes_still_owed() {
        let mut pacer = Pacer::new(Rate::mbit_per_s(1), Duration::ZERO);
        pacer.charge(micros(0), 12_500); // 100 ms
        pacer.set_rate(micros(50_000), Rate::mbit_per_s(10));
        assert_eq!(next(&pacer), micros(55_000));
        pacer.set_rate(micros(60_000), Rate::mbit_per_s(1));
        assert_eq!(next(&pacer), micros(55_000));
    }
}
