//! What a run will do, complete and checked.

use super::args::{MeasureArgs, PhaseName};
use crate::command::serve::{SERVE_PORT, TOKEN_VARIABLE};
use crate::command::{Exit, Failure};
use crate::load::Token;
use crate::run::Phase;
use crate::targets::{DEFAULT_TARGETS, Family, HostPort};
use platform::tcp::TcpSocket;
use std::net::Ipv4Addr;
use std::time::Duration;
use units::display_ms;

/// The order of measuring: what loads the line least comes first, so that nothing trails into it.
const ORDER: [Phase; 4] = [Phase::Idle, Phase::Download, Phase::Upload, Phase::Bidirectional];
/// A SYN is sent again after 1, 2 (Linux) or 3 s: what has not answered by then is lost to whoever waits.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A checked run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) targets: Vec<HostPort>,
    pub(super) load: Option<LoadEnd>,
    pub(super) phases: Vec<Phase>,
    pub(super) family: Family,
    pub(super) gateway: bool,
    pub(super) ramp: Duration,
    pub(super) measured: Duration,
    pub(super) period: Duration,
    pub(super) seed: u64,
    /// The domain of name resolution; `None` = not timed.
    pub(super) domain: Option<String>,
    pub(super) max_data: u64,
    pub(super) yes: bool,
}

/// The far end of the load.
#[derive(Clone, Debug)]
pub(super) struct LoadEnd {
    pub(super) host: HostPort,
    pub(super) token: Option<Token>,
    pub(super) flows: u32,
    pub(super) congestion: String,
}

