//! What a load will move, said and confirmed before it starts.

use super::plan::Plan;
use crate::command::{Exit, Failure};
use crate::run::Phase;
use std::io::{BufRead, IsTerminal, Write};

/// Says how much the run moves; asks on a terminal, refuses elsewhere, unless `--yes` was typed.
///
/// # Errors
/// When the answer is no, or nobody can be asked.
pub(super) fn confirm(plan: &Plan) -> Result<(), Failure> {
    if !plan.loads() {
        return Ok(());
    }
    let text = announcement(plan);
    let mut stderr = std::io::stderr().lock();
    // A closed stderr asks nobody.
    drop(writeln!(stderr, "{text}"));
    if plan.yes {
        return Ok(());
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::new(Exit::Usage, "a load moves much data, and there is no terminal to ask on")
            .help("add --yes, and --max-data SIZE for less"));
    }
    drop(write!(stderr, "Go on? [y/N] ").and_then(|()| stderr.flush()));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, "nothing was moved").help("--max-data SIZE sets a lower limit"))
}

fn announcement(plan: &Plan) -> String {
    let loaded = plan.phases.iter().filter(|&&phase| phase != Phase::Idle).count();
    let seconds = (plan.ramp + plan.measured).as_secs();
    format!(
        "This loads the line for {loaded} times {seconds} s with as much as it takes: {} on a line of 100 Mbit/s each \
         way, {} at the most (--max-data).",
        size(plan.bytes_at_100_mbit()),
        size(plan.max_data)
    )
}

/// `840 MB`, `1.9 GB`.
fn size(bytes: u64) -> String {
    let mb = bytes as f64 / 1e6;
    if mb < 1_000.0 { format!("{mb:.0} MB") } else { format!("{:.1} GB", mb / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_units_people_know() {
        assert_eq!([0, 840_400_000, 1_950_000_000].map(size), ["0 MB", "840 MB", "1.9 GB"]);
    }
}
