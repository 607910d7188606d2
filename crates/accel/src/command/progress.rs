//! What a person sees while a run goes on: a bar on a terminal, a line per phase elsewhere. On stderr.

use crate::run::{Arm, Phase};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::Duration;
use units::Timestamp;

/// Time that has passed against time planned.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Timestamp,
    on_terminal: bool,
}

impl Progress {
    /// Shows a run that will take about `planned`. Starts no thread.
    pub(super) fn start(now: Timestamp, planned: Duration) -> Self {
        let bar =
            ProgressBar::with_draw_target(Some(planned.as_millis() as u64), ProgressDrawTarget::stderr());
        let layout =
            ProgressStyle::with_template("{bar:24} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(layout);
        let on_terminal = !bar.is_hidden();
        Self { bar, started: now, on_terminal }
    }

    /// A phase or a step between phases begins.
    pub(super) fn step(&self, now: Timestamp, arm: Arm, what: &str) {
        if !self.on_terminal {
            let seconds = (now - self.started).as_secs_f64();
            drop(writeln!(std::io::stderr(), "{seconds:5.1} s  shaper {arm}: {what}"));
        }
        self.bar.set_prefix(format!("shaper {arm}, {what}"));
        self.tick(now);
    }

    /// The phase that begins, by name.
    pub(super) fn phase(&self, now: Timestamp, arm: Arm, phase: Phase) {
        self.step(now, arm, &phase.to_string());
    }

    /// Moves the bar; call it several times a second.
    pub(super) fn tick(&self, now: Timestamp) {
        let passed = (now - self.started).as_millis() as u64;
        let left = self.bar.length().unwrap_or(0).saturating_sub(passed).div_ceil(1_000);
        self.bar.set_message(format!("{}, {left} s left", self.bar.prefix()));
        self.bar.set_position(passed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
