//! The run document of a lab run.

use super::bench::PROBE_JITTER;
use crate::config::LabConfig;
use crate::run::{Arm, Machine, PhaseRecord, Run, SCHEMA_VERSION, Settings, ShaperRecord, Versions};
use crate::shaper_process::ShaperProgram;
use crate::statement::round;
use crate::verdict::verdict;
use platform::clock;
use std::time::Duration;
use units::{Timestamp, as_ms};

/// What the run has brought.
pub(super) struct Parts {
    pub(super) started_wall: Timestamp,
    pub(super) duration: Duration,
    pub(super) phases: Vec<PhaseRecord>,
    pub(super) shaper: Option<ShaperRecord>,
    pub(super) warnings: Vec<String>,
}

/// Puts the document together and draws the verdict from it.
pub(super) fn assemble(config: &LabConfig, shaper: Option<&ShaperProgram>, parts: Parts) -> Run {
    let mut run = Run {
        schema_version: SCHEMA_VERSION,
        command: "lab".to_owned(),
        started_unix_ms: parts.started_wall.as_nanos() / 1_000_000,
        duration_s: round(parts.duration.as_secs_f64()),
        versions: Versions {
            accel: env!("CARGO_PKG_VERSION").to_owned(),
            shaper: shaper.map(|program| program.version.clone()),
            kernel: kernel_release(),
        },
        machine: Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            clock: "CLOCK_MONOTONIC".to_owned(),
            // A resolution beyond 584 years does not exist.
            clock_resolution_ns: clock::resolution().as_nanos() as u64,
        },
        settings: settings(config),
        phases: parts.phases,
        shaper: parts.shaper,
        verdict: None,
        warnings: parts.warnings,
    };
    run.verdict = verdict(&run);
    run
}

fn settings(config: &LabConfig) -> Settings {
    let ms = |span: Duration| round(as_ms(span));
    let shaped = config.arms.contains(&Arm::On);
    Settings {
        up_mbps: round(config.up.as_mbit_f64()),
        down_mbps: round(config.down.as_mbit_f64()),
        rtt_ms: ms(config.rtt),
        buffer_ms: ms(config.buffer),
        loss_pct: round(config.loss.as_percent()),
        jitter_ms: ms(config.jitter),
        flows: config.flows,
        congestion_control: config.congestion_control.clone(),
        shaper: match config.arms.as_slice() {
            [Arm::Off] => "off".to_owned(),
            [Arm::On] => "on".to_owned(),
            _ => "both".to_owned(),
        },
        shaper_rate_mbps: shaped.then(|| round(config.shaper_rate.as_mbit_f64())),
        seed: config.seed,
        quick: config.quick,
        probe_period_ms: ms(config.probe_period),
        probe_jitter_pct: 100.0 * PROBE_JITTER,
        probe_timeout_ms: ms(config.probe_timeout),
        probe_load_pct: round(100.0 * config.probe_load()),
        ramp_ms: ms(config.times.ramp),
        loaded_ms: ms(config.times.loaded),
        idle_ms: ms(config.times.idle),
    }
}

pub(in crate::command) fn kernel_release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or("unknown".to_owned(), |text| text.trim().to_owned())
}
