//! The command line as typed.

use crate::command::classify::ClassifyArgs;
use crate::command::compare::CompareArgs;
use crate::command::history::HistoryArgs;
use crate::command::measure::{MEASURE_EXAMPLES, MeasureArgs};
use crate::command::report::{REPORT_EXAMPLES, ReportArgs};
use crate::command::serve::{SERVE_EXAMPLES, ServeArgs};
use crate::command::summary::SummaryArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use units::{Rate, Ratio, parse_span};

const EXIT_CODES: &str = "\
Exit codes:
    0  the run ended and everything asked for was written
    1  the run failed
    2  the command line was not understood or makes no sense
    3  the shaper is missing, did not start or ended during the run
    4  a file could not be written (after a run, the table is still printed)
    5  this system does not allow the emulated line; the message says what to type
    6  a file cannot be read, is cut or corrupt, or of an unknown format or version
    7  the samples in a file make no sense (negative, NaN, unsorted, twice, none)
  130  interrupted by Ctrl-C, SIGTERM or SIGHUP; nothing is left behind";

const LAB_EXAMPLES: &str = "\
Examples:
  accel lab                            20 Mbit/s up, 100 down, without and with the shaper
  accel lab --quick                    the same in less than 30 s, without p99
  accel lab --up 5mbit --down 50mbit   a slower line
  accel lab --cc bbr --flows 1         one BBR flow instead of four CUBIC flows
  accel lab --shaper off --json run.json
                                       only the unshaped line, every sample into run.json";

/// Measures latency under load and says how sure it is of every number.
#[derive(Debug, Parser)]
#[command(name = "accel", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the shaper does to a bloated line, on an emulated one
    ///
    /// Builds an emulated line in network namespaces, with this machine's own kernel TCP on both ends, measures idle,
    /// upload, download and bidirectional phases without and with the shaper and prints one table and one verdict.
    /// Needs neither root (where unprivileged user namespaces are allowed) nor the Internet.
    #[command(after_help = format!("{LAB_EXAMPLES}\n\n{EXIT_CODES}"))]
    Lab(LabArgs),
    /// Name what made the tail of recorded samples: a queue, loss, both, spikes, two routes
    Classify(ClassifyArgs),
    /// Percentiles, loss and jitter of recorded samples with their intervals
    Summary(SummaryArgs),
    /// Two recorded runs side by side; a description, not a verdict
    Compare(CompareArgs),
    /// Measure latency, jitter, loss and goodput of a real path, idle and under load
    ///
    /// Needs no privilege. Every figure comes with its 95 % interval. Without a load server of your own only the idle line
    /// is measured.
    #[command(after_help = format!("{MEASURE_EXAMPLES}\n\n{EXIT_CODES}"))]
    Measure(MeasureArgs),
    /// Show a run document again: table, HTML page with plots, Markdown, CSV, flent and Prometheus files
    ///
    /// Works offline from the document alone.
    #[command(after_help = format!("{REPORT_EXAMPLES}\n\n{EXIT_CODES}"))]
    Report(ReportArgs),
    /// Keep run documents in your data folder and show how the line did over time
    History(HistoryArgs),
    /// Be the far end of a measurement: load and echoes by TCP and UDP
    ///
    /// Needs no privilege. Off this machine it wants a token, printed at the start; it answers no datagram of anybody
    /// who has not shown it.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// `accel lab`. Values may start with a hyphen, so that `--jitter -1ms` is refused for what it is.
#[derive(Clone, Debug, Args)]
pub struct LabArgs {
    /// Rate of the line towards the server (such as 20mbit, 1.5gbit, 500kbit)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, default_value = "20mbit")]
    pub up: Rate,
    /// Rate of the line towards the client
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, default_value = "100mbit")]
    pub down: Rate,
    /// Two-way delay of the empty line (such as 20ms, 0.5s), below one second
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "20ms", value_parser = parse_span)]
    pub rtt: Duration,
    /// Size of the FIFO in each direction, as time at the line's rate
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "500ms", value_parser = parse_span)]
    pub buffer: Duration,
    /// Random loss in each direction
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value = "0%")]
    pub loss: Ratio,
    /// Random extra delay in each direction, up to this; packets keep their order, so those close together come near it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "0ms", value_parser = parse_span)]
    pub jitter: Duration,
    /// Bulk flows per loaded direction, 1 to 256
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "4")]
    pub flows: u32,
    /// Congestion control of the bulk flows at both ends
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: String,
    /// Arms to measure
    #[arg(long, value_enum, default_value = "both")]
    pub shaper: ShaperArms,
    /// Rate of the shaper as a share of --up
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value = "95%")]
    pub shaper_rate: Ratio,
    /// Seed of the line's loss and jitter and of the probe schedule
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "1")]
    pub seed: u64,
    /// Cut the phases short: at most 30 s in all, no p99
    #[arg(long)]
    pub quick: bool,
    /// Write the run document with every sample to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Which arms a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShaperArms {
    /// Only without the shaper
    Off,
    /// Only with the shaper
    On,
    /// Without, then with the shaper
    Both,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
