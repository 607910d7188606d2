//! Cumulative counters over time, and what they say about a window. Pure.

use crate::probe::Window;
use std::collections::VecDeque;
use std::ops::Add;
use units::{Bytes, Rate, Ratio, Timestamp};

/// What one end has received and sent since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Payload that the program has read.
    pub received: Bytes,
    /// Data segments sent, by the kernel's count.
    pub sent: Sent,
}

/// Data segments of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// All, retransmissions included.
    pub segments: u64,
    /// Retransmissions.
    pub retransmits: u64,
}

impl Sent {
    /// The share of retransmissions; `None` when nothing was sent.
    pub fn retransmit_ratio(self) -> Option<Ratio> {
        Ratio::of(self.retransmits, self.segments)
    }
}

impl Add for Sent {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            segments: self.segments.saturating_add(other.segments),
            retransmits: self.retransmits.saturating_add(other.retransmits),
        }
    }
}

/// Most points kept: the last hour at ten a second. A server that runs for weeks forgets the oldest.
const MAX_POINTS: usize = 36_000;

/// Counters noted at intervals of [`TICK`](super::TICK), by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    points: VecDeque<(Timestamp, Counters)>,
}

impl Series {
    /// Notes the counters at a time not before the last one.
    pub(super) fn push(&mut self, at: Timestamp, counters: Counters) {
        debug_assert!(self.points.back().is_none_or(|&(last, _)| last <= at));
        if self.points.len() == MAX_POINTS {
            self.points.pop_front();
        }
        self.points.push_back((at, counters));
    }

    /// A series of what was sent alone.
    pub(super) fn of_sent(points: impl Iterator<Item = (Timestamp, Sent)>) -> Self {
        let counters = |sent| Counters { sent, ..Counters::default() };
        Self { points: points.map(|(at, sent)| (at, counters(sent))).collect() }
    }

    /// The newest counters; zero before the first tick.
    pub fn latest(&self) -> Counters {
        self.points.back().map_or_else(Counters::default, |&(_, counters)| counters)
    }

    /// All points, by time.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, Counters)> {
        self.points.iter().copied()
    }

    /// The rate of reception between the first and the last point within the window: exact by their own times,
    /// and at most one tick shorter than the window at either end. `None` with fewer than two points.
    pub fn goodput(&self, window: Window) -> Option<Rate> {
        let ((from, first), (to, last)) = self.ends(window)?;
        Some(Rate::of(last.received - first.received, to.saturating_since(from)))
    }

    /// The rate of reception between each two neighbouring points of the window, with the time of the later one.
    pub fn goodput_steps(&self, window: Window) -> Vec<(Timestamp, Rate)> {
        let inside: Vec<_> = self.inside(window).collect();
        let step = |pair: &[(Timestamp, Counters)]| {
            let span = pair[1].0.saturating_since(pair[0].0);
            (pair[1].0, Rate::of(pair[1].1.received - pair[0].1.received, span))
        };
        inside.windows(2).map(step).collect()
    }

    /// What was sent between the first and the last point within the window; zero with fewer than two.
    pub fn sent(&self, window: Window) -> Sent {
        let Some(((_, first), (_, last))) = self.ends(window) else { return Sent::default() };
        Sent {
            segments: last.sent.segments.saturating_sub(first.sent.segments),
            retransmits: last.sent.retransmits.saturating_sub(first.sent.retransmits),
        }
    }

    /// The same points on a clock that is ahead by `offset_ns`.
    pub(super) fn shifted(&self, offset_ns: i128) -> Self {
        let shift = |at: Timestamp| {
            let nanos = (i128::from(at.as_nanos()) + offset_ns).clamp(0, u64::MAX.into());
            // Within range by the clamp.
            Timestamp::from_nanos(nanos as u64)
        };
        Self { points: self.points.iter().map(|&(at, counters)| (shift(at), counters)).collect() }
    }

    fn ends(&self, window: Window) -> Option<((Timestamp, Counters), (Timestamp, Counters))> {
        let mut inside = self.inside(window);
        let first = inside.next()?;
        Some((first, inside.next_back()?))
    }

    /// Points of the window, its end included.
    fn inside(&self, window: Window) -> impl DoubleEndedIterator<Item = (Timestamp, Counters)> {
        let from = self.points.partition_point(|&(at, _)| at < window.start);
        let to = self.points.partition_point(|&(at, _)| at <= window.end);
        self.points.range(from..to.max(from)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn window(start_ms: u64, end_ms: u64) -> Window {
        Window { start: at(start_ms), end: at(end_ms) }
    }

    /// 20 Mbit/s from 1 s on, nothing before; one segment in ten retransmitted.
    fn series() -> Series {
        let mut series = Series::default();
        for tick in 0..=30 {
            let received = Bytes::new(250_000 * 10_u64.max(tick) - 2_500_000);
            let sent = Sent { segments: tick * 100, retransmits: tick * 10 };
            series.push(at(tick * 100), Counters { received, sent });
        }
        series
    }

    #[test]
    fn ramp_and_measurement_stay_apart() {
        let series = series();
        assert_eq!(series.goodput(window(1_000, 3_000)), Some(Rate::mbit_per_s(20)));
        assert_eq!(series.goodput(window(0, 1_000)), Some(Rate::ZERO));
        assert_eq!(series.goodput(window(0, 2_000)), Some(Rate::mbit_per_s(10)));
        assert_eq!(
            series.goodput(window(1_234, 2_777)),
            Some(Rate::mbit_per_s(20)),
            "by the points' own times"
        );
    }

    #[test]
    fn too_few_points_give_no_rate() {
        let series = series();
        assert_eq!(series.goodput(window(1_010, 1_090)), None);
        assert_eq!(series.goodput(window(1_000, 1_099)), None);
        assert_eq!(series.goodput(window(2_000, 1_000)), None);
        assert_eq!(series.goodput(window(9_000, 9_999)), None);
        assert_eq!(Series::default().goodput(window(0, 1)), None);
    }

    #[test]
    fn steps_sum_up_to_the_whole() {
        let steps = series().goodput_steps(window(900, 1_200));
        assert_eq!(
            steps,
            [(at(1_000), Rate::ZERO), (at(1_100), Rate::mbit_per_s(20)), (at(1_200), Rate::mbit_per_s(20))]
        );
    }

    #[test]
    fn retransmissions_are_a_share_of_all_segments() {
        let sent = series().sent(window(1_000, 2_000));
        assert_eq!(sent, Sent { segments: 1_000, retransmits: 100 });
        assert_eq!(sent.retransmit_ratio(), Ratio::new(0.1));
        assert_eq!((sent + sent).retransmit_ratio(), Ratio::new(0.1));
        assert_eq!(Sent::default().retransmit_ratio(), None);
    }

    #[test]
    fn another_clock_shifts_all_points() {
        let shifted = series().shifted(-500_000_000);
        assert_eq!(shifted.goodput(window(500, 2_500)), Some(Rate::mbit_per_s(20)));
        assert_eq!(series().shifted(7_000).latest(), series().latest());
    }

    #[test]
    fn memory_is_bounded() {
        let mut series = Series::default();
        for tick in 0..MAX_POINTS as u64 + 10 {
            series.push(at(tick), Counters { received: Bytes::new(tick), ..Counters::default() });
        }
        assert_eq!(series.points.len(), MAX_POINTS);
        assert_eq!(series.latest().received, Bytes::new(MAX_POINTS as u64 + 9));
    }
}
