//! TCP settings of the two hosts: what a fast host of today has, and nothing remembered between phases.

use platform::namespace::{Namespace, set_sysctl};
use std::fmt;

/// (path below /proc/sys, value, why).
const SETTINGS: [(&str, &str); 7] = [
    // 32 MB: above rate x RTT with a full queue at 350 Mbit/s; the usual 4 to 6 MB would hold the sender back.
    ("net/ipv4/tcp_rmem", "4096 131072 33554432"),
    ("net/ipv4/tcp_wmem", "4096 65536 33554432"),
    // A connection must not start with what an earlier phase has learnt about the path.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Room for the probes' ports, which stay in TIME-WAIT for a minute.
    ("net/ipv4/ip_local_port_range", "10000 65535"),
    ("net/ipv4/tcp_tw_reuse", "1"),
    // No SYN cookies, no silently ignored SYN, however many handshakes come at once.
    ("net/core/somaxconn", "4096"),
    ("net/ipv4/tcp_max_syn_backlog", "4096"),
];

/// A setting that the system did not let us change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSetting {
    /// Path below /proc/sys.
    pub path: &'static str,
    /// What it would have been set to.
    pub value: &'static str,
    /// Why not.
    pub reason: String,
}

impl fmt::Display for RefusedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stays as it is instead of \"{}\": {}", self.path, self.value, self.reason)
    }
}

/// Applies what is permitted to each host and returns what was not, each setting once.
pub(super) fn apply(hosts: [&Namespace; 2]) -> Vec<RefusedSetting> {
    let mut refused: Vec<RefusedSetting> = hosts.iter().flat_map(|host| host.run(apply_here)).collect();
    refused.sort_by_key(|setting| setting.path);
    refused.dedup_by_key(|setting| setting.path);
    refused
}

fn apply_here() -> Vec<RefusedSetting> {
    let refusal = |&(path, value): &(&'static str, &'static str)| {
        let error = set_sysctl(path, value).err()?;
        Some(RefusedSetting { path, value, reason: error.to_string() })
    };
    SETTINGS.iter().filter_map(refusal).collect()
}
