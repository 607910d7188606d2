//! `shaper`: keeps the queue of an upload short. See `shaper --help`.

use clap::Parser;
use shaper::args::{Args, Command};
use shaper::{config, supervisor, worker};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        Some(Command::Worker(settings)) => worker::run(settings),
        None => config::resolve(&args).and_then(|config| supervisor::run(&config)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(help) = error.help() {
                eprintln!("help: {help}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}
