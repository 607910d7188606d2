//! The running line with everything on it: measures one phase after the other.

use super::records::{direction_totals, instrument_record, line_record, sample_columns, under_way};
use super::shaper_failure;
use crate::command::progress::Progress;
use crate::command::{Exit, Failure};
use crate::config::LabConfig;
use crate::emulator::{Emulator, PUBLISH_PERIOD};
use crate::load::{Client, ClientRecord, LoadPlan, Server};
use crate::probe::{self, ProbePlan, ProbeResult, Target, Window};
use crate::run::{Arm, Phase, PhaseRecord};
use crate::shaper_process::{ShaperProcess, ShaperProgram};
use crate::statement::{Clock, latency, probe_loss, round};
use platform::clock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::{Rate, Timestamp, as_ms};

/// How often the waiting thread looks around.
const STEP: Duration = Duration::from_millis(50);
/// All flows must run within this time.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(8);
/// A relay that is later than this at its p99 shares its processor with something else (0.03 to 0.2 ms otherwise).
const BUSY_LATENESS_MS: f64 = 1.0;
/// Probes move by up to this share of the period, so that no periodic queue can hide between them.
pub(super) const PROBE_JITTER: f64 = 0.5;

/// The emulated line, the servers at its far end and what watches over them.
pub(super) struct Bench<'run> {
    config: &'run LabConfig,
    emulator: Emulator,
    /// Far end of the load.
    load_server: Server,
    /// Takes the probes' handshakes; apart, so that they do not count as load.
    probe_server: Server,
    progress: Progress,
    cancel: Arc<AtomicBool>,
    started: Timestamp,
}

impl<'run> Bench<'run> {
    /// Starts the servers on a line that runs already.
    pub(super) fn new(
        config: &'run LabConfig,
        emulator: Emulator,
        cancel: Arc<AtomicBool>,
        started: Timestamp,
    ) -> Result<Self, Failure> {
        let any_port = SocketAddr::from((Emulator::SERVER_V4, 0));
        let serve =
            || emulator.server().run(|| Server::start(any_port)).map_err(|e| Failure::new(Exit::Failed, e));
        let (load_server, probe_server) = (serve()?, serve()?);
        // A count of one or two.
        let progress = Progress::start(started, config.times.arm() * config.arms.len() as u32);
        Ok(Self { config, emulator, load_server, probe_server, progress, cancel, started })
    }

    /// Starts the shaper on the client's interface.
    pub(super) fn start_shaper(&self, program: &ShaperProgram) -> Result<ShaperProcess, Failure> {
        self.progress.step(clock::now(), Arm::On, "starting");
        program
            .start(self.emulator.client(), Emulator::CLIENT_INTERFACE, self.config.shaper_rate, &self.cancel)
            .map_err(|error| shaper_failure(&error))
    }

    /// Measures all phases of one arm; the shaper, if there is one, must live through them.
    pub(super) fn measure_arm(
        &mut self,
        arm: Arm,
        mut shaper: Option<&mut ShaperProcess>,
    ) -> Result<Vec<PhaseRecord>, Failure> {
        let mut records = Vec::new();
        for phase in Phase::ALL {
            self.progress.phase(clock::now(), arm, phase);
            records.push(self.measure_phase(arm, phase)?);
            if let Some(shaper) = shaper.as_deref_mut() {
                shaper.check().map_err(|error| shaper_failure(&error))?;
            }
            if phase != Phase::Idle {
                self.drain()?;
            }
        }
        Ok(records)
    }

    fn measure_phase(&self, arm: Arm, phase: Phase) -> Result<PhaseRecord, Failure> {
        let times = self.config.times;
        let before = self.emulator.counters();
        let load = (phase != Phase::Idle).then(|| self.start_load(phase)).transpose()?;
        let (ramp, length) = if load.is_some() { (times.ramp, times.loaded) } else { (STEP, times.idle) };
        let start = clock::now() + ramp;
        let window = Window { start, end: start + length };
        let (probes, load) = self.probe(phase, window, load)?;
        let samples = sample_columns(&probes, window);
        let loss = probe_loss(&samples);
        let goodput =
            |mbps: Option<Rate>, wanted: bool| mbps.filter(|_| wanted).map(|r| round(r.as_mbit_f64()));
        let server = self.load_server.series();
        Ok(PhaseRecord {
            arm,
            phase,
            latency_ms: latency(&samples, Clock::Kernel),
            user_latency_ms: latency(&samples, Clock::User),
            up_mbps: goodput(server.goodput(window), phase.loads_up()),
            down_mbps: goodput(load.as_ref().and_then(|l| l.own.goodput(window)), phase.loads_down()),
            probe_loss_pct: loss.value_pct,
            probe_loss: loss,
            bulk_retransmit_pct: load
                .and_then(|l| (l.own.sent(window) + server.sent(window)).retransmit_ratio())
                .map(|ratio| round(ratio.as_percent())),
            started_ms: round(as_ms(window.start - self.started)),
            measured_ms: round(as_ms(window.length())),
            instrument: instrument_record(&probes),
            line: line_record(&before, &self.emulator.counters()),
            samples,
        })
    }

    fn start_load(&self, phase: Phase) -> Result<Client, Failure> {
        let flows = |wanted: bool| if wanted { self.config.flows as usize } else { 0 };
        let plan = LoadPlan {
            server: self.load_server.address(),
            up_flows: flows(phase.loads_up()),
            down_flows: flows(phase.loads_down()),
            congestion: self.config.congestion_control.clone(),
        };
        let mut client = self.emulator.client().run(|| Client::start(plan)).map_err(load_failure)?;
        let deadline = clock::now() + ESTABLISHED_WITHIN;
        while !client.wait_established(clock::now() + STEP).map_err(load_failure)? {
            self.look_around()?;
            if clock::now() >= deadline {
                let seconds = ESTABLISHED_WITHIN.as_secs();
                return Err(Failure::new(
                    Exit::Failed,
                    format!("the load's flows were not set up within {seconds} s"),
                )
                .help("fewer --flows, less --loss, or a smaller --buffer let them through"));
            }
        }
        Ok(client)
    }

