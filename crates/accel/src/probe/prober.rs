//! The prober's loop: one thread, all targets, no spinning.

use super::control::Control;
use super::instrument::Recorder;
use super::schedule::{Schedule, Step};
use super::{Outcome, ProbeError, ProbePlan, ProbeResult, Sample, Target};
use platform::clock;
use platform::poll::{Interest, Poller};
use platform::sched::{self, Scheduler};
use platform::tcp::TcpSocket;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::Timestamp;

/// SCHED_FIFO priority: above every ordinary thread, below the kernel's own (interrupt threads have 50).
const REALTIME_PRIORITY: u8 = 10;
/// A cancelled run is noticed within this time.
const CANCEL_CHECK: Duration = Duration::from_millis(50);
/// A probe is given up after this many timeouts; between one and this, its reply is late.
const GIVE_UP_TIMEOUTS: u32 = 2;
/// Token of the control's listener; probes count from zero.
const CONTROL_TOKEN: u64 = u64::MAX;

/// Carries out `plan`; returns when every probe has been answered or given up, or soon after `cancel` is set.
///
/// Works on a thread of its own, in the caller's network namespace, so that real-time priority and timer
/// slack do not stay with the caller.
///
/// # Errors
/// When the plan is not possible or the system refuses a poller or the control's listener. What goes wrong
/// with a single probe is that probe's outcome.
pub fn run(plan: &ProbePlan, cancel: &AtomicBool) -> Result<ProbeResult, ProbeError> {
    check(plan)?;
    thread::scope(|scope| {
        let prober = thread::Builder::new()
            .name("prober".to_owned())
            .spawn_scoped(scope, || Prober::open(plan)?.run(cancel))
            .map_err(ProbeError::system("start the thread"))?;
        prober.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn check(plan: &ProbePlan) -> Result<(), ProbeError> {
    if plan.targets.is_empty() && !plan.control {
        return Err(ProbeError::Plan("no target"));
    }
    if plan.period.is_zero() {
        return Err(ProbeError::Plan("the period is zero"));
    }
    if !(0.0..=0.5).contains(&plan.jitter) {
        return Err(ProbeError::Plan("the jitter is not between 0 and 0.5"));
    }
    if plan.timeout.is_zero() {
        return Err(ProbeError::Plan("the timeout is zero"));
    }
    Ok(())
}

/// A probe whose handshake has not ended.
struct InFlight {
    target: usize,
    scheduled: Timestamp,
    sent: Timestamp,
    socket: TcpSocket,
}

struct Prober<'plan> {
    plan: &'plan ProbePlan,
    /// Those of the plan, then the control.
    targets: Vec<Target>,
    schedules: Vec<Schedule>,
    control: Option<Control>,
    poller: Poller,
    scheduler: Scheduler,
    /// By token, hence by the time they were sent.
    in_flight: BTreeMap<u64, InFlight>,
    next_token: u64,
    samples: Vec<Sample>,
    recorder: Recorder,
}

impl<'plan> Prober<'plan> {
    fn open(plan: &'plan ProbePlan) -> Result<Self, ProbeError> {
        let poller = Poller::new().map_err(ProbeError::system("open a poller"))?;
        let mut targets = plan.targets.clone();
        let control = plan
            .control
            .then(Control::open)
            .transpose()
            .map_err(ProbeError::system("listen on 127.0.0.1 for the control"))?;
        if let Some(control) = &control {
            poller
                .add(control.listener(), CONTROL_TOKEN, Interest::READ)
                .map_err(ProbeError::system("poll the control's listener"))?;
            let (name, address) = ("loopback control".to_owned(), control.address());
            targets.push(Target { name, address, own_server: true });
        }
        clock::set_exact_timers().map_err(ProbeError::system("set the timer slack"))?;
        let scheduler = sched::request_fifo(REALTIME_PRIORITY);
        let schedule = |(stream, target): (usize, &Target)| {
            Schedule::new(plan.window, plan.period_of(target), plan.jitter, plan.seed, stream as u64)
        };
        Ok(Self {
            plan,
            schedules: targets.iter().enumerate().map(schedule).collect(),
            targets,
            control,
            poller,
            scheduler,
            in_flight: BTreeMap::new(),
            next_token: 0,
            samples: Vec::new(),
            recorder: Recorder::default(),
        })
    }

    fn run(mut self, cancel: &AtomicBool) -> Result<ProbeResult, ProbeError> {
        loop {
            if cancel.load(Ordering::Relaxed) {
                // Unanswered probes were not given their time: they are neither lost nor answered.
                return Ok(self.finish(true));
            }
            let next_due = self.send_due();
            self.give_up(clock::now(), next_due.is_none());
            let Some(wake) = self.next_wake(next_due) else {
                return Ok(self.finish(false));
            };
            self.wait(wake)?;
        }
    }

    /// Sends what is due; when the next probe is, or `None` at the end of the schedule.
    fn send_due(&mut self) -> Option<Timestamp> {
        let mut earliest = None;
        for target in 0..self.schedules.len() {
            loop {
                match self.schedules[target].poll(clock::now()) {
                    Step::Send(scheduled) => self.send(target, scheduled),
                    Step::Missed(_) => self.recorder.missed += 1,
                    Step::WaitUntil(due) => {
                        earliest = Some(earliest.map_or(due, |other: Timestamp| other.min(due)));
                        break;
                    }
                    Step::Done => break,
                }
            }
        }
        earliest
    }

    fn send(&mut self, target: usize, scheduled: Timestamp) {
        let token = self.next_token;
        self.next_token += 1;
        let Target { address, own_server, .. } = self.targets[target];
        let opened = TcpSocket::open(address).and_then(|socket| {
            if own_server {
                socket.reset_on_close()?;
            }
            Ok(socket)
        });
        let sent = clock::now();
        let socket = match opened {
            Ok(socket) => socket,
            Err(error) => return self.record_failure(target, scheduled, sent, &error),
        };
        let connected = socket.connect(address);
        self.recorder.on_connect(clock::now().saturating_since(sent));
        let probe = InFlight { target, scheduled, sent, socket };
        // A handshake that ended inside connect() is writable at once and takes the same way as all others.
        match connected.and_then(|_| self.poller.add(&probe.socket, token, Interest::WRITE)) {
            Ok(()) => drop(self.in_flight.insert(token, probe)),
            Err(error) => self.record(&probe, outcome_of_error(&error, &probe, clock::now())),
        }
    }

    fn record(&mut self, probe: &InFlight, outcome: Outcome) {
        let &InFlight { target, scheduled, sent, .. } = probe;
        self.samples.push(Sample { target, scheduled, sent, outcome });
    }

    fn record_failure(&mut self, target: usize, scheduled: Timestamp, sent: Timestamp, error: &io::Error) {
        self.samples.push(Sample {
            target,
            scheduled,
            sent,
            outcome: Outcome::Failed { error: error.kind() },
        });
    }

    /// Counts as lost what has waited too long; everything left, once the run's last moment has passed.
    fn give_up(&mut self, now: Timestamp, schedule_ended: bool) {
        let run_ended = schedule_ended && now >= self.last_moment();
        while let Some(oldest) = self.in_flight.first_entry() {
            if !run_ended && now < self.plan.give_up_at(oldest.get().sent) {
                return;
            }
            let probe = oldest.remove();
            let retransmits = retransmits_of(&probe.socket);
            self.record(&probe, Outcome::Lost { retransmits });
        }
    }

    /// Until when answers are awaited after the window: the last probe gets its full timeout.
    fn last_moment(&self) -> Timestamp {
        let last_sent = self.in_flight.last_key_value().map_or(Timestamp::ZERO, |(_, probe)| probe.sent);
        self.plan.window.end.max(last_sent) + self.plan.timeout
    }

    /// The next time at which there is something to do; `None` when all is done.
    fn next_wake(&self, next_due: Option<Timestamp>) -> Option<Timestamp> {
        let oldest = self.in_flight.first_key_value().map(|(_, probe)| self.plan.give_up_at(probe.sent));
        match (next_due, oldest) {
            (Some(due), Some(give_up)) => Some(due.min(give_up)),
            (None, Some(give_up)) => Some(give_up.min(self.last_moment())),
            (due, None) => due,
        }
    }

    fn wait(&mut self, wake: Timestamp) -> Result<(), ProbeError> {
        let before = clock::now();
        let deadline = wake.min(before + CANCEL_CHECK);
        self.recorder.on_wait(before);
        let events = self.poller.wait(deadline).map_err(ProbeError::system("wait"))?;
        let now = clock::now();
        self.recorder.on_wake(now, deadline);
        let tokens: Vec<u64> = events.iter().map(|event| event.token).collect();
        for token in tokens {
            self.on_ready(token, now)?;
        }
        Ok(())
    }

    fn on_ready(&mut self, token: u64, now: Timestamp) -> Result<(), ProbeError> {
        if let (CONTROL_TOKEN, Some(control)) = (token, &self.control) {
            return control.clear_backlog().map_err(ProbeError::system("accept from the control"));
        }
        let Some(probe) = self.in_flight.remove(&token) else { return Ok(()) };
        let outcome = match probe.socket.take_error() {
            Ok(None) => answered(&probe, now, self.plan.timeout),
            Ok(Some(error)) | Err(error) => outcome_of_error(&error, &probe, now),
        };
        if now >= self.plan.window.end {
            self.recorder.after_window += 1;
        }
        self.record(&probe, outcome);
        Ok(())
    }

    fn finish(mut self, cancelled: bool) -> ProbeResult {
        self.samples.sort_by_key(|sample| (sample.scheduled, sample.target));
        let control = self.control.is_some().then_some(self.plan.targets.len());
        let instrument = self.recorder.finish(&self.samples, control, self.scheduler);
        ProbeResult { samples: self.samples, control, instrument, cancelled }
    }
}

impl ProbePlan {
    fn give_up_at(&self, sent: Timestamp) -> Timestamp {
        sent + self.timeout.saturating_mul(GIVE_UP_TIMEOUTS)
    }
}

/// The outcome of a completed handshake, with the kernel's figures.
fn answered(probe: &InFlight, now: Timestamp, timeout: Duration) -> Outcome {
    let user = now.saturating_since(probe.sent);
    let info = probe.socket.info().ok();
    let retransmits = info.map_or(0, |info| saturate(info.total_retransmits));
    if user > timeout {
        return Outcome::Late { user, retransmits };
    }
    let kernel = info.filter(|_| retransmits == 0).map(|info| info.rtt);
    Outcome::Reply { user, kernel, retransmits }
}

fn outcome_of_error(error: &io::Error, probe: &InFlight, now: Timestamp) -> Outcome {
    let retransmits = retransmits_of(&probe.socket);
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Outcome::Refused { user: now.saturating_since(probe.sent), retransmits }
        }
        // The kernel has sent its last SYN (tcp_syn_retries).
        io::ErrorKind::TimedOut => Outcome::Lost { retransmits },
        error => Outcome::Failed { error },
    }
}

fn retransmits_of(socket: &TcpSocket) -> u8 {
    socket.info().map_or(0, |info| saturate(info.total_retransmits))
}

fn saturate(count: u32) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}
