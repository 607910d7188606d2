//! How long names take, through getaddrinfo, the path of every program. Measured, never changed.
//!
//! `cached` asks for the same name again and again; `uncached` for a random label under it, which no cache on the way
//! can know, so that a resolver has to ask the domain's own servers. "No such name" is the expected answer to the
//! latter and a full round trip of it.

use crate::measurement::NameKind;
use crate::probe::{Schedule, Step, Window};
use platform::names::{Lookup, look_up};
use platform::{clock, random};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Timestamp;

/// The domain asked for where none is named. It must not be signed: with DNSSEC, a resolver may itself conclude that a
/// name does not exist (RFC 8198) and would answer from its cache. It is served from everywhere, so that what is
/// measured is the path to the resolver and its work, and its operator does not notice two questions a second.
pub const DEFAULT_DOMAIN: &str = "google.com";

/// How soon the end of a run is noticed between two calls.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Random bytes of a label, twice as many hexadecimal digits.
const LABEL_BYTES: usize = 8;

/// Mean time between two calls.
pub const fn period(kind: NameKind) -> Duration {
    match kind {
        NameKind::Cached => Duration::from_millis(250),
        NameKind::Uncached => Duration::from_millis(500),
    }
}

/// What the calls of one window showed, in their order.
#[derive(Clone, Debug, Default)]
pub struct NameSeries {
    /// When each call began.
    pub begun: Vec<Timestamp>,
    /// How long it took; `None` = no answer.
    pub took: Vec<Option<Duration>>,
    /// What the first call without an answer said.
    pub failure: Option<String>,
    /// Slots of the schedule that had passed while a call took its time.
    pub missed: usize,
}

/// Calls of one kind on a thread of their own: a call blocks, and the handshakes must not wait for it.
#[derive(Debug)]
pub struct NameProbe {
    kind: NameKind,
    stop: Arc<AtomicBool>,
    series: Arc<Mutex<NameSeries>>,
    thread: JoinHandle<()>,
}

impl NameProbe {
    /// Starts to ask for `domain`, or labels under it, through the window.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(kind: NameKind, domain: &str, window: Window, seed: u64) -> std::io::Result<Self> {
        let (stop, series) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(NameSeries::default())));
        let schedule = Schedule::new(window, period(kind), 0.5, seed, 2_000 + kind as u64);
        let asker =
            Asker { kind, domain: domain.to_owned(), stop: Arc::clone(&stop), series: Arc::clone(&series) };
        let thread = thread::Builder::new().name("names".to_owned()).spawn(move || asker.run(schedule))?;
        Ok(Self { kind, stop, series, thread })
    }

    /// Ends it, `deadline` at the latest. A call that is not back by then cannot be ended: it is left to itself and
    /// counts as one without an answer.
    pub fn finish(self, deadline: Timestamp) -> (NameKind, NameSeries) {
        self.stop.store(true, Ordering::Relaxed);
        while !self.thread.is_finished() && clock::now() < deadline {
            clock::sleep_until(deadline.min(clock::now() + Duration::from_millis(5)));
        }
        let mut series = lock(&self.series).clone();
        if series.took.len() < series.begun.len() {
            series.took.push(None);
            series.failure.get_or_insert_with(|| "no answer before the end of the phase".to_owned());
        }
        (self.kind, series)
    }
}

struct Asker {
    kind: NameKind,
    domain: String,
    stop: Arc<AtomicBool>,
    series: Arc<Mutex<NameSeries>>,
}

impl Asker {
    fn run(self, mut schedule: Schedule) {
        while !self.stop.load(Ordering::Relaxed) {
            match schedule.poll(clock::now()) {
                Step::Send(_) => self.ask(),
                Step::Missed(_) => lock(&self.series).missed += 1,
                Step::WaitUntil(due) => clock::sleep_until(due.min(clock::now() + STOP_CHECK)),
                Step::Done => return,
            }
        }
    }

    fn ask(&self) {
        let name = self.name();
        let begun = clock::now();
        lock(&self.series).begun.push(begun);
        let answer = look_up(&name);
        let took = clock::now() - begun;
        let mut series = lock(&self.series);
        match answer {
            Lookup::Found | Lookup::NoSuchName => series.took.push(Some(took)),
            Lookup::Failed(why) => {
                series.took.push(None);
                series.failure.get_or_insert(why);
            }
        }
    }

    fn name(&self) -> String {
        let mut label = [0; LABEL_BYTES];
        if self.kind == NameKind::Cached || random::fill(&mut label).is_err() {
            return self.domain.clone();
        }
        let label: String = label.iter().map(|byte| format!("{byte:02x}")).collect();
        // The dot at the end keeps the system from trying its search domains.
        format!("{label}.{}.", self.domain.trim_end_matches('.'))
    }
}

fn lock(series: &Mutex<NameSeries>) -> MutexGuard<'_, NameSeries> {
    series.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(length_ms: u64) -> Window {
        let start = clock::now();
        Window { start, end: start + Duration::from_millis(length_ms) }
    }

    #[test]
    fn a_name_of_this_machine_is_asked_for_on_schedule() {
        let window = window(1_000);
        let probe = NameProbe::start(NameKind::Cached, "localhost", window, 1).unwrap();
        clock::sleep_until(window.end);
        let (_, series) = probe.finish(clock::now() + Duration::from_secs(10));
        assert_eq!(series.begun.len() + series.missed, 4, "{series:?}");
        assert!(series.took.iter().all(Option::is_some) && series.failure.is_none(), "{series:?}");
    }

    #[test]
    fn random_labels_differ_and_are_absolute() {
        let asker = |kind| Asker {
            kind,
            domain: "domain.example".to_owned(),
            stop: Arc::default(),
            series: Arc::default(),
        };
        let (a, b) = (asker(NameKind::Uncached).name(), asker(NameKind::Uncached).name());
        assert!(a != b && a.ends_with(".domain.example.") && a.len() == 16 + 16, "{a} {b}");
        assert_eq!(asker(NameKind::Cached).name(), "domain.example");
    }

    #[test]
    fn a_call_that_is_not_back_counts_as_unanswered() {
        let series = Arc::new(Mutex::new(NameSeries { begun: vec![clock::now()], ..NameSeries::default() }));
        let thread = thread::spawn(|| clock::sleep_until(clock::now() + Duration::from_millis(500)));
        let probe = NameProbe { kind: NameKind::Uncached, stop: Arc::default(), series, thread };
        let before = clock::now();
        let (_, series) = probe.finish(before + Duration::from_millis(20));
        assert_eq!(series.took, [None]);
        assert!(series.failure.unwrap().contains("no answer"));
        assert!(clock::now() < before + Duration::from_millis(450));
    }
}
