//! From the round trips of many connections to the path's.

use std::time::Duration;
use units::{Bytes, Timestamp};

/// A connection is sparse while it sends no more than this in [`WINDOW`]: a game, a call, a terminal. The bulk of a
/// connection that sends more stands in whichever queue there is and says nothing about whose queue it is.
const SPARSE_BYTES: Bytes = Bytes::new(16_000);
const WINDOW: Duration = Duration::from_secs(1);
/// Older samples do not tell of the present queue.
const FRESH: Duration = Duration::from_secs(2);

/// The path as its connections see it, each figure with what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathRtt {
    /// Median of the connections' minima: one neighbour of a millisecond does not become the path. `None` without a
    /// sample.
    pub base: Option<Duration>,
    /// Connections with a sample.
    pub connections: usize,
    /// Samples of all of them.
    pub samples: u64,
    /// Queueing as sparse connections feel it; `None` while there is none with two samples, the latest fresh.
    pub inflation: Option<Inflation>,
}

/// Delay above the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflation {
    /// Median over the sparse connections of latest RTT less minimum.
    pub median: Duration,
    /// Sparse connections behind it.
    pub connections: usize,
}

/// What is known of one connection's round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionRtt {
    samples: u32,
    min: Duration,
    latest: Duration,
    latest_at: Timestamp,
    window_start: Timestamp,
    window_bytes: Bytes,
    /// Bytes of the window before.
    last_window_bytes: Bytes,
}

impl ConnectionRtt {
    pub fn on_sent(&mut self, now: Timestamp, bytes: u32) {
        let age = now - self.window_start;
        if age >= WINDOW {
            self.last_window_bytes = if age < WINDOW * 2 { self.window_bytes } else { Bytes::ZERO };
            self.window_bytes = Bytes::ZERO;
            self.window_start = now;
        }
        self.window_bytes += Bytes::from(bytes);
    }

    pub fn on_sample(&mut self, now: Timestamp, rtt: Duration) {
        self.min = if self.samples == 0 { rtt } else { self.min.min(rtt) };
        self.samples = self.samples.saturating_add(1);
        self.latest = rtt;
        self.latest_at = now;
    }

    fn is_sparse(&self) -> bool {
        self.window_bytes.max(self.last_window_bytes) <= SPARSE_BYTES
    }
}

pub(super) fn estimate<'a>(now: Timestamp, all: impl Iterator<Item = &'a ConnectionRtt>) -> PathRtt {
    let (mut minima, mut inflations, mut samples) = (Vec::new(), Vec::new(), 0);
    for connection in all.filter(|connection| connection.samples > 0) {
        minima.push(connection.min);
        samples += u64::from(connection.samples);
        if connection.samples >= 2 && connection.is_sparse() && now - connection.latest_at <= FRESH {
            inflations.push(connection.latest.saturating_sub(connection.min));
        }
    }
    let connections = inflations.len();
    PathRtt {
        connections: minima.len(),
        samples,
        base: median(minima),
        inflation: median(inflations).map(|median| Inflation { median, connections }),
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(mut spans: Vec<Duration>) -> Option<Duration> {
    spans.sort_unstable();
    let upper = *spans.get(spans.len() / 2)?;
    let lower = if spans.len().is_multiple_of(2) { spans[spans.len() / 2 - 1] } else { upper };
    Some((lower + upper) / 2)
}
