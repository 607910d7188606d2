//! The command line, as typed.

use crate::classify::PortRange;
use crate::command::replay::ReplayArgs;
use clap::{Args as ArgGroup, Parser, Subcommand};
use engine::{Framing, Overhead};
use std::path::PathBuf;
use units::Rate;

const EXAMPLES: &str = "\
Examples:
  sudo shaper --rate-mbps 19            shape the upload of the default route's interface
  sudo shaper --rate-mbps 19 --interface eth0
  sudo shaper --rate-mbps 38 --overhead pppoe-ptm --interface ppp0
  sudo shaper --rate-mbps 19 --game-port 27015

Give about 95 % of the upload rate that the line really has: the queue can only be kept short here if
packets leave here more slowly than the next device could take them. `accel` measures the line.

Packets to the own network (on-link, link-local, multicast) are not shaped; loopback never is.
Ctrl-C ends shaping; the packet rules vanish with the program, however it ends.

Exit codes:
  0  ended by SIGTERM, SIGINT, SIGHUP or SIGQUIT, everything removed
  1  failed while running; traffic flows unshaped
  2  wrong arguments, unknown interface, or a rate above the link's
  3  no privilege (CAP_NET_ADMIN in this network namespace)
  4  another shaper has this interface
  5  the kernel lacks something (the message names the module)
  6  the worker failed twice; traffic flows unshaped";

/// Keeps the queue of an upload short: FlowQueue-CoDel and a pacer, in front of the line's own queue.
#[derive(Debug, Parser)]
#[command(name = "shaper", version, after_help = EXAMPLES)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Rate to shape the upload to, in Mbit/s (or with a unit: 900kbit, 19mbit).
    #[arg(long, value_name = "RATE", value_parser = parse_rate, required = true, allow_hyphen_values = true)]
    pub rate_mbps: Option<Rate>,

    /// Interface that leads to the Internet [default: that of the default route, below any VPN].
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// What the line adds to each IP packet: bytes (negative if it carries fewer) or a name as cake has it, such as
    /// pppoe-ptm, pppoe-llcsnap, docsis, ethernet; with commas: ethernet,ether-vlan.
    #[arg(long, value_name = "NAME|BYTES", default_value_t = Overhead::NONE, allow_negative_numbers = true)]
    pub overhead: Overhead,

    /// The line carries packets in ATM cells (ADSL).
    #[arg(long, group = "framing")]
    pub atm: bool,

    /// The line adds a byte to each 64 (VDSL2).
    #[arg(long, group = "framing")]
    pub ptm: bool,

    /// The line does neither, whatever the name given to --overhead says.
    #[arg(long, group = "framing")]
    pub noatm: bool,

    /// Smallest packet of the line in bytes, overhead included.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=256))]
    pub mpu: Option<u32>,

    /// Serve flows of this port, at either end, before all others (repeatable).
    #[arg(long, value_name = "PORT[-PORT]")]
    pub game_port: Vec<PortRange>,

    /// What such a flow may have waiting, in KB, before it is served like any other [at most 20 ms of the rate].
    #[arg(long, value_name = "KB", default_value_t = 6)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub prio_kb: u64,

    /// Let pure TCP acknowledgements queue like all else, instead of sending them at once.
    #[arg(long)]
    pub shape_acks: bool,

    /// Shape packets to the own network and multicast too.
    #[arg(long)]
    pub shape_lan: bool,

    /// Append events and status lines to this file.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Something else than shaping.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the program does beside shaping, and what it calls itself with.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Analyses a capture, and says what the shaper would have done with it.
    Replay(ReplayArgs),
    /// The process that handles packets; started by the supervisor, never by hand.
    #[command(hide = true)]
    Worker(WorkerSettings),
}

/// All that the worker must know.
#[derive(ArgGroup, Clone, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Rate of the link in bit/s.
    #[arg(long)]
    pub rate_bits: u64,
    /// What the link adds to each IP packet.
    #[arg(long, allow_negative_numbers = true)]
    pub overhead: Overhead,
    /// Largest IP packet of the interface.
    #[arg(long)]
    pub mtu: u32,
    /// Ports of marked flows.
    #[arg(long)]
    pub game_port: Vec<PortRange>,
    /// The priority tier's limit in bytes.
    #[arg(long)]
    pub prio_bytes: u64,
    /// Pure ACKs are shaped.
    #[arg(long)]
    pub shape_acks: bool,
    /// NFQUEUE number; a free one is taken without it.
    #[arg(long)]
    pub queue: Option<u16>,
}

