//! The thread that carries frames between the two hosts.

use super::counters::{EmulatorCounters, PUBLISH_PERIOD};
use super::direction::{Direction, Path};
use super::topology::{CLIENT_LINE, CLIENT_MAC, SERVER_LINE, SERVER_MAC};
use super::{EmulatorConfig, EmulatorError};
use platform::clock;
use platform::namespace::{Namespace, NamespaceError, Step};
use platform::poll::{Interest, Poller};
use platform::sched::{self, Scheduler};
use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Timestamp;

/// Above ordinary threads and below the kernel's own real-time threads (which start at 50).
const PRIORITY: u8 = 20;
/// How often the rings' clocks are compared with the monotonic one.
const MAINTAIN_PERIOD: Duration = Duration::from_millis(100);

/// The running relay; ends on drop.
#[derive(Debug)]
pub(super) struct Relay {
    shared: Arc<Mutex<EmulatorCounters>>,
    scheduler: Scheduler,
    // `Some` until drop: closing it tells the thread to end.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Opens rings and senders in `namespace` and starts the thread.
    pub(super) fn start(namespace: &Namespace, config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        let up = Path { from: CLIENT_LINE, to: SERVER_LINE, receiver: SERVER_MAC };
        let down = Path { from: SERVER_LINE, to: CLIENT_LINE, receiver: CLIENT_MAC };
        let directions = namespace
            .run(|| Ok([Direction::open(up, config.up)?, Direction::open(down, config.down)?]))
            .map_err(|source| NamespaceError::new(Step::PacketSocket, source))?;
        let (stopped, stop) = io::pipe()?;
        let shared = Arc::new(Mutex::new(EmulatorCounters::default()));
        let mut work = Work::new(directions, stopped, Arc::clone(&shared))?;
        let (tell, told) = mpsc::channel();
        let thread = namespace.spawn("relay", move || {
            // The receiver waits below until the thread has spoken.
            let _told = tell.send(prepare_thread());
            work.run();
        });
        let scheduler = told.recv().map_err(io::Error::other)?;
        Ok(Self { shared, scheduler, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn counters(&self) -> EmulatorCounters {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn scheduler(&self) -> Scheduler {
        self.scheduler
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the relay has been printed by its thread; there is nothing to add while things end.
            drop(thread.join());
        }
    }
}

fn prepare_thread() -> Scheduler {
    // Without exact timers deliveries are 50 us late, which the lateness shows.
    drop(clock::set_exact_timers());
    sched::request_fifo(PRIORITY)
}

struct Work {
    directions: [Direction; 2],
    poller: Poller,
    // Readable once the other end is closed.
    _stopped: PipeReader,
    shared: Arc<Mutex<EmulatorCounters>>,
    /// When to publish; `MAX` while nothing has changed.
    publish_at: Timestamp,
    maintain_at: Timestamp,
}

const STOP: u64 = 0;
const FRAMES: u64 = 1;

impl Work {
    fn new(
        directions: [Direction; 2],
        stopped: PipeReader,
        shared: Arc<Mutex<EmulatorCounters>>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&stopped, STOP, Interest::READ)?;
        for direction in &directions {
            poller.add(direction.as_fd(), FRAMES, Interest::READ)?;
        }
        let (publish_at, maintain_at) = (Timestamp::MAX, Timestamp::ZERO);
        Ok(Self { directions, poller, _stopped: stopped, shared, publish_at, maintain_at })
    }

    fn run(&mut self) {
        loop {
            let any = self.directions.iter_mut().fold(false, |any, direction| direction.work() | any);
            self.keep_books(clock::now(), any);
            let due = self.directions.iter().map(Direction::next_due).fold(self.publish_at, Timestamp::min);
            // The wait of a valid set never fails; if it did, ending is better than spinning.
            let Ok(events) = self.poller.wait(due.min(self.maintain_at)) else { return };
            if events.iter().any(|event| event.token == STOP) {
                return;
            }
        }
    }

    /// Publishes changed counters within [`PUBLISH_PERIOD`] and keeps the clocks true.
    fn keep_books(&mut self, now: Timestamp, changed: bool) {
        if changed && self.publish_at == Timestamp::MAX {
            self.publish_at = now + PUBLISH_PERIOD / 2;
        }
        if now >= self.maintain_at {
            self.directions.iter_mut().for_each(Direction::maintain);
            self.maintain_at = now + MAINTAIN_PERIOD;
        }
        if now < self.publish_at {
            return;
        }
        let [up, down] = &self.directions;
        // A reader holds the lock for a copy only; never wait for it, since it may have been put aside meanwhile.
        if let Ok(mut shared) = self.shared.try_lock() {
            *shared = EmulatorCounters { up: up.counters(), down: down.counters() };
            self.publish_at = Timestamp::MAX;
        } else {
            self.publish_at = now + PUBLISH_PERIOD / 4;
        }
    }
}
