//! Whom to measure: names as typed, the addresses they are pinned to for the whole run, the gateway.

mod gateway;
mod race;
mod resolve;

pub use gateway::{GATEWAY_PORTS, gateway};
pub use race::{Race, Unreached, race};
pub use resolve::{ResolveError, Resolved, resolve_all};

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// What is probed where nobody names a target: three services of three operators, each made to take connections from
/// everybody all day. By name, so that each resolves to its nearest site. The project's tests never use them.
pub const DEFAULT_TARGETS: [&str; 3] = ["one.one.one.one", "dns.google", "dns.quad9.net"];
/// What the gateway is called among the targets.
pub const GATEWAY_NAME: &str = "gateway";
/// Port of a target that names none: TLS, which every network lets through.
const DEFAULT_PORT: u16 = 443;

/// Which families of addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whichever answers first, the system's preference with a head start.
    #[default]
    Any,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
}

impl Family {
    /// Whether an address may be used.
    pub fn allows(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// A host and a port as typed: `host`, `host:port`, `1.2.3.4:80`, `[fd00::1]:80`, `fd00::1` or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// `None` when not typed.
    pub port: Option<u16>,
}

impl HostPort {
    /// The port, or the one that targets have.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(DEFAULT_PORT)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.port {
            Some(port) => f.pad(&format!("{host}:{port}")),
            None => f.pad(&host),
        }
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, scheme_port) = match text.split_once("://") {
            Some(("https", rest)) => (rest, Some(443)),
            Some(("http", rest)) => (rest, Some(80)),
            Some((scheme, _)) => return Err(format!("'{scheme}' is not http or https")),
            None => (text, None),
        };
        let authority =
            if scheme_port.is_some() { rest.split(['/', '?', '#']).next().unwrap_or("") } else { rest };
        let (host, port) = split_port(authority).ok_or_else(|| refusal(text))?;
        let is_name = |c: char| c.is_alphanumeric() || "-._".contains(c);
        let is_address = host.parse::<IpAddr>().is_ok();
        if host.is_empty()
            || host.len() > 253
            || host.starts_with('-')
            || !(is_address || host.chars().all(is_name))
        {
            return Err(refusal(text));
        }
        Ok(Self { host: host.to_owned(), port: port.or(scheme_port) })
    }
}

fn refusal(text: &str) -> String {
    format!("'{text}' is not a target: write host, host:port, 192.0.2.1:443, [2001:db8::1]:443 or a URL")
}

/// Host and port; `None` when there is something after the host that is no port.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let port = |digits: &str| digits.parse().ok().filter(|&port| port > 0);
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        return match after.strip_prefix(':') {
            Some(digits) => Some((host, Some(port(digits)?))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        // More than one colon: an IPv6 address without a port.
        Some((_, after)) if after.contains(':') => Some((text, None)),
        Some((host, digits)) => Some((host, Some(port(digits)?))),
        None => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_people_type_them() {
        for (text, host, port) in [
            ("host", "host", None),
            ("host.example:8443", "host.example", Some(8443)),
            ("198.18.0.1", "198.18.0.1", None),
            ("198.18.0.1:80", "198.18.0.1", Some(80)),
            ("fd00::1", "fd00::1", None),
            ("[fd00::1]", "fd00::1", None),
            ("[fd00::1]:53", "fd00::1", Some(53)),
            ("https://host/path?x=1", "host", Some(443)),
            ("http://host", "host", Some(80)),
            ("http://host:8080/", "host", Some(8080)),
        ] {
            let expected = HostPort { host: host.to_owned(), port };
            assert_eq!(text.parse::<HostPort>().as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!("[fd00::1]:53".parse::<HostPort>().unwrap().to_string(), "[fd00::1]:53");
        assert_eq!("host".parse::<HostPort>().unwrap().port(), 443);
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "host:",
            "host:0",
            "host:70000",
            "host:http",
            "[fd00::1",
            "[host]:1",
            "ftp://host",
            "a b",
            "-4",
            "h/x",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
        let long = "x".repeat(254);
        assert!(long.parse::<HostPort>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_typed_is_a_target_or_refused(text in "\\PC{0,40}") {
            if let Ok(target) = text.parse::<HostPort>() {
                assert_eq!(target.to_string().parse(), Ok(target));
            }
        }
    }

    #[test]
    fn the_defaults_are_targets() {
        assert!(DEFAULT_TARGETS.iter().all(|name| name.parse::<HostPort>().is_ok()));
    }
}
