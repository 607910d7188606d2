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

use crate::config::MTU_BYTES;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};

#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    credit: Duration,
    /// Time of one MTU on the wire.
    mtu_time: Duration,
    /// When the link will have carried everything that was sent.
    next: Timestamp,
    /// The same as of the last regular packet, without the express packets since.
    regular_end: Timestamp,
}

impl Pacer {
    pub fn new(rate: Rate, credit: Duration) -> Self {
        let mtu_time = Bytes::from(MTU_BYTES) / rate;
        Self { rate, credit, mtu_time, next: Timestamp::ZERO, regular_end: Timestamp::ZERO }
    }

    /// Whether a regular packet may leave.
    #[inline]
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.next <= now
    }

    /// Whether a small packet of a sparse flow may leave ahead of its time: while the debt is below one MTU time (or
    /// what is left of the super-packet in flight) and the credit. The debt is paid before the next regular packet.
    #[inline]
    pub fn has_express_room(&self, now: Timestamp) -> bool {
        let in_flight = self.regular_end.saturating_since(now).max(self.mtu_time);
        self.next.saturating_since(now) < in_flight + self.credit
    }

    /// A regular packet left.
    #[inline]
    pub fn charge(&mut self, now: Timestamp, wire_bytes: u32) {
        self.charge_express(now, wire_bytes);
        self.regular_end = self.next;
    }

    /// A packet left by the express lane.
    #[inline]
    pub fn charge_express(&mut self, now: Timestamp, wire_bytes: u32) {
        let earliest = now.saturating_back(self.credit);
        self.next = self.next.max(earliest) + Bytes::from(wire_bytes) / self.rate;
    }

    /// When to look again while packets wait: at `next`, but not before half the credit has passed. The other half
    /// is left for the timer's own lateness, so the rate is kept, and at 1 Gbit/s there is one wake-up for a
    /// dozen packets.
    #[inline]
    pub fn wake_up(&self, now: Timestamp) -> Timestamp {
        self.next.max(now + self.credit / 2)
    }

    /// Continues at another rate; the bytes still owed stay the same, their time changes.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        let old = self.rate;
        let rescale = |at: Timestamp| match at.saturating_since(now) {
            Duration::ZERO => at,
            debt => now + (old * debt) / rate,
        };
        self.next = rescale(self.next);
        self.regular_end = rescale(self.regular_end);
        self.mtu_time = Bytes::from(MTU_BYTES) / rate;
        self.rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDIT: Duration = Duration::from_micros(200);
    const RATE: Rate = Rate::mbit_per_s(20);

    fn micros(n: u64) -> Timestamp {
        Timestamp::from_micros(n)
    }

    #[test]
    fn idle_time_earns_no_more_than_the_credit() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        pacer.charge(Timestamp::from_millis(10_000), 1_500); // 600 us
        assert_eq!(pacer.next, micros(10_000_000 + 600 - 200));
    }

    #[test]
    fn a_late_wake_up_is_caught_up() {
        let mut pacer = Pacer::new(RATE, CREDIT);
        pacer.charge(micros(1_000), 1_500);
        let due = pacer.next;
        pacer.charge(due + Duration::from_micros(90), 1_500);
        assert_eq!(pacer.next, due + Duration::from_micros(600));
        pacer.charge(due + Duration::from_micros(900), 1_500); // 300 us late: 100 of them are lost
        assert_eq!(pacer.next, due + Duration::from_micros(600 + 600 + 100));
    }

    #[test]
    fn wake_ups_are_at_least_half_the_credit_apart() {
        let mut pacer = Pacer::new(Rate::mbit_per_s(1_000), CREDIT);
        let now = micros(1_000);
        while pacer.is_ready(now) {
            pacer.charge(now, 1_500);
        }
        assert!(pacer.next - now < Duration::from_micros(13));
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
        let debt = pacer.next - now;
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
        assert_eq!(pacer.next, micros(55_000));
        pacer.set_rate(micros(60_000), Rate::mbit_per_s(1));
        assert_eq!(pacer.next, micros(55_000));
    }
}
