//! `shaper replay FILE`: what a capture tells, and what the shaper would have done with it.

mod json;
mod source;
mod text;

use clap::Args;
use engine::{Overhead, ShaperConfig};
use lab::replay::{Replay, Report, Shaping, ShapingReport};
use source::Ending;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use units::Rate;

const EXAMPLES: &str = "\
Examples:
  shaper replay evening.pcap                        round trips, handshakes, ACKs, flows
  shaper replay evening.pcapng.gz --json
  shaper replay evening.pcap --rate-mbps 19         and how the shaper would have queued the upload

The senders of a capture do not react to drops or marks: the last form says what the queue would have met,
not how the transfers would have gone.

Exit codes:
  0  the whole file was read
  1  the file cannot be opened or read, or is no capture
  2  wrong arguments
  3  the file is damaged or cut; the packets before the damage count";

/// Analyses a capture (pcap or pcapng, also gzipped).
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The capture.
    pub file: PathBuf,

    /// Queue one side's packets at this rate, in Mbit/s (or with a unit), and say what happens to them.
    #[arg(long, value_name = "RATE", value_parser = crate::args::parse_rate)]
    pub rate_mbps: Option<Rate>,

    /// Whose packets are queued (repeatable) [default: the address that most packets have in common].
    #[arg(long, value_name = "ADDRESS", requires = "rate_mbps")]
    pub from: Vec<IpAddr>,

    /// What the line adds to each IP packet: bytes, or a name as cake has it, such as pppoe-ptm.
    #[arg(long, value_name = "NAME|BYTES", default_value_t = Overhead::NONE, allow_negative_numbers = true)]
    #[arg(requires = "rate_mbps")]
    pub overhead: Overhead,

    /// Show this many flows, the largest first [default: 20; all with --json].
    #[arg(long, value_name = "N")]
    pub flows: Option<usize>,

    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// All that is known when the file has been read.
pub struct Outcome {
    /// What the packets tell.
    pub report: Report,
    /// What the engine would have done, if asked.
    pub shaping: Option<(Rate, ShapingReport)>,
    /// What is wrong with the file.
    pub damage: Option<String>,
}

/// The command failed before there was anything to report.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file}: {reason}")]
pub struct ReplayError {
    file: String,
    reason: String,
}

/// Reads the file, once more for shaping, and gives what to print and the exit code.
///
/// # Errors
/// When the file cannot be read or is no capture at all.
pub fn run(args: &ReplayArgs) -> Result<(String, u8), ReplayError> {
    let outcome = analyse(args)?;
    let exit_code = if outcome.damage.is_some() { 3 } else { 0 };
    let text = if args.json {
        json::render(&outcome, args.flows.unwrap_or(usize::MAX))
    } else {
        text::render(&outcome, args.flows.unwrap_or(20))
    };
    Ok((text, exit_code))
}

/// Everything but the printing.
///
/// # Errors
/// As [`run`].
pub fn analyse(args: &ReplayArgs) -> Result<Outcome, ReplayError> {
    let mut replay = Replay::new();
    let ending = read(&args.file, |record| replay.push(record))?;
    let report = replay.finish();
    let shaping = match args.rate_mbps {
        Some(rate) => Some((rate, shape(args, rate, &report)?)),
        None => None,
    };
    let damage = match ending {
        Ending::Whole => None,
        Ending::Damaged(damage) => Some(damage),
    };
    Ok(Outcome { report, shaping, damage })
}

fn shape(args: &ReplayArgs, rate: Rate, report: &Report) -> Result<ShapingReport, ReplayError> {
    let from = if args.from.is_empty() { report.likely_observers() } else { args.from.clone() };
    let config = ShaperConfig { overhead: args.overhead, ..ShaperConfig::new(rate) };
    let mut shaping = Shaping::new(config, from);
    read(&args.file, |record| shaping.push(record))?;
    Ok(shaping.finish())
}

fn read(file: &Path, on_record: impl FnMut(&wire::capture::Record<'_>)) -> Result<Ending, ReplayError> {
    let fail = |error: io::Error| ReplayError { file: file.display().to_string(), reason: error.to_string() };
    source::read(file, on_record).map_err(fail)
}
