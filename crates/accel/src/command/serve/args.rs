//! `accel serve` as typed.

use clap::Args;
use std::net::SocketAddr;
use units::Rate;

/// Port of `accel serve` where none is named.
pub const SERVE_PORT: u16 = 24_470;

/// Examples for the help.
pub const SERVE_EXAMPLES: &str = "\
Examples:
  accel serve                             every address of this machine, port 24470, with a fresh token
  accel serve --listen 127.0.0.1:24470    this machine only; no token is wanted then
  accel serve --max-rate 200mbit          no client moves more than that
  ACCEL_TOKEN=... accel serve             a token of your own that no process list shows";

/// `accel serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Listen here (TCP and UDP); may be given several times. Without it: all addresses, port 24470
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// What clients must show, instead of a fresh token; also from the environment, as ACCEL_TOKEN
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Serve whoever comes, even off this machine
    #[arg(long, conflicts_with = "token")]
    pub no_token: bool,
    /// Connections served at once, 1 to 10000
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_connections: u32,
    /// Connections of one client (an IPv4 address or an IPv6 /64) at once
    #[arg(long, value_name = "N", default_value = "80", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_connections_per_client: u32,
    /// What one client may move each way; without it as much as the line takes
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Rate>,
}
