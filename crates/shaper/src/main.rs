//! `shaper`: keeps the queue of an upload short. See `shaper --help`.

use clap::Parser;
use shaper::args::{Args, Command};
use shaper::command::replay::{self, ReplayArgs};
use shaper::{config, supervisor, worker};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        Some(Command::Replay(settings)) => return replay(settings),
        Some(Command::Worker(settings)) => worker::run(settings),
        None => config::resolve(&args).and_then(|config| supervisor::run(&config)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say("error", &error);
            if let Some(help) = error.help() {
                say("help", &help);
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn replay(args: &ReplayArgs) -> ExitCode {
    match replay::run(args) {
        Ok((text, exit_code)) => {
            // A reader that has seen enough closes the pipe.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(exit_code)
        }
        Err(error) => {
            say("error", &error);
            ExitCode::FAILURE
        }
    }
}

/// One line on standard error. `eprintln!` would panic where nobody reads it, and hide the exit code.
fn say(word: &str, what: &dyn Display) {
    drop(writeln!(std::io::stderr(), "{word}: {what}"));
}