    /// Probes through the window and ends the load with it; what the stragglers still owe is awaited without load.
    fn probe(
        &self,
        phase: Phase,
        window: Window,
        mut load: Option<Client>,
    ) -> Result<(ProbeResult, Option<ClientRecord>), Failure> {
        let plan = self.probe_plan(phase, window);
        thread::scope(|scope| {
            let prober = scope.spawn(|| self.emulator.client().run(|| probe::run(&plan, &self.cancel)));
            let mut record = None;
            let watched = self.watch(window, &mut load, &mut record, || prober.is_finished());
            if watched.is_err() {
                // The scope waits for the prober, which must not go on without its load.
                self.cancel.store(true, Ordering::Relaxed);
            }
            let result = prober.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            watched?;
            Ok((result.map_err(|error| Failure::new(Exit::Failed, error))?, record))
        })
    }

    fn watch(
        &self,
        window: Window,
        load: &mut Option<Client>,
        record: &mut Option<ClientRecord>,
        is_finished: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        while !is_finished() {
            let now = clock::now();
            clock::sleep_until(if now < window.end { window.end.min(now + STEP) } else { now + STEP });
            self.look_around()?;
            if let Some(client) = load {
                client.check().map_err(load_failure)?;
            }
            if clock::now() >= window.end
                && let Some(client) = load.take()
            {
                *record = Some(client.stop().map_err(load_failure)?);
            }
        }
        self.look_around()
    }

    fn probe_plan(&self, phase: Phase, window: Window) -> ProbePlan {
        let target =
            Target { name: "server".to_owned(), address: self.probe_server.address(), own_server: true };
        ProbePlan {
            targets: vec![target],
            period: self.config.probe_period,
            jitter: PROBE_JITTER,
            timeout: self.config.probe_timeout,
            // The same schedule in both arms, another one in each phase.
            seed: self.config.seed.wrapping_mul(16).wrapping_add(phase as u64),
            window,
            control: true,
        }
    }

    /// Waits until the line is empty: what a stopped load left in the queues must not meet the next phase's probes.
    fn drain(&self) -> Result<(), Failure> {
        let latest = clock::now() + self.config.times.drain;
        // A host may still answer what has just arrived: nothing under way for a whole round trip, then it is over.
        let quiet_for = self.config.rtt + self.config.jitter + PUBLISH_PERIOD;
        let mut quiet_since = None;
        while clock::now() < latest {
            self.look_around()?;
            let now = clock::now();
            let since =
                if under_way(&self.emulator.counters()) > 0 { now } else { quiet_since.unwrap_or(now) };
            quiet_since = Some(since);
            if now - since > quiet_for {
                break;
            }
            clock::sleep_until(latest.min(now + PUBLISH_PERIOD));
        }
        Ok(())
    }

    fn look_around(&self) -> Result<(), Failure> {
        self.progress.tick(clock::now());
        if self.cancel.load(Ordering::Relaxed) { Err(Failure::interrupted()) } else { Ok(()) }
    }

    /// What was wrong with the run, to be said beside its result.
    pub(super) fn finish(self, phases: &[PhaseRecord]) -> Vec<String> {
        let mut warnings = self.config.warnings();
        let refused = self.emulator.refused_settings();
        warnings.extend(
            refused.iter().map(|setting| format!("setting not applied in the lab's hosts: {setting}")),
        );
        let totals = direction_totals(phases);
        if totals.emulation_drops > 0 {
            warnings.push(format!(
                "the emulator itself lost {} packets: the machine was too busy",
                totals.emulation_drops
            ));
        }
        let latest = phases.iter().map(|p| p.line.relay_lateness_ms.p99).fold(0.0, f64::max);
        if latest > BUSY_LATENESS_MS {
            warnings.push(format!(
                "the emulated line delivered packets up to {latest:.2} ms late (p99): this machine was busy with other \
                 work, and differences of that size mean nothing"
            ));
        }
        let above = |mbps: Option<f64>, line: Rate| mbps.is_some_and(|mbps| mbps > line.as_mbit_f64());
        if phases.iter().any(|p| above(p.up_mbps, self.config.up) || above(p.down_mbps, self.config.down)) {
            warnings.push(
                "a goodput above the line's rate includes data that had waited at the receiver for a retransmission"
                    .to_owned(),
            );
        }
        let has_lost = |phase| phases.iter().any(|p| p.phase == phase && p.probe_loss.lost > 0);
        let is_cut = |&phase: &Phase| self.config.queues_exceed_syn_timeout(phase) && has_lost(phase);
        let cut: Vec<_> = Phase::ALL.into_iter().filter(is_cut).map(|phase| phase.to_string()).collect();
        if !cut.is_empty() {
            warnings.push(format!(
                "full queues and the base RTT exceed 1 s, after which a SYN is sent again: probes counted as lost under \
                 {} may only have waited that long, and the percentiles without them are too low",
                cut.join(", ")
            ));
        }
        let failed: u64 = phases.iter().map(|p| p.instrument.failed).sum();
        if failed > 0 {
            warnings
                .push(format!("{failed} probes could not be sent or were refused; they are in no figure"));
        }
        warnings
    }
}

fn load_failure(error: crate::load::LoadError) -> Failure {
    Failure::new(Exit::Failed, error)
}
