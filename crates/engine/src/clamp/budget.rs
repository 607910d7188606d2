//! Who downloads, and what part of the rate each gets.

use super::ClampStatus;
use super::table::Table;
use std::time::Duration;
use units::{Bytes, Rate};

/// A connection with this part of the inbound rate is a download ...
const ACTIVE_SHARE: f64 = 0.05;
/// ... and so is one with half of an equal part, where many share.
const ACTIVE_PART: f64 = 0.5;
/// However much UDP comes in, so much of the rate is left to TCP.
const LEAST_SHARE: f64 = 0.05;
/// Weight of the last period in a measured rate.
const SMOOTHING: f64 = 0.25;

/// What comes in beside the connections' own books.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Of UDP in this period.
    pub udp_bytes: u64,
    /// Smoothed, in bit/s.
    udp_bits: f64,
}

/// What a period's end says to each connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Part of the rate for each download.
    pub rate: Rate,
    /// In bit/s: who receives more is a download.
    pub active_above: f64,
}

impl Load {
    pub fn end_period(&mut self, span: Duration) {
        self.udp_bits = smooth(self.udp_bits, self.udp_bytes, span);
        self.udp_bytes = 0;
    }

    pub fn status(&self) -> ClampStatus {
        ClampStatus { udp: Rate::bits_per_s(self.udp_bits as u64), ..ClampStatus::default() }
    }

    /// Equal parts of what UDP leaves of `rate` for all downloads.
    pub fn share(&self, rate: Rate, span: Duration, connections: &mut Table) -> Share {
        let (mut total, mut receiving) = (self.udp_bits, 0_u32);
        for bits in connections.iter_mut().map(|connection| connection.measure(span)) {
            total += bits;
            receiving += u32::from(bits > 0.0);
        }
        let equal = total / f64::from(receiving.max(1));
        let active_above = (total * ACTIVE_SHARE).min(equal * ACTIVE_PART);
        let active = connections.iter_mut().filter(|connection| connection.is_active(active_above)).count();
        let bits = rate.as_bits_per_s() as f64;
        let left = (bits - self.udp_bits).max(bits * LEAST_SHARE);
        Share { rate: Rate::bits_per_s((left / active.max(1) as f64) as u64), active_above }
    }
}

/// A smoothed rate in bit/s, one period on.
pub(super) fn smooth(bits: f64, bytes: u64, span: Duration) -> f64 {
    let last = Rate::of(Bytes::new(bytes), span).as_bits_per_s() as f64;
    let smoothed = bits + SMOOTHING * (last - bits);
    // What has faded is gone: below one small packet a second.
    if smoothed < 500.0 { 0.0 } else { smoothed }
}
