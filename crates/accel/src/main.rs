//! `accel`: parse, run, print.

use accel::args::Cli;
use accel::command::{self, Exit};
use accel::render::text::Style;
use clap::Parser;
use console::Term;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let report = command::run(cli.command, style());
    // A reader that went away (`accel lab | head -1`) is no failure of the run.
    drop(std::io::stdout().lock().write_all(report.text.as_bytes()));
    let Some(failure) = report.failure else { return ExitCode::from(Exit::Success as u8) };
    drop(writeln!(std::io::stderr(), "{failure}"));
    ExitCode::from(failure.exit as u8)
}

/// The terminal's width and whether it wants colours (NO_COLOR, CLICOLOR); a pipe or file gets 80 columns.
fn style() -> Style {
    let width = Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns));
    Style { width, colour: console::colors_enabled() }
}