impl Plan {
    /// Checks what was typed. `available` are the kernel's congestion controls.
    pub(super) fn resolve(args: &MeasureArgs, available: &[String]) -> Result<Self, Failure> {
        check(args, available)?;
        let phases: Vec<Phase> = args.phases.iter().map(|&name| name.into()).collect();
        let wanted = |phase: &Phase| match (phases.is_empty(), args.load.is_some()) {
            (true, true) => true,
            (true, false) => *phase == Phase::Idle,
            (false, _) => phases.contains(phase),
        };
        Ok(Self {
            targets: targets(args),
            load: args.load.as_ref().map(|host| load_end(args, host)).transpose()?,
            phases: ORDER.into_iter().filter(wanted).collect(),
            family: match (args.ipv4, args.ipv6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
            gateway: !args.no_gateway,
            ramp: args.ramp,
            measured: Duration::from_secs(args.seconds.into()),
            period: args.period,
            seed: args.seed,
            domain: (!args.no_dns).then(|| args.dns.clone()),
            max_data: args.max_data,
            yes: args.yes,
        })
    }

    /// Whether any phase moves data.
    pub(super) fn loads(&self) -> bool {
        self.phases.iter().any(|&phase| phase != Phase::Idle)
    }

    /// Ramp and measured part of a phase.
    pub(super) fn length(&self, phase: Phase) -> Duration {
        if phase == Phase::Idle { self.measured } else { self.ramp + self.measured }
    }

    /// Bytes that the load moves on a line of 100 Mbit/s each way, in all.
    pub(super) fn bytes_at_100_mbit(&self) -> u64 {
        let ways = |phase: &Phase| u64::from(phase.loads_up()) + u64::from(phase.loads_down());
        let seconds = (self.ramp + self.measured).as_secs();
        self.phases.iter().map(|phase| ways(phase) * seconds * 12_500_000).sum()
    }
}

fn targets(args: &MeasureArgs) -> Vec<HostPort> {
    if !args.targets.is_empty() {
        return args.targets.clone();
    }
    let defaults = if args.no_default_targets { &[][..] } else { &DEFAULT_TARGETS[..] };
    // A test holds that all of them are targets.
    defaults.iter().filter_map(|name| name.parse().ok()).collect()
}

fn load_end(args: &MeasureArgs, host: &HostPort) -> Result<LoadEnd, Failure> {
    let typed = args.token.clone().or_else(|| std::env::var(TOKEN_VARIABLE).ok());
    let token = typed.filter(|text| !text.is_empty()).map(|text| text.parse::<Token>());
    let bad = |reason: String| usage(reason).help("copy what `accel serve` printed to --token");
    Ok(LoadEnd {
        host: HostPort { port: host.port.or(Some(SERVE_PORT)), ..host.clone() },
        token: token.transpose().map_err(bad)?,
        flows: args.flows,
        congestion: args.cc.clone().unwrap_or_else(usual_congestion),
    })
}

/// The usual loss-based one, which fills queues as most of the traffic does. Where an ordinary user may not choose it,
/// the system's own, by name, so that it is set at the far end too and printed.
fn usual_congestion() -> String {
    const USUAL: &str = "cubic";
    // Nothing is sent to this address.
    let own = || {
        let socket = TcpSocket::open((Ipv4Addr::LOCALHOST, 9).into())?;
        if socket.set_congestion(USUAL).is_ok() { Ok(USUAL.to_owned()) } else { socket.congestion() }
    };
    own().unwrap_or_else(|_: std::io::Error| USUAL.to_owned())
}

fn check(args: &MeasureArgs, available: &[String]) -> Result<(), Failure> {
    let loads = args.phases.iter().any(|&name| name != PhaseName::Idle);
    if loads && args.load.is_none() {
        return Err(usage("a loaded phase needs a load server").help(
            "start `accel serve` on a machine beyond the line, then give its name with --load HOST --token TOKEN",
        ));
    }
    if let Some(name) = args.cc.as_ref().filter(|name| !available.contains(name)) {
        let known = available.join(", ");
        return Err(usage(format!("--cc '{name}' is not available in this kernel; it has {known}")));
    }
    let (least, most) = (Duration::from_millis(10), Duration::from_secs(10));
    if !(least..=most).contains(&args.period) {
        let (period, least, most) = (display_ms(args.period), display_ms(least), display_ms(most));
        return Err(usage(format!("--period {period} is outside of {least} to {most}")));
    }
    if args.ramp > Duration::from_secs(60) {
        return Err(usage(format!("--ramp {} is more than a minute", display_ms(args.ramp))));
    }
    Ok(())
}

fn usage(what: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn resolve(arguments: &str) -> Result<Plan, Failure> {
        let words = ["accel", "measure"].into_iter().chain(arguments.split_whitespace());
        let Command::Measure(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("measure was typed")
        };
        Plan::resolve(&args, &["cubic".to_owned(), "reno".to_owned()])
    }

    #[test]
    fn without_a_load_server_only_idle_is_measured() {
        let plan = resolve("").unwrap();
        assert_eq!(
            (plan.phases.as_slice(), plan.targets.len(), plan.loads()),
            (&[Phase::Idle][..], 3, false)
        );
        let error = resolve("--phases upload").unwrap_err();
        assert!(error.to_string().contains("--load HOST --token"), "{error}");
        assert_eq!(resolve("host").unwrap().targets.len(), 1);
    }

    #[test]
    fn with_one_all_phases_are_measured_in_their_order() {
        let plan = resolve("--load far --no-default-targets --seconds 16").unwrap();
        assert_eq!(plan.phases, ORDER);
        assert_eq!(plan.load.as_ref().unwrap().host.port, Some(SERVE_PORT));
        assert_eq!(plan.targets, []);
        // Two single loads and one of both: four ways of 20 s at 12.5 MB/s.
        assert_eq!(plan.bytes_at_100_mbit(), 1_000_000_000);
        let some = resolve("--load far:7 --phases bidirectional,idle").unwrap();
        assert_eq!(some.phases, [Phase::Idle, Phase::Bidirectional]);
        assert_eq!(some.load.unwrap().host.port, Some(7));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (arguments, words) in [
            ("--load far --cc vegas", "it has cubic, reno"),
            ("--period 1ms", "--period 1.00 ms"),
            ("--load far --ramp 2000s", "--ramp"),
            ("--load far --token short", "8 to 64"),
        ] {
            let error = resolve(arguments).unwrap_err();
            assert_eq!(error.exit, Exit::Usage, "{arguments}");
            assert!(error.to_string().contains(words), "{arguments}: {error}");
        }
    }
}
