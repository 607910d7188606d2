//! Measures one phase after the other.

use super::echoes::{self, echo_plan};
use super::names;
use super::plan::{LoadEnd, PROBE_TIMEOUT, Plan};
use super::progress::Progress;
use crate::command::lab::records::{columns_of, instrument_record};
use crate::command::{Exit, Failure};
use crate::echo::EchoClient;
use crate::load::{Client, ClientRecord, LoadError, LoadPlan};
use crate::measurement::{PhaseRecord, ProbeKind, Row, goodput, row};
use crate::probe::{self, ProbePlan, ProbeResult, Target, Window};
use crate::run::Phase;
use crate::statement::round;
use crate::targets::race;
use platform::clock;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use units::{Timestamp, as_ms};

/// Probes move by up to this share of the period, so that no periodic queue can hide between them.
pub(super) const PROBE_JITTER: f64 = 0.5;
/// How often the waiting thread looks around.
const STEP: Duration = Duration::from_millis(50);
/// Between the start of the probes' threads and the first probe.
const LEAD: Duration = Duration::from_millis(50);
/// All flows must run within this time.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(8);
/// Longest wait for the queues of a load that has ended.
const DRAIN_LIMIT: Duration = Duration::from_secs(6);
/// Below one and a half times the idle median and this, a queue counts as empty.
const DRAINED_WITHIN_MS: f64 = 5.0;

/// Everything that measures.
pub(super) struct Bench<'run> {
    pub(super) plan: &'run Plan,
    pub(super) targets: Vec<Target>,
    /// The far end of the load, pinned.
    pub(super) load: Option<(&'run LoadEnd, SocketAddr)>,
    pub(super) progress: &'run Progress,
    pub(super) cancel: &'run AtomicBool,
    pub(super) started: Timestamp,
    /// Open connections to be echoed on, with the far end of the load.
    pub(super) echo: Option<EchoClient>,
    /// Answers without load, by target and probe.
    pub(super) idle: BTreeMap<(String, ProbeKind), Vec<f64>>,
    /// What the load has moved so far, in bytes.
    pub(super) moved: u64,
}

/// What the load of one phase has moved.
struct Moved {
    record: ClientRecord,
    bytes: u64,
}

impl Moved {
    fn stop(client: Client) -> Result<Self, LoadError> {
        let bytes = client.moved_bytes();
        Ok(Self { record: client.stop()?, bytes })
    }
}

/// Why a phase has ended before its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Interrupted,
    DataUsedUp,
}

