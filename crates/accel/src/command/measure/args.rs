//! `accel measure` as typed.

use crate::names::DEFAULT_DOMAIN;
use crate::run::Phase;
use crate::targets::HostPort;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use units::parse_span;

/// Examples for the help.
pub const MEASURE_EXAMPLES: &str = "\
Examples:
  accel measure                            idle latency to three public services and the gateway
  accel measure game.example:27015         to a server of your choice
  accel measure --load HOST --token T      idle and loaded, against `accel serve` on HOST
  accel measure --load HOST --token T --phases idle,upload --seconds 60 --json run.json

The load comes from `accel serve` on another machine beyond the line that is to be measured.";

/// `accel measure`.
#[derive(Clone, Debug, Args)]
pub struct MeasureArgs {
    /// Whom to probe: host, host:port, address or URL (port 443 if none). Without it: three public services
    #[arg(value_name = "TARGET")]
    pub targets: Vec<HostPort>,
    /// Load the line with `accel serve` on this host (port 24470 if none); it becomes a target too
    #[arg(long, value_name = "HOST[:PORT]")]
    pub load: Option<HostPort>,
    /// What `accel serve` printed; also from the environment, as ACCEL_TOKEN
    #[arg(long, value_name = "TOKEN", requires = "load")]
    pub token: Option<String>,
    /// Phases to measure, in their usual order. Without it: all with --load, idle without
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub phases: Vec<PhaseName>,
    /// Measured part of each phase, in seconds
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Start of each loaded phase that is not measured (such as 4s)
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_span)]
    pub ramp: Duration,
    /// Bulk flows per loaded direction, 1 to 64
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub flows: u32,
    /// Congestion control of the bulk flows at both ends. Without it: cubic where it is open to you, else the system's own
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Mean time between two handshakes with one's own server (foreign ones get ten a second at most)
    #[arg(long, value_name = "TIME", default_value = "25ms", value_parser = parse_span)]
    pub period: Duration,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// Do not probe the gateway
    #[arg(long)]
    pub no_gateway: bool,
    /// Do not probe the public services; the far end of the load alone
    #[arg(long, requires = "load")]
    pub no_default_targets: bool,
    /// Time name resolution with this domain: it, and random labels under it that no cache can know
    #[arg(long, value_name = "NAME", default_value = DEFAULT_DOMAIN, value_parser = parse_domain)]
    pub dns: String,
    /// Do not time name resolution
    #[arg(long, conflicts_with = "dns")]
    pub no_dns: bool,
    /// End the load when it has moved so much (such as 500MB, 2GB)
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_size)]
    pub max_data: u64,
    /// Do not ask before a load moves its data
    #[arg(short, long)]
    pub yes: bool,
    /// Seed of the probe schedules
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Write the run document with every sample to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// A phase as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Nothing
    Idle,
    /// Bulk flows to here
    Download,
    /// Bulk flows from here
    Upload,
    /// Both
    Bidirectional,
}

impl From<PhaseName> for Phase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Idle => Self::Idle,
            PhaseName::Download => Self::Download,
            PhaseName::Upload => Self::Upload,
            PhaseName::Bidirectional => Self::Bidirectional,
        }
    }
}

/// A domain name with room for a label in front of it.
fn parse_domain(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let fits = text.len() <= 230 && text.trim_end_matches('.').split('.').all(is_label);
    fits.then(|| text.to_owned()).ok_or_else(|| format!("'{text}' is not a domain name"))
}

/// Bytes from `500kB`, `20MB`, `1.5GB`; powers of ten.
fn parse_size(text: &str) -> Result<u64, String> {
    let refusal = || format!("'{text}' is not a size: write 500MB or 2GB");
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refusal)?;
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(refusal()),
    };
    let bytes = number.parse::<f64>().map_err(|_| refusal())? * factor;
    if (1e5..=1e15).contains(&bytes) { Ok(bytes as u64) } else { Err(format!("{text}: 100kB to 1000TB")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_names() {
        for good in ["google.com", "localhost", "a.b-c.example."] {
            assert!(parse_domain(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a..b", "-x.com", "a b", "x/y"] {
            assert!(parse_domain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("1.5gb"), Ok(1_500_000_000));
        for text in ["500", "MB", "5 bytes", "-1MB", "1..5GB", "0MB", "9999999TB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
