//! The sub-commands: each resolves, runs and hands back text; only `main` prints.

pub mod classify;
pub mod compare;
pub mod history;
mod json_file;
pub mod lab;
pub mod measure;
pub mod offline;
mod progress;
pub mod report;
pub mod serve;
mod signals;
pub mod summary;

use crate::args::{Cli, Command};
use crate::render::text::Style;
use clap::CommandFactory;
use std::fmt;

/// How the program ends. The numbers are documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// The run failed.
    Failed = 1,
    /// A setting makes no sense (clap uses the same number).
    Usage = 2,
    /// The shaper is missing, did not start or ended.
    Shaper = 3,
    /// The run document could not be written.
    NotWritten = 4,
    /// The system does not allow the emulated line.
    Forbidden = 5,
    /// A file of samples cannot be read, is cut or corrupt, or of a format or version that is not known.
    Unreadable = 6,
    /// The samples in a file make no sense: negative, no number, not in time order, twice, or none.
    BadSamples = 7,
    /// Ctrl-C and its like: 128 + SIGINT, as shells have it.
    Interrupted = 130,
}

/// Why a command did not do all that was asked: what happened, and what to type next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What happened, to what.
    pub what: String,
    /// What to do, where there is something to do.
    pub help: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(exit: Exit, what: impl fmt::Display) -> Self {
        Self { exit, what: what.to_string(), help: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(self, help: impl fmt::Display) -> Self {
        Self { help: Some(help.to_string()), ..self }
    }

    /// The end by a signal.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted; the emulated line and the shaper are gone")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accel: {}", self.what)?;
        self.help.iter().try_for_each(|help| write!(f, "\nhelp: {help}"))
    }
}

/// What a command leaves to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// For stdout.
    pub text: String,
    /// For stderr, with the exit code; a run may have a result and still have failed to store it.
    pub failure: Option<Failure>,
}

impl From<Failure> for Report {
    fn from(failure: Failure) -> Self {
        Self { text: String::new(), failure: Some(failure) }
    }
}

/// Carries out one command.
pub fn run(command: Command, style: Style) -> Report {
    match command {
        Command::Lab(args) => lab::run(args, style).unwrap_or_else(Report::from),
        Command::Classify(args) => classify::run(&args).unwrap_or_else(Report::from),
        Command::Summary(args) => summary::run(&args).unwrap_or_else(Report::from),
        Command::Compare(args) => compare::run(&args).unwrap_or_else(Report::from),
        Command::Measure(args) => measure::run(&args, style).unwrap_or_else(Report::from),
        Command::History(args) => history::run(&args).unwrap_or_else(Report::from),
        Command::Report(args) => report::run(&args, style).unwrap_or_else(Report::from),
        Command::Serve(args) => serve::run(&args).unwrap_or_else(Report::from),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "accel", &mut script);
            Report { text: String::from_utf8_lossy(&script).into_owned(), failure: None }
        }
        Command::Man => manual(),
    }
}

fn manual() -> Report {
    let mut page = Vec::new();
    match clap_mangen::Man::new(Cli::command()).render(&mut page) {
        Ok(()) => Report { text: String::from_utf8_lossy(&page).into_owned(), failure: None },
        Err(error) => Failure::new(Exit::Failed, error).into(),
    }
}