impl WorkerSettings {
    /// The command line that gives these settings.
    pub fn to_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "worker".to_owned(),
            format!("--rate-bits={}", self.rate_bits),
            format!("--overhead={}", self.overhead),
            format!("--mtu={}", self.mtu),
            format!("--prio-bytes={}", self.prio_bytes),
        ];
        arguments.extend(self.game_port.iter().map(|ports| format!("--game-port={ports}")));
        arguments.extend(self.shape_acks.then(|| "--shape-acks".to_owned()));
        arguments.extend(self.queue.map(|number| format!("--queue={number}")));
        arguments
    }
}

impl Args {
    /// What a packet costs on the line, from all the flags that say so.
    pub fn link_overhead(&self) -> Overhead {
        let framing = match (self.atm, self.ptm, self.noatm) {
            (true, ..) => Framing::Atm,
            (_, true, _) => Framing::Ptm,
            (.., true) => Framing::Plain,
            _ => self.overhead.framing,
        };
        Overhead { framing, mpu: self.mpu.unwrap_or(self.overhead.mpu), ..self.overhead }
    }
}

/// A bare number is Mbit/s, as the flag's name says; with a unit it is what it says.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let is_bare = text.trim().ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let with_unit = if is_bare { format!("{}mbit", text.trim()) } else { text.to_owned() };
    let rate: Rate = with_unit.parse().map_err(|error: units::ParseRateError| error.to_string())?;
    if rate < engine::MIN_RATE {
        return Err(format!("{rate} is too slow to shape; the least is {}", engine::MIN_RATE));
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn refusal(arguments: &[&str]) -> String {
        Args::try_parse_from(std::iter::once(&"shaper").chain(arguments)).unwrap_err().to_string()
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn rates_are_mbit_unless_they_say_otherwise() {
        for (text, rate) in [
            ("19", Rate::mbit_per_s(19)),
            ("0.9", Rate::kbit_per_s(900)),
            ("900kbit", Rate::kbit_per_s(900)),
            ("1gbit", Rate::mbit_per_s(1000)),
        ] {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
        }
    }

    #[test]
    fn bad_rates_are_refused_with_advice() {
        assert!(refusal(&["--rate-mbps", "30mbps"]).contains("write 30mbit if you mean bits"));
        assert!(refusal(&["--rate-mbps", "0"]).contains("out of range"));
        assert!(refusal(&["--rate-mbps", "0.001"]).contains("too slow to shape"));
        assert!(refusal(&["--rate-mbps", "-3"]).contains("out of range"));
        for text in ["", "fast", "nan", "inf", "1e3", "19 19"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert!(refusal(&[]).contains("--rate-mbps"));
    }

    #[test]
    fn the_flags_of_the_line_go_over_its_name() {
        let overhead = |arguments: &[&str]| {
            let all = ["shaper", "--rate-mbps", "19"].iter().chain(arguments);
            Args::try_parse_from(all).unwrap().link_overhead().to_string()
        };
        assert_eq!(overhead(&[]), "0");
        assert_eq!(overhead(&["--overhead", "-14"]), "-14");
        assert_eq!(overhead(&["--overhead", "pppoe-llcsnap"]), "40,atm");
        assert_eq!(overhead(&["--overhead", "pppoe-llcsnap", "--noatm"]), "40");
        assert_eq!(overhead(&["--overhead", "18", "--ptm", "--mpu", "64"]), "18,mpu=64,ptm");
        assert_eq!(overhead(&["--overhead", "ethernet,ether-vlan", "--atm", "--mpu=0"]), "42,atm");
        assert!(refusal(&["--rate-mbps", "19", "--atm", "--ptm"]).contains("cannot be used with"));
        assert!(refusal(&["--rate-mbps", "19", "--overhead", "pppoe"]).contains("pppoe-llcsnap"));
        assert!(refusal(&["--rate-mbps", "19", "--game-port", "0"]).contains("27000-27050"));
    }

    #[test]
    fn worker_settings_survive_their_command_line() {
        let settings = WorkerSettings {
            rate_bits: 19_000_000,
            overhead: "-14,mpu=64,atm".parse().unwrap(),
            mtu: 1492,
            game_port: vec!["27015".parse().unwrap(), "1-9".parse().unwrap()],
            prio_bytes: 6_000,
            shape_acks: true,
            queue: Some(7),
        };
        let arguments = std::iter::once("shaper".to_owned()).chain(settings.to_arguments());
        let Some(Command::Worker(read)) = Args::parse_from(arguments).command else { panic!("no worker") };
        assert_eq!(read, settings);
    }
}
