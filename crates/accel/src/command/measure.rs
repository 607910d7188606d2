//! `accel measure`: latency, loss and goodput of a real path, idle and under load.

mod args;
mod bench;
mod echoes;
mod names;
mod plan;
mod progress;
mod volume;

pub use args::{MEASURE_EXAMPLES, MeasureArgs};

use super::json_file::JsonFile;
use super::lab::document::kernel_release;
use super::signals::cancelled_by_signals;
use super::{Exit, Failure, Report};
use crate::echo::EchoClient;
use crate::measurement::{LoadSetting, Measurement, PhaseRecord, Row, Settings, TargetSetting, grades};
use crate::probe::{FOREIGN_PERIOD, Target, Window};
use crate::render::{json, text};
use crate::run::{Machine, Phase, SCHEMA_VERSION, Versions};
use crate::statement::round;
use crate::targets::{GATEWAY_NAME, Resolved, gateway, resolve_all};
use bench::{Bench, PROBE_JITTER, interrupted, load_failure};
use plan::{LoadEnd, PROBE_TIMEOUT, Plan};
use platform::{clock, tcp};
use progress::Progress;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Timestamp, as_ms};

/// IP bytes that a handshake puts on the busier way: SYN with options, ACK and the end (RFC 9293 section 3.1).
const HANDSHAKE_BYTES: f64 = 164.0;
/// Of names and of the first handshakes with them.
const LONGEST_LOOK_UP: Duration = Duration::from_secs(8);
/// Probes that take more than this share of a line are said to disturb it (the responsiveness draft allows 5 %).
const DISTURBING_SHARE: f64 = 0.05;

/// Measures and hands back the tables.
///
/// # Errors
/// When there is no result at all; a result that could not be stored, or that a signal cut short, is a report with a
/// failure in it.
pub fn run(args: &MeasureArgs, style: text::Style) -> Result<Report, Failure> {
    let available = tcp::available_congestion_controls().unwrap_or_default();
    let plan = Plan::resolve(args, &available)?;
    let file = args.json.as_deref().map(JsonFile::open).transpose()?;
    let cancel = cancelled_by_signals()?;
    let (run, failure) = measure(&plan, &cancel)?;
    let text = text::measure::render(&run, style);
    let stored = file.and_then(|file| store(file, &run).err());
    Ok(Report { text, failure: failure.or(stored) })
}

fn store(file: JsonFile, run: &Measurement) -> Result<(), Failure> {
    let document = json::render(run).map_err(|error| Failure::new(Exit::NotWritten, error))?;
    file.write(&document)
}

/// The whole run; the failure is what has ended it early with something measured.
fn measure(plan: &Plan, cancel: &AtomicBool) -> Result<(Measurement, Option<Failure>), Failure> {
    let (started, started_wall) = (clock::now(), clock::wall_now());
    let progress = Progress::start(started);
    let (pinned, mut warnings) = pin(plan, &progress, cancel)?;
    let load = plan.load.as_ref().zip(pinned.load);
    // Also shows whether the token is right, before anything takes time.
    let greet = |(end, server): (&LoadEnd, SocketAddr)| {
        EchoClient::connect(server, end.token.as_ref(), PROBE_TIMEOUT).map_err(load_failure)
    };
    let echo = load.map(greet).transpose()?;
    volume::confirm(plan)?;
    let mut bench = Bench {
        plan,
        targets: pinned.targets.iter().map(|(target, _)| target.clone()).collect(),
        load,
        progress: &progress,
        cancel,
        started,
        echo,
        idle: BTreeMap::new(),
        moved: 0,
    };
    let (phases, failure) = bench.run();
    drop(progress);
    if phases.is_empty() {
        return Err(failure.unwrap_or_else(interrupted));
    }
    let was_interrupted = cancel.load(Ordering::Relaxed);
    warnings.extend(doubts(plan, &phases));
    warnings.extend(disturbance(probe_load_kbps(plan, &pinned), &phases));
    let run = assemble(plan, &pinned, (started, started_wall), phases, was_interrupted, warnings);
    let stopped = || Failure::new(Exit::Interrupted, "interrupted; what was measured so far is above");
    Ok((run, failure.or_else(|| was_interrupted.then(stopped))))
}

