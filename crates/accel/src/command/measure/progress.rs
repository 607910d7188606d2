//! What a person sees while a measurement goes on. On stderr.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::time::Duration;
use units::Timestamp;

/// No silence is longer, also where there is no terminal to draw a bar on.
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// A bar on a terminal, lines elsewhere.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Timestamp,
    on_terminal: bool,
    last_said: Cell<Timestamp>,
    step: RefCell<String>,
    ends: Cell<Timestamp>,
}

impl Progress {
    /// Starts no thread.
    pub(super) fn start(now: Timestamp) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        let layout =
            ProgressStyle::with_template("{bar:24} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(layout);
        Self {
            on_terminal: !bar.is_hidden(),
            bar,
            started: now,
            last_said: Cell::new(now),
            step: RefCell::default(),
            ends: Cell::new(now),
        }
    }

    /// A line that stays.
    pub(super) fn say(&self, now: Timestamp, what: &str) {
        self.last_said.set(now);
        let seconds = (now - self.started).as_secs_f64();
        // A closed stderr is no reason to end a measurement.
        self.bar.suspend(|| drop(writeln!(std::io::stderr(), "{seconds:5.1} s  {what}")));
    }

    /// A step that takes about `length` begins.
    pub(super) fn step(&self, now: Timestamp, what: &str, length: Duration) {
        what.clone_into(&mut self.step.borrow_mut());
        self.ends.set(now + length);
        self.bar.set_length(length.as_millis() as u64);
        if !self.on_terminal {
            self.say(now, what);
        }
        self.tick(now);
    }

    /// Moves the bar; call it several times a second.
    pub(super) fn tick(&self, now: Timestamp) {
        let left = self.ends.get().saturating_since(now);
        let text = format!("{}, {} s left", self.step.borrow(), left.as_millis().div_ceil(1_000));
        if !self.on_terminal && now.saturating_since(self.last_said.get()) > LONGEST_SILENCE {
            self.say(now, &text);
        }
        self.bar.set_message(text);
        self.bar.set_position(self.bar.length().unwrap_or(0).saturating_sub(left.as_millis() as u64));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
