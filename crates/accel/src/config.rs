//! What a lab run will do, complete and checked: from here on no bad value exists.

use crate::args::{LabArgs, ShaperArms};
use crate::run::{Arm, Phase};
use std::path::PathBuf;
use std::time::Duration;
use units::{Bytes, Rate, Ratio};

/// IP bytes that one probe puts on the busier direction: SYN with options, ACK and RST, or SYN-ACK and RST, without
/// link headers (RFC 9293 section 3.1; 60 + 52 + 52).
const PROBE_BYTES: Bytes = Bytes::new(164);
/// Probes may take this share of the slower direction.
const PROBE_SHARE: f64 = 0.01;
const FASTEST_PROBES: Duration = Duration::from_millis(8);
/// A SYN without an answer is sent again after 1 s (RFC 6298 section 2).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest round trip of an empty line: above it SYNs are sent again although nothing was lost, and the probes would
/// tell nothing.
const LONGEST_ROUND_TRIP: Duration = Duration::from_millis(900);
/// Above this random loss a load of some flows is hardly ever set up in time: SYN and SYN-ACK must both arrive.
const MOST_LOSS_PERCENT: f64 = 20.0;
/// Above this rate the line, both ends, the load and the shaper compete for the processors.
const EMULATED_WELL: Rate = Rate::mbit_per_s(300);

/// A checked lab run.
#[derive(Clone, Debug, PartialEq)]
pub struct LabConfig {
    /// Rate towards the server.
    pub up: Rate,
    /// Rate towards the client.
    pub down: Rate,
    /// Two-way delay of the empty line.
    pub rtt: Duration,
    /// FIFO in each direction.
    pub buffer: Duration,
    /// Random loss in each direction.
    pub loss: Ratio,
    /// Random extra delay in each direction.
    pub jitter: Duration,
    /// Bulk flows per loaded direction.
    pub flows: u32,
    /// Congestion control of the bulk flows.
    pub congestion_control: String,
    /// Arms in the order in which they are measured.
    pub arms: Vec<Arm>,
    /// What the shaper is told.
    pub shaper_rate: Rate,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether the phases are cut short.
    pub quick: bool,
    /// Where the run document goes.
    pub json: Option<PathBuf>,
    /// How long the parts of a phase take.
    pub times: Times,
    /// Mean time between probes.
    pub probe_period: Duration,
    /// A probe without an answer for this long is late or lost.
    pub probe_timeout: Duration,
}

/// How long the parts of a phase take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// An idle phase.
    pub idle: Duration,
    /// Load that is not measured.
    pub ramp: Duration,
    /// Load that is measured.
    pub loaded: Duration,
    /// Silence after a load until both queues are empty, at most.
    pub drain: Duration,
}

/// A setting that makes no sense, with what would.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{flag} {reason}")]
pub struct BadSetting {
    /// The flag.
    pub flag: &'static str,
    /// What is wrong and what to type instead.
    pub reason: String,
}

impl LabConfig {
    /// Checks what was typed and fills in what follows from it. `available` are the kernel's congestion controls.
    ///
    /// # Errors
    /// For the first setting that makes no sense.
    pub fn resolve(args: LabArgs, available: &[String]) -> Result<Self, BadSetting> {
        check(&args, available)?;
        let slower = args.up.min(args.down);
        Ok(Self {
            up: args.up,
            down: args.down,
            rtt: args.rtt,
            buffer: args.buffer,
            loss: args.loss,
            jitter: args.jitter,
            flows: args.flows,
            congestion_control: args.cc,
            arms: match args.shaper {
                ShaperArms::Off => vec![Arm::Off],
                ShaperArms::On => vec![Arm::On],
                ShaperArms::Both => vec![Arm::Off, Arm::On],
            },
            shaper_rate: args.up.scaled(args.shaper_rate.get()),
            seed: args.seed,
            quick: args.quick,
            json: args.json,
            times: Times::of(args.quick, args.buffer + 2 * args.rtt + 2 * args.jitter),
            probe_period: (PROBE_BYTES / slower.scaled(PROBE_SHARE)).max(FASTEST_PROBES),
            probe_timeout: SYN_TIMEOUT + 2 * args.buffer + 2 * args.rtt + 2 * args.jitter,
        })
    }