/// Whom the run is pinned to.
struct Pinned {
    /// With the number of other addresses that the name had.
    targets: Vec<(Target, usize)>,
    load: Option<SocketAddr>,
}

/// Resolves all names once, and finds out who answers.
fn pin(plan: &Plan, progress: &Progress, cancel: &AtomicBool) -> Result<(Pinned, Vec<String>), Failure> {
    let step = |what: &str| progress.step(clock::now(), what, LONGEST_LOOK_UP);
    let mut warnings = Vec::new();
    let mut targets = Vec::new();
    step("looking for whom to measure");
    let load = plan.load.as_ref().map(|end| pin_load(end, plan, cancel)).transpose()?;
    if let Some(found) = &load {
        targets.push((target(found, true), found.others));
    }
    if load.is_some() && !plan.targets.is_empty() {
        step("looking for the other targets");
    }
    for found in resolve_all(&plan.targets, None, plan.family, cancel) {
        match found {
            Ok(found) if load.as_ref().is_some_and(|load| load.address == found.address) => {}
            Ok(found) => targets.push((target(&found, false), found.others)),
            Err(error) => warnings.push(format!("left out: {error}")),
        }
    }
    if plan.gateway {
        match gateway(plan.family, cancel) {
            Ok(Some(address)) => {
                let name = GATEWAY_NAME.to_owned();
                targets.push((Target { name, address, own_server: false }, 0));
            }
            Ok(None) => {}
            Err(why) => warnings.push(why),
        }
    }
    if cancel.load(Ordering::Relaxed) {
        return Err(interrupted());
    }
    if targets.is_empty() {
        let why = warnings.join("\n  ");
        return Err(Failure::new(Exit::Failed, format!("no target answers:\n  {why}"))
            .help("name one that does: accel measure HOST:PORT; a firewall may forbid connections"));
    }
    let load = load.map(|found| found.address);
    Ok((Pinned { targets, load }, warnings))
}

fn target(found: &Resolved, own_server: bool) -> Target {
    Target { name: found.name.clone(), address: found.address, own_server }
}

fn pin_load(end: &LoadEnd, plan: &Plan, cancel: &AtomicBool) -> Result<Resolved, Failure> {
    let found = resolve_all(std::slice::from_ref(&end.host), None, plan.family, cancel);
    // One host was asked for.
    let Some(found) = found.into_iter().next() else { return Err(interrupted()) };
    if cancel.load(Ordering::Relaxed) {
        return Err(interrupted());
    }
    found.map_err(|error| {
        Failure::new(Exit::Failed, format!("the load server: {error}"))
            .help("is `accel serve` running there, and do firewalls let its port through (TCP and UDP)?")
    })
}

/// What a reader should know before trusting the figures.
fn doubts(plan: &Plan, phases: &[PhaseRecord]) -> Vec<String> {
    let mut doubts = Vec::new();
    if plan.load.is_none() {
        doubts.push(
            "only the idle line was measured, which says nothing about latency under load. To load it, run `accel \
             serve` on a machine beyond the line and type: accel measure --load HOST --token TOKEN"
                .to_owned(),
        );
    }
    if let Some(end) = plan.load.as_ref().filter(|end| end.congestion.starts_with("bbr")) {
        doubts.push(format!(
            "the load runs with {}, which keeps queues shorter than the loss-based kind that most senders use; compare --cc \
             cubic",
            end.congestion
        ));
    }
    let failed: u64 = phases.iter().map(|p| p.instrument.failed).sum();
    if failed > 0 {
        doubts.push(format!("{failed} probes could not be sent or were refused; they are in no figure"));
    }
    let silent = |row: &&Row| row.ways.is_some() && row.loss.n > 0 && row.loss.lost == row.loss.n;
    if phases.iter().any(|phase| phase.rows.iter().any(|row| silent(&row))) {
        doubts.push(
            "no datagram came back in a phase: a firewall between here and the load server may stop UDP on its port"
                .to_owned(),
        );
    }
    let left: Vec<String> = plan
        .phases
        .iter()
        .filter(|phase| !phases.iter().any(|record| record.phase == **phase))
        .map(ToString::to_string)
        .collect();
    if !left.is_empty() {
        doubts.push(format!("not measured: {}", left.join(", ")));
    }
    doubts
}

