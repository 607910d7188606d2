//! What the emulated line tells about itself.

use lab::LinkStats;
use std::time::Duration;

/// How old the counters can be that [`Emulator::counters`](super::Emulator::counters) returns.
pub const PUBLISH_PERIOD: Duration = Duration::from_millis(20);

/// Both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulatorCounters {
    /// From the client to the server.
    pub up: DirectionCounters,
    /// From the server to the client.
    pub down: DirectionCounters,
}

/// One direction; only grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionCounters {
    /// The link's own counters: delivered, dropped by the queue, lost, largest backlog.
    pub link: LinkStats,
    /// Frames that the relay did not get because its ring was full: an error of the emulation.
    pub ring_drops: u64,
    /// Frames that the receiving interface did not take: an error of the emulation.
    pub send_drops: u64,
    /// Frames longer than the MTU, not carried: an error of the emulation.
    pub oversized: u64,
    /// How long after its due time a frame was sent: the error of the emulation.
    pub lateness: Lateness,
}

/// Buckets of one power of two.
const PER_OCTAVE: u64 = 16;
const BUCKETS: usize = 512;

/// A distribution of spans, in buckets 1/16 of an octave wide (6 %) from 16 ns on.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), count: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts one span.
    pub fn record(&mut self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(span);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The span that a share of `quantile` (0 to 1) does not exceed, to within a bucket; zero when none was counted.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let rank = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, n) in self.buckets.iter().enumerate() {
            below += n;
            if below >= rank {
                return Duration::from_nanos(upper_bound(index)).min(self.max);
            }
        }
        self.max
    }
}

/// Below 16 ns one bucket for each; then 16 for each power of two.
fn bucket(nanos: u64) -> usize {
    if nanos < PER_OCTAVE {
        return nanos as usize;
    }
    let octave = u64::from(nanos.ilog2() - PER_OCTAVE.ilog2());
    let within = (nanos >> octave) - PER_OCTAVE;
    let index = (octave + 1) * PER_OCTAVE + within;
    (index as usize).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    let index = index as u64;
    if index < PER_OCTAVE {
        return index;
    }
    let (octave, within) = (index / PER_OCTAVE - 1, index % PER_OCTAVE);
    ((PER_OCTAVE + within + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_within_its_bucket() {
        for nanos in (0..2_000).chain((1..1_000_000_000).step_by(999_983)) {
            let index = bucket(nanos);
            assert!(upper_bound(index) >= nanos && (index == 0 || upper_bound(index - 1) < nanos), "{nanos}");
            assert!(upper_bound(index) as f64 <= nanos as f64 * 1.07 + 1.0, "{nanos}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_known_spans() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), Duration::ZERO);
        for micros in 1..=1000 {
            lateness.record(Duration::from_micros(micros));
        }
        let close = |quantile: f64, micros: f64| {
            let got = lateness.quantile(quantile).as_secs_f64() * 1e6;
            assert!(got >= micros && got <= micros * 1.07, "{quantile}: {got}");
        };
        close(0.5, 500.0);
        close(0.99, 990.0);
        assert_eq!(lateness.quantile(1.0), Duration::from_millis(1));
        assert_eq!((lateness.max(), lateness.count()), (Duration::from_millis(1), 1000));
    }
}