    /// The share of the slower direction that the probes take.
    pub fn probe_load(&self) -> f64 {
        let probes = Rate::of(PROBE_BYTES, self.probe_period);
        probes.as_mbit_f64() / self.up.min(self.down).as_mbit_f64()
    }

    /// Whether a probe of this phase can meet so much queue that its SYN is sent again although nothing was lost.
    pub fn queues_exceed_syn_timeout(&self, phase: Phase) -> bool {
        let queues = u32::from(phase.loads_up()) + u32::from(phase.loads_down());
        self.buffer * queues + self.rtt + self.jitter * 2 >= SYN_TIMEOUT
    }

    /// The most descriptors that the run has open at once: both ends of all flows, and of the probes that a full line
    /// leaves without an answer.
    pub fn descriptors(&self) -> u64 {
        /// Queues, rings, pollers and timers of both ends, the standard streams, the shaper's pipes.
        const FIXED: u64 = 100;
        let unanswered = self.probe_timeout.as_nanos() / self.probe_period.as_nanos().max(1);
        4 * u64::from(self.flows) + 2 * unanswered as u64 + FIXED
    }

    /// What a reader should know before trusting the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.up.max(self.down) > EMULATED_WELL {
            warnings.push(format!(
                "above {EMULATED_WELL} the emulated line, both ends and the load compete for this machine's \
                 processors; see the instrument's line"
            ));
        }
        warnings
    }
}

impl Times {
    /// Four CUBIC flows fill a FIFO of 500 ms at 20 Mbit/s by some 50 ms a second once slow start has ended; the ramp
    /// is as long as 90 s for the whole run (30 s for a quick one) allow.
    const fn of(quick: bool, drain: Duration) -> Self {
        let ms = Duration::from_millis;
        if quick {
            Self { idle: ms(1_200), ramp: ms(1_600), loaded: ms(1_900), drain }
        } else {
            Self { idle: ms(5_000), ramp: ms(4_500), loaded: ms(6_000), drain }
        }
    }

    /// One arm with all its phases.
    pub fn arm(&self) -> Duration {
        self.idle + 3 * (self.ramp + self.loaded + self.drain)
    }
}

fn check(args: &LabArgs, available: &[String]) -> Result<(), BadSetting> {
    let ms = Duration::from_millis;
    let span = |flag, value: Duration, least: Duration, most: Duration| {
        let fits = (least..=most).contains(&value);
        bad_unless(fits, flag, || {
            format!("{value:?} is outside of what the lab emulates: {least:?} to {most:?}")
        })
    };
    for (flag, rate) in [("--up", args.up), ("--down", args.down)] {
        let (least, most) = (Rate::kbit_per_s(256), Rate::mbit_per_s(10_000));
        bad_unless((least..=most).contains(&rate), flag, || {
            format!("{rate} is outside of what the lab emulates: {least} to {most}")
        })?;
    }
    span("--rtt", args.rtt, ms(0), LONGEST_ROUND_TRIP)?;
    span("--buffer", args.buffer, ms(1), ms(10_000))?;
    span("--jitter", args.jitter, ms(0), (LONGEST_ROUND_TRIP - args.rtt) / 2)?;
    bad_unless(args.loss.as_percent() <= MOST_LOSS_PERCENT, "--loss", || {
        format!("{} leaves no line to measure; at most {MOST_LOSS_PERCENT} %", args.loss)
    })?;
    bad_unless((1..=256).contains(&args.flows), "--flows", || {
        format!("{} is not possible; 1 to 256 flows per direction", args.flows)
    })?;
    bad_unless(args.shaper_rate.as_percent() >= 1.0, "--shaper-rate", || {
        format!("{} would shape everything away; 1 to 100 % of --up, usually 95%", args.shaper_rate)
    })?;
    bad_unless(available.contains(&args.cc), "--cc", || {
        format!("'{}' is not available in this kernel; it has {}", args.cc, available.join(", "))
    })
}