/// Probes are traffic too: what they take of the narrowest way that was measured, where it is much.
fn disturbance(load_kbps: f64, phases: &[PhaseRecord]) -> Option<String> {
    let rates = phases.iter().flat_map(|phase| [&phase.up, &phase.down]).flatten();
    let narrowest_mbps = rates.map(|rate| rate.mbps).fold(f64::INFINITY, f64::min);
    let share = load_kbps / 1e3 / narrowest_mbps;
    (share > DISTURBING_SHARE).then(|| {
        format!(
            "the probes took {load_kbps:.0} kbit/s, {:.0} % of the slowest way: fewer disturb less (--period 100ms)",
            100.0 * share
        )
    })
}

fn assemble(
    plan: &Plan,
    pinned: &Pinned,
    (started, started_wall): (Timestamp, Timestamp),
    phases: Vec<PhaseRecord>,
    interrupted: bool,
    warnings: Vec<String>,
) -> Measurement {
    Measurement {
        schema_version: SCHEMA_VERSION,
        command: "measure".to_owned(),
        started_unix_ms: started_wall.as_nanos() / 1_000_000,
        duration_s: round((clock::now() - started).as_secs_f64()),
        versions: Versions {
            accel: env!("CARGO_PKG_VERSION").to_owned(),
            shaper: None,
            kernel: kernel_release(),
        },
        machine: Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            clock: "CLOCK_MONOTONIC".to_owned(),
            // A resolution beyond 584 years does not exist.
            clock_resolution_ns: clock::resolution().as_nanos() as u64,
        },
        settings: settings(plan, pinned),
        grade: grades(&phases),
        phases,
        interrupted,
        warnings,
    }
}

/// IP bits that all probes together put on each way.
fn probe_load_kbps(plan: &Plan, pinned: &Pinned) -> f64 {
    let none = Window { start: Timestamp::ZERO, end: Timestamp::ZERO };
    let handshakes: f64 = (pinned.targets.iter())
        .map(|(target, _)| {
            let period = if target.own_server { plan.period } else { plan.period.max(FOREIGN_PERIOD) };
            HANDSHAKE_BYTES / period.as_secs_f64()
        })
        .sum();
    let echoes =
        pinned.load.map_or(0.0, |_| echoes::bytes_per_s(&echoes::echo_plan(plan, Phase::Idle, none)));
    (handshakes + echoes) * 8.0 / 1e3
}

fn settings(plan: &Plan, pinned: &Pinned) -> Settings {
    let ms = |span: Duration| round(as_ms(span));
    let target = |(target, others): &(Target, usize)| TargetSetting {
        name: target.name.clone(),
        address: target.address.to_string(),
        others: *others,
        own_server: target.own_server,
    };
    let load = plan.load.as_ref().zip(pinned.load);
    Settings {
        targets: pinned.targets.iter().map(target).collect(),
        load: load.map(|(end, address)| LoadSetting {
            server: end.host.to_string(),
            address: address.to_string(),
            flows: end.flows,
            congestion_control: end.congestion.clone(),
        }),
        probe_period_ms: ms(plan.period),
        probe_load_kbps: round(probe_load_kbps(plan, pinned)),
        probe_jitter_pct: 100.0 * PROBE_JITTER,
        probe_timeout_ms: ms(PROBE_TIMEOUT),
        seed: plan.seed,
        idle_ms: ms(plan.measured),
        ramp_ms: ms(plan.ramp),
        loaded_ms: ms(plan.measured),
        max_data_mb: round(plan.max_data as f64 / 1e6),
    }
}