impl Bench<'_> {
    /// All phases of the plan, or those up to a signal. What was measured before a failure is kept beside it.
    pub(super) fn run(&mut self) -> (Vec<PhaseRecord>, Option<Failure>) {
        let mut phases = Vec::new();
        for &phase in &self.plan.phases {
            if phase != Phase::Idle && self.moved >= self.plan.max_data {
                break;
            }
            match self.phase(phase) {
                Ok(record) => phases.push(record),
                Err(failure) => return (phases, Some(failure)),
            }
            if self.is_interrupted() {
                break;
            }
            if phase != Phase::Idle {
                self.drain();
            }
        }
        (phases, None)
    }

    fn phase(&mut self, phase: Phase) -> Result<PhaseRecord, Failure> {
        self.progress.step(clock::now(), &phase.to_string(), self.plan.length(phase));
        let mut load = (phase != Phase::Idle).then(|| self.start_load(phase)).transpose()?;
        let ramp = if load.is_some() { self.plan.ramp } else { LEAD };
        let start = clock::now() + ramp;
        let window = Window { start, end: start + self.plan.measured };
        // A phase that is cut short ends its probes with its load.
        let cut = AtomicBool::new(false);
        let (probe_plan, echo_plan) = (self.probe_plan(phase, window), echo_plan(self.plan, phase, window));
        let askers = names::start(self.plan, window, probe_plan.seed);
        // The echoes work on their own; everything else is only looked at meanwhile.
        let mut echo = self.echo.take();
        let (probes, echoes, ended) = thread::scope(|scope| {
            let prober = scope.spawn(|| probe::run(&probe_plan, &cut));
            let echoer = echo.as_mut().map(|echo| scope.spawn(|| echo.run(&echo_plan, &cut)));
            let is_finished = || prober.is_finished() && echoer.as_ref().is_none_or(|e| e.is_finished());
            let ended = self.watch(window, &mut load, &cut, is_finished);
            (join(prober), echoer.map(join), ended)
        });
        self.echo = echo;
        let (ended_at, reason, record) = ended.map_err(load_failure)?;
        let probes = probes.map_err(|error| Failure::new(Exit::Failed, error))?;
        let echoes =
            echoes.transpose().map_err(|error| Failure::new(Exit::Failed, format!("echo: {error}")))?;
        let names = names::finish(self.plan, askers, window);
        let window = Window { start: window.start, end: window.end.min(ended_at).max(window.start) };
        let mut rows = self.handshake_rows(&probes, window);
        let echo_instrument = echoes.as_ref().map(echoes::instrument);
        if let (Some(echoes), Some(name)) = (echoes, self.load_name()) {
            rows.extend(echoes::rows(&name, &echo_plan, echoes, |kind| self.idle_answers(&name, kind)));
        }
        let record = self.record(phase, window, reason, rows, &probes, record.as_ref());
        Ok(PhaseRecord { names, echo_instrument, ..record })
    }

    fn record(
        &mut self,
        phase: Phase,
        window: Window,
        cut: Option<Cut>,
        rows: Vec<Row>,
        probes: &ProbeResult,
        moved: Option<&Moved>,
    ) -> PhaseRecord {
        if phase == Phase::Idle {
            let answers = |row: &Row| row.samples.user_ms.iter().flatten().copied().collect();
            self.idle = rows.iter().map(|row| ((row.target.clone(), row.kind), answers(row))).collect();
        }
        let load = moved.map(|moved| &moved.record);
        let sent = load.map(|load| load.sent(window));
        let bytes = moved.map_or(0, |moved| moved.bytes);
        self.moved += bytes;
        PhaseRecord {
            phase,
            started_ms: round(as_ms(window.start.saturating_since(self.started))),
            measured_ms: round(as_ms(window.length())),
            cut_short: cut.map(|cut| match cut {
                Cut::Interrupted => "interrupted".to_owned(),
                Cut::DataUsedUp => "the data allowed by --max-data was used up".to_owned(),
            }),
            up: load.filter(|_| phase.loads_up()).and_then(|load| goodput(&load.uploads, window)),
            down: load.filter(|_| phase.loads_down()).and_then(|load| goodput(&load.own, window)),
            bulk_retransmit_pct: sent
                .and_then(|sent| sent.retransmit_ratio())
                .map(|ratio| round(ratio.as_percent())),
            data_mb: round(bytes as f64 / 1e6),
            rows,
            names: Vec::new(),
            instrument: instrument_record(probes),
            echo_instrument: None,
        }
    }

    fn handshake_rows(&self, probes: &ProbeResult, window: Window) -> Vec<Row> {
        let plan = self.probe_plan(Phase::Idle, window);
        let row_of = |(number, target): (usize, &Target)| {
            let columns = columns_of(probes.real_samples().filter(|sample| sample.target == number), window);
            let idle = self.idle_answers(&target.name, ProbeKind::Handshake);
            row(&target.name, ProbeKind::Handshake, columns, plan.period_of(target), idle)
        };
        self.targets.iter().enumerate().map(row_of).collect()
    }

    fn idle_answers(&self, target: &str, kind: ProbeKind) -> &[f64] {
        self.idle.get(&(target.to_owned(), kind)).map_or(&[][..], Vec::as_slice)
    }

    /// What the far end of the load is called among the targets.
    fn load_name(&self) -> Option<String> {
        let (_, server) = self.load?;
        self.targets.iter().find(|target| target.address == server).map(|target| target.name.clone())
    }

    fn probe_plan(&self, phase: Phase, window: Window) -> ProbePlan {
        ProbePlan {
            targets: self.targets.clone(),
            period: self.plan.period,
            jitter: PROBE_JITTER,
            timeout: PROBE_TIMEOUT,
            // Another schedule in each phase.
            seed: self.plan.seed.wrapping_mul(16).wrapping_add(phase as u64),
            window,
            control: true,
        }
    }

    fn start_load(&self, phase: Phase) -> Result<Client, Failure> {
        let Some((end, server)) = self.load else {
            return Err(Failure::new(Exit::Usage, "a loaded phase needs a load server"));
        };
        let flows = |wanted: bool| if wanted { end.flows as usize } else { 0 };
        let plan = LoadPlan {
            server,
            up_flows: flows(phase.loads_up()),
            down_flows: flows(phase.loads_down()),
            congestion: end.congestion.clone(),
        };
        let mut client =
            Client::start_with(plan, end.token.as_ref(), self.plan.max_data.saturating_sub(self.moved))
                .map_err(load_failure)?;
        let deadline = clock::now() + ESTABLISHED_WITHIN;
        while !client.wait_established(clock::now() + STEP).map_err(load_failure)? {
            self.progress.tick(clock::now());
            if self.is_interrupted() {
                return Err(interrupted());
            }
            if clock::now() >= deadline {
                let seconds = ESTABLISHED_WITHIN.as_secs();
                let what = format!("the flows of the load were not set up within {seconds} s");
                return Err(
                    Failure::new(Exit::Failed, what).help("try fewer with --flows, or another load server")
                );
            }
        }
        Ok(client)
    }

    /// Waits for the end of the probes; ends the load with the window, at a signal, or when it has moved enough. When
    /// it ended, why if early, and what it moved.
    fn watch(
        &self,
        window: Window,
        load: &mut Option<Client>,
        cut: &AtomicBool,
        is_finished: impl Fn() -> bool,
    ) -> Result<(Timestamp, Option<Cut>, Option<Moved>), LoadError> {
        let (mut ended, mut reason, mut record) = (Timestamp::MAX, None, None);
        while !is_finished() {
            let now = clock::now();
            clock::sleep_until(if now < window.end { window.end.min(now + STEP) } else { now + STEP });
            let now = clock::now();
            self.progress.tick(now);
            let checked = load.as_mut().map_or(Ok(()), Client::check);
            reason = reason.or_else(|| self.reason_to_stop(load.as_ref()));
            if reason.is_some() || checked.is_err() {
                ended = ended.min(now);
                cut.store(true, Ordering::Relaxed);
            }
            checked?;
            if (now >= window.end || reason.is_some())
                && let Some(client) = load.take()
            {
                record = Some(Moved::stop(client)?);
            }
        }
        if let Some(client) = load.take() {
            record = Some(Moved::stop(client)?);
        }
        Ok((ended, reason, record))
    }

    fn reason_to_stop(&self, load: Option<&Client>) -> Option<Cut> {
        if self.is_interrupted() {
            return Some(Cut::Interrupted);
        }
        load?.is_used_up().then_some(Cut::DataUsedUp)
    }

    /// Waits until a handshake with the load server takes little longer than without load: what a stopped load left in
    /// the queues must not meet the next phase's probes.
    fn drain(&self) {
        let Some((_, server)) = self.load else { return };
        let name = self.load_name().unwrap_or_default();
        let mut idle = self.idle_answers(&name, ProbeKind::Handshake).to_vec();
        idle.sort_by(f64::total_cmp);
        let limit_ms = 1.5 * idle.get(idle.len() / 2).copied().unwrap_or(0.0) + DRAINED_WITHIN_MS;
        let deadline = clock::now() + DRAIN_LIMIT;
        self.progress.step(clock::now(), "waiting for the queues to drain", DRAIN_LIMIT);
        let mut quick = 0;
        while quick < 3 && clock::now() < deadline && !self.is_interrupted() {
            clock::sleep_until(clock::now() + 2 * STEP);
            self.progress.tick(clock::now());
            let tried = race(&[server], deadline.min(clock::now() + Duration::from_secs(1)), self.cancel);
            quick = if tried.is_ok_and(|race| as_ms(race.took) <= limit_ms) { quick + 1 } else { 0 };
        }
    }

    fn is_interrupted(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(super) fn load_failure(error: LoadError) -> Failure {
    Failure::new(Exit::Failed, error)
}

/// The end by a signal, with nothing measured.
pub(super) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted before anything was measured")
}
