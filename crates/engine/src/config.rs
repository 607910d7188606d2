//! The engine's settings, and what follows from them at a given rate.

use crate::Overhead;
use std::time::Duration;
use units::{Bytes, Rate};

/// One full packet on Ethernet: 1500 bytes of IP and 14 of header. The unit of quantum, target and backlog.
pub const MTU_BYTES: u32 = 1514;

/// The largest packet that may use the express lane, in wire bytes. Handshakes, DNS queries, ACKs, voice frames and
/// game updates stay below it; it is a sixth of an MTU, so that one too many costs the others little.
pub const EXPRESS_BYTES: u32 = 256;

/// Lower rates are raised to this one: 1.5 s for each full packet is where shaping ends to make sense.
pub const MIN_RATE: Rate = Rate::kbit_per_s(8);

/// Smallest quantum in bytes (RFC 8290 section 5.2.4 suggests 300 for low rates, so that small packets pass between
/// the large ones of others).
const MIN_QUANTUM: u64 = 300;
/// A quantum is the bytes that the rate carries in this span, about 0.25 ms: with `MIN_QUANTUM` and one MTU as limits
/// these are CAKE's values, 300 bytes up to 10 Mbit/s and one MTU from 50 Mbit/s on.
const QUANTUM_SPAN: Duration = Duration::from_nanos(1_000_000_000 / 4096);
/// The buffer holds this much of the rate ...
const BUFFER_SPAN: Duration = Duration::from_millis(200);
/// ... or this many bytes if that is more: CoDel drops long before, the buffer is for bursts ...
const BUFFER_BYTES: Bytes = Bytes::new(4_000_000);
/// ... but never more than this span, so that a flow that heeds no signal at 500 kbit/s cannot hold 64 s of queue ...
const BUFFER_LONGEST: Duration = Duration::from_secs(1);
/// ... and never less than a few packets.
const BUFFER_SMALLEST: Bytes = Bytes::new(4 * MTU_BYTES as u64);

/// What a marked flow may hold takes the link at most this long, so that it does not become a queue for the others.
const PRIORITY_SPAN: Duration = Duration::from_millis(20);

/// Settings of a [`crate::Shaper`]. [`ShaperConfig::new`] gives the recommended ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaperConfig {
    /// Rate of the link in wire bits, raised to [`MIN_RATE`].
    pub rate: Rate,
    /// What each packet costs on the link beyond its IP bytes.
    pub overhead: Overhead,
    /// CoDel's target: the standing queue that is tolerated (RFC 8289 section 4.3). Raised to 1.5 MTU times where the
    /// rate is low (RFC 8290 section 5.2.2).
    pub target: Duration,
    /// CoDel's interval: in the order of the longest usual round-trip time (RFC 8289 section 4.2).
    pub interval: Duration,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// What a late wake-up may catch up, as time of the rate. Timers wake 20 to 100 us late; more would be a burst for
    /// the next queue on the path.
    pub credit: Duration,
    /// Wire bytes that a marked flow may have waiting before it loses the priority tier, and that it may be served
    /// ahead of its turns. Lowered to 20 ms of the rate, raised to one MTU.
    pub priority_limit: Bytes,
    /// Most packets held, whatever their size (a super-packet counts once). RFC 8290 section 5.2.3.
    pub limit_packets: u32,
}

impl ShaperConfig {
    /// The recommended settings for a link of `rate`.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            overhead: Overhead::NONE,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: true,
            credit: Duration::from_micros(200),
            priority_limit: Bytes::new(6_000),
            limit_packets: 10_240,
        }
    }
}

/// What follows from the settings at the present rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub rate: Rate,
    pub target: Duration,
    /// Wire bytes for each turn of a queue.
    pub quantum: i64,
    /// [`ShaperConfig::priority_limit`] at this rate.
    pub priority: i64,
    /// Most wire bytes held.
    pub buffer: Bytes,
    pub packets: u32,
}

impl Limits {
    pub fn new(config: &ShaperConfig) -> Self {
        let rate = config.rate.max(MIN_RATE);
        let mtu_time = Bytes::from(MTU_BYTES) / rate;
        let quantum = (rate * QUANTUM_SPAN).get().clamp(MIN_QUANTUM, MTU_BYTES.into());
        let buffer = (rate * BUFFER_SPAN).max(BUFFER_BYTES).min(rate * BUFFER_LONGEST).max(BUFFER_SMALLEST);
        let priority = config.priority_limit.min(rate * PRIORITY_SPAN).get().max(MTU_BYTES.into());
        Self {
            rate,
            target: config.target.max(mtu_time * 3 / 2),
            quantum: quantum as i64,   // at most MTU_BYTES
            priority: priority as i64, // a span of 20 ms stays far below 2^63 bytes
            buffer,
            packets: config.limit_packets.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: Rate) -> Limits {
        Limits::new(&ShaperConfig::new(rate))
    }

    #[test]
    fn target_is_5_ms_or_one_and_a_half_mtu_times() {
        assert_eq!(at(Rate::mbit_per_s(20)).target, Duration::from_millis(5));
        assert_eq!(at(Rate::mbit_per_s(1)).target, Duration::from_micros(18_168));
    }

    #[test]
    fn quantum_follows_the_rate_between_300_bytes_and_one_mtu() {
        assert_eq!(at(Rate::mbit_per_s(1)).quantum, 300);
        assert_eq!(at(Rate::mbit_per_s(20)).quantum, 610);
        assert_eq!(at(Rate::mbit_per_s(1_000)).quantum, 1_514);
    }

    #[test]
    fn buffer_is_4_mb_within_200_ms_and_1_s_of_the_rate() {
        assert_eq!(at(Rate::kbit_per_s(500)).buffer, Bytes::new(62_500));
        assert_eq!(at(Rate::mbit_per_s(20)).buffer, Bytes::new(2_500_000));
        assert_eq!(at(Rate::mbit_per_s(100)).buffer, Bytes::new(4_000_000));
        assert_eq!(at(Rate::mbit_per_s(1_000)).buffer, Bytes::new(25_000_000));
        assert_eq!(at(Rate::ZERO).buffer, Bytes::new(4 * 1_514));
    }

    #[test]
    fn the_priority_limit_is_6_kb_within_one_mtu_and_20_ms_of_the_rate() {
        assert_eq!(at(Rate::mbit_per_s(20)).priority, 6_000);
        assert_eq!(at(Rate::mbit_per_s(1)).priority, 2_500);
        assert_eq!(at(Rate::kbit_per_s(500)).priority, 1_514);
        let generous =
            ShaperConfig { priority_limit: Bytes::new(u64::MAX), ..ShaperConfig::new(Rate::mbit_per_s(20)) };
        assert_eq!(Limits::new(&generous).priority, 50_000);
    }

    #[test]
    fn a_rate_of_zero_is_the_smallest_rate() {
        assert_eq!(at(Rate::ZERO).rate, MIN_RATE);
    }
}
