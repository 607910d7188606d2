//! When probes leave: a pure state machine in the caller's time.
//!
//! The window is cut into slots of one period with one probe in each, at the middle of the slot moved by up to
//! `jitter` periods either way. With a jitter of 0.5 every instant of the window is equally likely to be
//! probed, so that any share of time is estimated without bias, whatever period the network has of its own.

use super::Window;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::time::Duration;
use units::Timestamp;

/// What the schedule wants at some point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send a probe that was due at this time.
    Send(Timestamp),
    /// A probe was due at this time and is more than a period late; it is not sent.
    Missed(Timestamp),
    /// Nothing is due before this time.
    WaitUntil(Timestamp),
    /// The window has no more probes.
    Done,
}

/// The probe times of one target.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    window: Window,
    period: Duration,
    jitter: f64,
    random: Pcg32,
    /// Slot of the probe after `next`.
    slot: u32,
    next: Option<Timestamp>,
}

impl Schedule {
    /// The schedule of target number `stream`; each has its own, whatever the others do.
    ///
    /// # Panics
    /// In debug builds, for a period of zero or a jitter outside 0 to 0.5.
    pub(crate) fn new(window: Window, period: Duration, jitter: f64, seed: u64, stream: u64) -> Self {
        debug_assert!(!period.is_zero() && (0.0..=0.5).contains(&jitter));
        let random = Pcg32::new(seed, stream);
        let mut schedule = Self { window, period, jitter, random, slot: 0, next: None };
        schedule.advance();
        schedule
    }

    /// What to do now; called until it answers `WaitUntil` or `Done`.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Step {
        let Some(due) = self.next else { return Step::Done };
        if now < due {
            return Step::WaitUntil(due);
        }
        self.advance();
        if now.saturating_since(due) > self.period { Step::Missed(due) } else { Step::Send(due) }
    }

    /// Draws the next time; the last slot may reach beyond the window and is then empty.
    fn advance(&mut self) {
        let offset = 0.5 + self.jitter * (2.0 * unit_interval(self.random.next_u64()) - 1.0);
        let due = self.window.start + self.period.saturating_mul(self.slot) + self.period.mul_f64(offset);
        self.slot = self.slot.saturating_add(1);
        self.next = (due < self.window.end).then_some(due);
    }
}

/// The upper 53 bits as a number in [0, 1): every value is exact.
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(50);

    fn window(start_ms: u64, end_ms: u64) -> Window {
        Window { start: Timestamp::from_millis(start_ms), end: Timestamp::from_millis(end_ms) }
    }

    /// Polls whenever the schedule asks to be polled, as an ideal machine would.
    fn punctual(mut schedule: Schedule) -> Vec<Timestamp> {
        let (mut now, mut sent) = (Timestamp::ZERO, Vec::new());
        loop {
            match schedule.poll(now) {
                Step::Send(due) => sent.push(due),
                Step::WaitUntil(due) => now = due,
                Step::Missed(due) => panic!("{due:?} missed at {now:?}"),
                Step::Done => return sent,
            }
        }
    }

    #[test]
    fn every_slot_has_one_probe() {
        let sent = punctual(Schedule::new(window(1_000, 11_000), PERIOD, 0.5, 1, 0));
        assert_eq!(sent.len(), 200);
        for (slot, due) in sent.iter().enumerate() {
            let start = Timestamp::from_millis(1_000 + 50 * slot as u64);
            assert!(*due >= start && *due < start + PERIOD, "slot {slot}: {due:?}");
        }
    }

    #[test]
    fn every_part_of_the_period_is_probed_alike() {
        let sent = punctual(Schedule::new(window(0, 1_000_000), PERIOD, 0.5, 7, 0));
        let mut tenths = [0_u32; 10];
        for due in &sent {
            tenths[(due.as_nanos() % 50_000_000 / 5_000_000) as usize] += 1;
        }
        // 20000 draws, 2000 expected in each, standard deviation 42.
        assert!(tenths.iter().all(|&count| (1_790..=2_210).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn without_jitter_it_is_regular() {
        let sent = punctual(Schedule::new(window(0, 200), PERIOD, 0.0, 1, 0));
        assert_eq!(sent, [25, 75, 125, 175].map(Timestamp::from_millis));
    }

    #[test]
    fn a_stall_costs_probes_and_brings_no_burst() {
        let mut schedule = Schedule::new(window(0, 10_000), PERIOD, 0.5, 3, 0);
        let mut steps = Vec::new();
        loop {
            match schedule.poll(Timestamp::from_millis(5_000)) {
                step @ (Step::Send(_) | Step::Missed(_)) => steps.push(step),
                Step::WaitUntil(due) => break assert!(due >= Timestamp::from_millis(5_000)),
                Step::Done => panic!("half of the window is left"),
            }
        }
        let sent = steps.iter().filter(|step| matches!(step, Step::Send(_))).count();
        assert_eq!(steps.len(), 100, "all slots before the stall's end are accounted for");
        assert!(sent <= 2, "{sent} sent at once");
    }

    #[test]
    fn the_seed_decides_and_targets_differ() {
        let times = |seed, stream| punctual(Schedule::new(window(0, 1_000), PERIOD, 0.5, seed, stream));
        assert_eq!(times(1, 0), times(1, 0));
        assert_ne!(times(1, 0), times(2, 0));
        assert_ne!(times(1, 0), times(1, 1));
    }

    #[test]
    fn a_window_without_length_has_no_probes() {
        assert_eq!(punctual(Schedule::new(window(5, 5), PERIOD, 0.5, 1, 0)), []);
        assert_eq!(punctual(Schedule::new(window(5, 4), PERIOD, 0.5, 1, 0)), []);
    }
}
