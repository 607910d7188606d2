//! The instrument's own figures: how far its numbers can be trusted on this machine in this run.

use super::{Outcome, Sample};
use platform::{clock, sched::Scheduler};
use std::time::Duration;
use units::Timestamp;

/// Exact order statistics of raw durations, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many durations.
    pub n: usize,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile; the largest when n < 100.
    pub p99: Duration,
    /// The largest.
    pub max: Duration,
}

impl Spread {
    /// The spread of `values`; `None` without any.
    pub fn of(mut values: Vec<Duration>) -> Option<Self> {
        values.sort_unstable();
        let max = *values.last()?;
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100) - 1];
        Some(Self { n: values.len(), p50: rank(50), p99: rank(99), max })
    }
}

/// The loopback control's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFigures {
    /// Time seen from user space.
    pub user: Spread,
    /// RTT by the kernel's clock.
    pub kernel: Spread,
}

/// What the prober found out about itself. `None` where there was nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// connect() called after the scheduled time, all targets.
    pub start_lateness: Option<Spread>,
    /// Longest time that the loop was not looking: woken later than asked, or busy between two waits.
    pub largest_loop_gap: Duration,
    /// Time inside the call of connect(), all targets.
    pub connect_call: Option<Spread>,
    /// User-space time minus kernel RTT on the real targets: the error of the former.
    pub user_minus_kernel: Option<Spread>,
    /// The loopback control.
    pub control: Option<ControlFigures>,
    /// Probes not sent because their time had passed by more than a period.
    pub missed: usize,
    /// Replies that came after the timeout ([`Outcome::Late`]).
    pub late: usize,
    /// Answers that came after the window's end, in time or late.
    pub after_window: usize,
    /// Whether the prober had real-time priority.
    pub scheduler: Scheduler,
    /// Resolution of the clock behind user-space times.
    pub clock_resolution: Duration,
}

impl Instrument {
    /// Resolution of the kernel's RTT (`tcpi_rtt` counts whole us).
    pub const KERNEL_RTT_RESOLUTION: Duration = Duration::from_micros(1);
}

/// Collects while the prober runs.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    connect_calls: Vec<Duration>,
    largest_loop_gap: Duration,
    woken: Option<Timestamp>,
    pub(super) missed: usize,
    pub(super) after_window: usize,
}

impl Recorder {
    /// The loop goes to sleep.
    pub(super) fn on_wait(&mut self, now: Timestamp) {
        if let Some(woken) = self.woken {
            self.note_gap(now.saturating_since(woken));
        }
    }

    /// The loop wakes, at `deadline` at the latest if all is well.
    pub(super) fn on_wake(&mut self, now: Timestamp, deadline: Timestamp) {
        self.note_gap(now.saturating_since(deadline));
        self.woken = Some(now);
    }

    pub(super) fn on_connect(&mut self, call: Duration) {
        self.connect_calls.push(call);
    }

    fn note_gap(&mut self, gap: Duration) {
        self.largest_loop_gap = self.largest_loop_gap.max(gap);
    }

    /// The figures over all samples; `control` is the target number of the loopback control.
    pub(super) fn finish(
        self,
        samples: &[Sample],
        control: Option<usize>,
        scheduler: Scheduler,
    ) -> Instrument {
        let late = samples.iter().filter(|s| matches!(s.outcome, Outcome::Late { .. })).count();
        let lateness = samples.iter().map(|s| s.sent.saturating_since(s.scheduled)).collect();
        let (of_control, real): (Vec<_>, Vec<_>) = samples
            .iter()
            .filter_map(|s| Some((s.target, clean_pair(s)?)))
            .partition(|(target, _)| Some(*target) == control);
        Instrument {
            start_lateness: Spread::of(lateness),
            largest_loop_gap: self.largest_loop_gap,
            connect_call: Spread::of(self.connect_calls),
            user_minus_kernel: Spread::of(
                real.iter().map(|(_, (user, kernel))| user.saturating_sub(*kernel)).collect(),
            ),
            control: control_figures(&of_control),
            missed: self.missed,
            late,
            after_window: self.after_window,
            scheduler,
            clock_resolution: clock::resolution(),
        }
    }
}

/// User and kernel time of a reply that has both.
fn clean_pair(sample: &Sample) -> Option<(Duration, Duration)> {
    match sample.outcome {
        Outcome::Reply { user, kernel: Some(kernel), retransmits: 0 } => Some((user, kernel)),
        _ => None,
    }
}

fn control_figures(pairs: &[(usize, (Duration, Duration))]) -> Option<ControlFigures> {
    let user = Spread::of(pairs.iter().map(|(_, (user, _))| *user).collect())?;
    let kernel = Spread::of(pairs.iter().map(|(_, (_, kernel))| *kernel).collect())?;
    Some(ControlFigures { user, kernel })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn spreads_are_exact_order_statistics() {
        let spread = Spread::of((1..=200).rev().map(ms).collect()).unwrap();
        assert_eq!(spread, Spread { n: 200, p50: ms(100), p99: ms(198), max: ms(200) });
        assert_eq!(Spread::of(vec![ms(7)]), Some(Spread { n: 1, p50: ms(7), p99: ms(7), max: ms(7) }));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn gaps_are_late_wake_ups_and_busy_times() {
        let at = Timestamp::from_millis;
        let mut recorder = Recorder::default();
        recorder.on_wait(at(0));
        recorder.on_wake(at(12), at(10));
        assert_eq!(recorder.largest_loop_gap, ms(2));
        recorder.on_wait(at(17));
        assert_eq!(recorder.largest_loop_gap, ms(5));
        recorder.on_wake(at(18), at(30));
        assert_eq!(recorder.largest_loop_gap, ms(5), "an early wake-up by readiness is no gap");
    }

    #[test]
    fn only_clean_replies_enter_user_minus_kernel_and_the_control_stands_apart() {
        let sample = |target, outcome| {
            let scheduled = Timestamp::from_millis(10);
            Sample { target, scheduled, sent: scheduled + ms(1), outcome }
        };
        let reply = |user, kernel, retransmits| Outcome::Reply { user, kernel, retransmits };
        let samples = [
            sample(0, reply(ms(25), Some(ms(20)), 0)),
            sample(0, reply(ms(1_025), None, 1)),
            sample(0, Outcome::Late { user: ms(3_020), retransmits: 2 }),
            sample(0, Outcome::Lost { retransmits: 2 }),
            sample(1, reply(ms(2), Some(ms(1)), 0)),
        ];
        let figures = Recorder::default().finish(&samples, Some(1), Scheduler::Normal);
        assert_eq!(figures.user_minus_kernel, Spread::of(vec![ms(5)]));
        assert_eq!(figures.control.unwrap().user.max, ms(2));
        assert_eq!(figures.start_lateness, Spread::of(vec![ms(1); 5]));
        assert_eq!(figures.late, 1);
    }
}
