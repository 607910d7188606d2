//! `accel lab`: an emulated line, measured without and with the real shaper.

mod bench;
pub(super) mod document;
pub(super) mod records;

use super::json_file::JsonFile;
use super::signals::cancelled_by_signals;
use super::{Exit, Failure, Report};
use crate::args::LabArgs;
use crate::config::LabConfig;
use crate::emulator::{Emulator, EmulatorConfig, EmulatorError};
use crate::render::{json, text};
use crate::run::{Arm, Run};
use crate::shaper_process::{ShaperError, ShaperProgram};
use bench::Bench;
use lab::{LinkConfig, QueueLimit};
use platform::{clock, process, tcp};
use std::sync::Arc;
use units::Rate;

/// Runs the lab and hands back the table.
///
/// # Errors
/// When there is no result at all; a result that could not be stored is a report with a failure in it.
pub fn run(args: LabArgs, style: text::Style) -> Result<Report, Failure> {
    let available = tcp::available_congestion_controls().unwrap_or_default();
    let config = LabConfig::resolve(args, &available).map_err(|bad| Failure::new(Exit::Usage, bad))?;
    make_room(&config)?;
    let file = config.json.as_deref().map(JsonFile::open).transpose()?;
    let shaper = find_shaper(&config)?;
    let run = measure(&config, shaper.as_ref())?;
    let text = text::render(&run, style);
    let failure = file.and_then(|file| store(file, &run).err());
    Ok(Report { text, failure })
}

/// Makes sure before the run that its busiest moment has descriptors enough: both ends are this one process.
fn make_room(config: &LabConfig) -> Result<(), Failure> {
    let Ok(limit) = process::raise_descriptor_limit() else { return Ok(()) };
    let needed = config.descriptors();
    if limit >= needed {
        return Ok(());
    }
    let what = format!("this run needs up to {needed} open files, and only {limit} are allowed here");
    Err(Failure::new(Exit::Usage, what).help(format!("fewer --flows, or first type: ulimit -n {needed}")))
}

fn store(file: JsonFile, run: &Run) -> Result<(), Failure> {
    let document = json::render(run).map_err(|error| Failure::new(Exit::NotWritten, error))?;
    file.write(&document)
}

fn find_shaper(config: &LabConfig) -> Result<Option<ShaperProgram>, Failure> {
    if !config.arms.contains(&Arm::On) {
        return Ok(None);
    }
    ShaperProgram::find().map(Some).map_err(|error| shaper_failure(&error))
}

fn measure(config: &LabConfig, shaper: Option<&ShaperProgram>) -> Result<Run, Failure> {
    let (started, started_wall) = (clock::now(), clock::wall_now());
    // A process can enter a user namespace only while it has one thread: the line comes before everything else.
    let emulator = Emulator::start(&line(config)).map_err(|error| emulator_failure(&error))?;
    let cancel = cancelled_by_signals()?;
    let mut bench = Bench::new(config, emulator, Arc::clone(&cancel), started)?;
    let mut phases = Vec::new();
    let mut said = None;
    for &arm in &config.arms {
        match shaper.filter(|_| arm == Arm::On) {
            None => phases.extend(bench.measure_arm(arm, None)?),
            Some(program) => {
                let mut process = bench.start_shaper(program)?;
                phases.extend(bench.measure_arm(arm, Some(&mut process))?);
                said = Some(process.stop().map_err(|error| shaper_failure(&error))?);
            }
        }
    }
    let warnings = bench.finish(&phases);
    let parts =
        document::Parts { started_wall, duration: clock::now() - started, phases, shaper: said, warnings };
    Ok(document::assemble(config, shaper, parts))
}

fn line(config: &LabConfig) -> EmulatorConfig {
    let direction = |rate: Rate, seed: u64| LinkConfig {
        rate: Some(rate),
        delay: config.rtt / 2,
        jitter: config.jitter,
        loss: config.loss,
        queue: QueueLimit::Time(config.buffer),
        seed,
    };
    let seed = config.seed.wrapping_mul(2);
    EmulatorConfig { up: direction(config.up, seed), down: direction(config.down, seed.wrapping_add(1)) }
}

fn emulator_failure(error: &EmulatorError) -> Failure {
    let message = error.to_string();
    // A refusal brings its own advice, after this mark.
    match message.split_once("\nhelp: ") {
        Some((what, help)) => Failure::new(Exit::Forbidden, what).help(help),
        None => Failure::new(Exit::Forbidden, message),
    }
}

fn shaper_failure(error: &ShaperError) -> Failure {
    let failure = Failure::new(Exit::Shaper, error);
    match error {
        ShaperError::Interrupted => Failure::interrupted(),
        ShaperError::Missing(_) => failure.help(
            "build both programs with `cargo build --release`, or measure the unshaped line alone with --shaper off",
        ),
        _ => failure.help("the unshaped line alone can be measured with --shaper off"),
    }
}
