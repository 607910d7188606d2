//! From the arguments to settings in which nothing is left open.

use crate::ShaperError;
use crate::args::{Args, WorkerSettings};
use crate::classify::PortRange;
use engine::Overhead;
use platform::privilege::{PrivilegeError, check_packet_rules};
use platform::route::{self, Interface, Prefix};
use std::ffi::OsString;
use std::path::PathBuf;
use units::{Bytes, Rate};

/// Complete settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rate of the upload.
    pub rate: Rate,
    /// Interface to shape.
    pub interface: Interface,
    /// What the line adds to each IP packet.
    pub overhead: Overhead,
    /// Ports of the flows that come first.
    pub game_ports: Vec<PortRange>,
    /// What such a flow may have waiting.
    pub priority_limit: Bytes,
    /// Whether pure ACKs queue like all else.
    pub shape_acks: bool,
    /// Whether packets to the own network are shaped too.
    pub shape_lan: bool,
    /// File to log to.
    pub log: Option<PathBuf>,
}

/// Checks the arguments against this machine, before anything is changed.
///
/// # Errors
/// What is wrong with them, or missing here.
pub fn resolve(args: &Args) -> Result<Config, ShaperError> {
    let rate = args.rate_mbps.expect("clap requires it without a subcommand");
    let interface = choose_interface(args.interface.as_deref())?;
    if let Some(speed) = route::link_speed(&interface).filter(|&speed| rate >= speed) {
        return Err(ShaperError::AboveLink { rate, speed, interface: interface.name });
    }
    check_packet_rules().map_err(explain_privilege)?;
    Ok(Config {
        rate,
        interface,
        overhead: args.link_overhead(),
        game_ports: args.game_port.clone(),
        priority_limit: Bytes::new(args.prio_kb * 1_000),
        shape_acks: args.shape_acks,
        shape_lan: args.shape_lan,
        log: args.log.clone(),
    })
}

fn choose_interface(name: Option<&str>) -> Result<Interface, ShaperError> {
    let interfaces = route::interfaces()?;
    let existing = || interfaces.iter().map(|i| i.name.clone()).filter(|name| name != "lo").collect();
    let Some(name) = name else {
        return route::default_interface()?
            .ok_or_else(|| ShaperError::NoDefaultRoute { existing: existing() });
    };
    match interfaces.iter().find(|interface| interface.name == name) {
        Some(interface) if interface.is_loopback => Err(ShaperError::Loopback { name: name.to_owned() }),
        Some(interface) => Ok(interface.clone()),
        None => Err(ShaperError::UnknownInterface { name: name.to_owned(), existing: existing() }),
    }
}

fn explain_privilege(error: PrivilegeError) -> ShaperError {
    match error {
        PrivilegeError::Missing => ShaperError::NoPrivilege { command: shell_command(std::env::args_os()) },
        PrivilegeError::NoNfTables(error) => ShaperError::KernelLacks {
            what: "the kernel has no packet rules (nf_tables)",
            reason: error.to_string(),
            modules: "nf_tables",
        },
        PrivilegeError::Other(error) => error.into(),
    }
}

/// The words as one would type them to a shell; what is no UTF-8 is shown as well as can be.
fn shell_command(words: impl IntoIterator<Item = OsString>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=+:,@%".contains(c);
    let quoted = |word: OsString| {
        let word = word.to_string_lossy().into_owned();
        let needs_none = !word.is_empty() && word.chars().all(is_plain);
        if needs_none { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

impl Config {
    /// What the worker must know, with the queue that the rules name, if there are some yet.
    pub fn worker_settings(&self, queue: Option<u16>) -> WorkerSettings {
        WorkerSettings {
            rate_bits: self.rate.as_bits_per_s(),
            overhead: self.overhead,
            mtu: self.interface.mtu_bytes,
            game_port: self.game_ports.clone(),
            prio_bytes: self.priority_limit.get(),
            shape_acks: self.shape_acks,
            queue,
        }
    }

    /// Destinations that are not shaped at this moment: link-local, multicast and broadcast addresses, and the
    /// networks that the interface reaches without a gateway. Those of the routes change with them.
    ///
    /// # Errors
    /// When the kernel refuses to list the routes.
    pub fn bypass(&self) -> Result<Vec<Prefix>, ShaperError> {
        if self.shape_lan {
            return Ok(Vec::new());
        }
        let mut prefixes: Vec<_> = FIXED_BYPASS
            .iter()
            .map(|&(address, bits)| Prefix::new(address.parse().expect("the constants are addresses"), bits))
            .collect();
        let interfaces = route::interfaces()?;
        if let Some(now) = interfaces.iter().find(|i| i.name == self.interface.name) {
            let connected = route::connected_prefixes(now)?;
            prefixes.extend(
                connected.into_iter().filter(|prefix| !prefixes.contains(prefix)).collect::<Vec<_>>(),
            );
        }
        Ok(prefixes)
    }
}

/// Link-local (RFC 3927, RFC 4291 section 2.5.6), multicast (RFC 5771, RFC 4291 section 2.7), limited broadcast
/// (RFC 919). Directed broadcast is within the connected networks.
const FIXED_BYPASS: [(&str, u8); 5] =
    [("169.254.0.0", 16), ("224.0.0.0", 4), ("255.255.255.255", 32), ("fe80::", 10), ("ff00::", 8)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_type_again_is_quoted_for_the_shell() {
        let command = |words: &[&str]| shell_command(words.iter().map(OsString::from));
        assert_eq!(command(&["/opt/shaper", "--rate-mbps=1.5"]), "/opt/shaper --rate-mbps=1.5");
        assert_eq!(command(&["--log", "a b;rm x"]), "--log 'a b;rm x'");
        assert_eq!(command(&["it's", "", "$x"]), r"'it'\''s' '' '$x'");
    }
}