fn bad_unless(good: bool, flag: &'static str, reason: impl FnOnce() -> String) -> Result<(), BadSetting> {
    if good { Ok(()) } else { Err(BadSetting { flag, reason: reason() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn resolve(arguments: &str) -> Result<LabConfig, BadSetting> {
        let words = ["accel", "lab"].into_iter().chain(arguments.split_whitespace());
        let Command::Lab(args) = Cli::try_parse_from(words).unwrap().command else { panic!("lab was typed") };
        LabConfig::resolve(args, &["cubic".to_owned(), "reno".to_owned()])
    }

    #[test]
    fn the_defaults_are_those_of_the_manual() {
        let config = resolve("").unwrap();
        assert_eq!((config.up, config.down), (Rate::mbit_per_s(20), Rate::mbit_per_s(100)));
        assert_eq!(config.arms, [Arm::Off, Arm::On]);
        assert_eq!(config.shaper_rate, Rate::mbit_per_s(19));
        assert_eq!(config.probe_period, FASTEST_PROBES);
        assert!(config.probe_load() < 0.01, "{}", config.probe_load());
        assert!(config.probe_timeout > SYN_TIMEOUT + Duration::from_secs(1));
    }

    #[test]
    fn a_run_keeps_to_its_time() {
        // Of 90 and 30 seconds; starting and ending the shaper and the load takes two or three more.
        assert!(2 * resolve("").unwrap().times.arm() <= Duration::from_secs(80));
        assert!(2 * resolve("--quick").unwrap().times.arm() <= Duration::from_secs(27));
    }

    #[test]
    fn no_setting_makes_probes_of_an_empty_line_look_lost() {
        for arguments in ["--rtt 1s", "--rtt 500ms --jitter 250ms", "--jitter 500ms"] {
            assert!(resolve(arguments).is_err(), "{arguments}");
        }
        for arguments in ["--rtt 900ms", "--rtt 500ms --jitter 200ms", "--buffer 10s"] {
            assert!(!resolve(arguments).unwrap().queues_exceed_syn_timeout(Phase::Idle), "{arguments}");
        }
    }

    #[test]
    fn queues_that_outlast_a_syn_are_known_by_phase() {
        let exceed = |arguments: &str| {
            let config = resolve(arguments).unwrap();
            Phase::ALL.map(|phase| config.queues_exceed_syn_timeout(phase))
        };
        assert_eq!(exceed("--buffer 400ms"), [false; 4]);
        assert_eq!(exceed(""), [false, false, false, true]);
        assert_eq!(exceed("--rtt 40ms --buffer 1s"), [false, true, true, true]);
    }

    #[test]
    fn slow_lines_get_fewer_probes() {
        let config = resolve("--up 1mbit").unwrap();
        assert!(config.probe_period > Duration::from_millis(100), "{:?}", config.probe_period);
        assert!(config.probe_load() <= 0.0101, "{}", config.probe_load());
    }

    #[test]
    fn settings_without_sense_are_refused_by_name() {
        for (arguments, flag) in [
            ("--buffer 0ms", "--buffer"),
            ("--buffer 60s", "--buffer"),
            ("--rtt 10s", "--rtt"),
            ("--jitter 5s", "--jitter"),
            ("--flows 0", "--flows"),
            ("--flows 257", "--flows"),
            ("--loss 90%", "--loss"),
            ("--up 1kbit", "--up"),
            ("--down 100gbit", "--down"),
            ("--shaper-rate 0%", "--shaper-rate"),
            ("--cc vegas", "--cc"),
        ] {
            assert_eq!(resolve(arguments).unwrap_err().flag, flag, "{arguments}");
        }
        assert!(resolve("--cc vegas").unwrap_err().reason.contains("it has cubic, reno"));
    }

    #[test]
    fn doubtful_settings_are_warned_of() {
        assert_eq!(resolve("--up 1gbit --buffer 100ms").unwrap().warnings().len(), 1);
        assert_eq!(resolve("--buffer 400ms").unwrap().warnings(), Vec::<String>::new());
    }
}
