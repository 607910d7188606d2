//! Which packets come first: the marks that the user gave, and pure ACKs.

use engine::Class;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use wire::{Summary, protocol};

/// Ports as they are typed: `27015` or `27000-27050`. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("'{text}' is no port; write one such as 27015, or a range such as 27000-27050")),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

/// Tells a packet's class.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    /// Ports of marked flows, of either end: a game's own port, or that of its server.
    pub game_ports: Vec<PortRange>,
    /// Pure ACKs queue like all else.
    pub shape_acks: bool,
}

impl Classifier {
    /// The class of a packet. A fragment has no ports and is never marked.
    #[inline]
    pub fn class(&self, packet: &Summary) -> Class {
        if packet.tcp.is_some_and(|segment| segment.is_pure_ack()) && !self.shape_acks {
            return Class::Ack;
        }
        if !self.game_ports.is_empty() && self.is_marked(packet) { Class::Priority } else { Class::Normal }
    }

    fn is_marked(&self, packet: &Summary) -> bool {
        let ports = [packet.flow.source_port, packet.flow.destination_port];
        let has_ports = matches!(packet.protocol, protocol::UDP | protocol::TCP | protocol::UDP_LITE);
        has_ports && self.game_ports.iter().any(|range| ports.iter().any(|port| range.0.contains(port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(text: &str) -> PortRange {
        text.parse().unwrap()
    }

    /// An IPv4 packet from port 40000 to `destination_port`, with a TCP header of the given flags or a UDP header.
    fn packet(number: u8, destination_port: u16, flags: u8, payload: u16) -> Summary {
        let header: u16 = if number == protocol::TCP { 20 } else { 8 };
        let mut bytes = vec![0_u8; 40];
        (bytes[0], bytes[8], bytes[9]) = (0x45, 64, number);
        bytes[2..4].copy_from_slice(&(20 + header + payload).to_be_bytes());
        bytes[20..22].copy_from_slice(&40_000_u16.to_be_bytes());
        bytes[22..24].copy_from_slice(&destination_port.to_be_bytes());
        (bytes[32], bytes[33]) = (0x50, flags);
        wire::summarize(&bytes).unwrap()
    }

    #[test]
    fn a_port_of_either_end_marks_a_flow() {
        let classifier =
            Classifier { game_ports: vec![ports("27000-27050"), ports("40000")], shape_acks: false };
        assert_eq!(classifier.class(&packet(17, 27_015, 0, 100)), Class::Priority);
        let by_server = Classifier { game_ports: vec![ports("27000-27050")], ..Classifier::default() };
        assert_eq!(by_server.class(&packet(17, 27_050, 0, 100)), Class::Priority);
        assert_eq!(by_server.class(&packet(17, 27_051, 0, 100)), Class::Normal);
        let by_own = Classifier { game_ports: vec![ports("40000")], ..Classifier::default() };
        assert_eq!(by_own.class(&packet(6, 443, 0x18, 100)), Class::Priority);
        assert_eq!(by_own.class(&packet(1, 443, 0, 100)), Class::Normal, "ICMP has no ports");
        assert_eq!(Classifier::default().class(&packet(17, 27_015, 0, 100)), Class::Normal);
    }

    #[test]
    fn pure_acks_are_a_class_of_their_own_unless_they_are_to_be_shaped() {
        let mut classifier = Classifier { game_ports: vec![ports("40000")], ..Classifier::default() };
        assert_eq!(classifier.class(&packet(6, 443, 0x10, 0)), Class::Ack);
        assert_eq!(classifier.class(&packet(6, 443, 0x11, 0)), Class::Priority, "a FIN is none");
        classifier.shape_acks = true;
        assert_eq!(classifier.class(&packet(6, 443, 0x10, 0)), Class::Priority);
    }

    #[test]
    fn ports_are_read_as_they_are_printed() {
        for text in ["1", "27015", "27000-27050", "65535"] {
            assert_eq!(ports(text).to_string(), text);
        }
        assert_eq!(ports("5-5").to_string(), "5");
        for text in ["", "0", "-1", "65536", "10-5", "1-", "http", "1-2-3", "0-5"] {
            let error = text.parse::<PortRange>().unwrap_err();
            assert!(error.contains("27000-27050"), "{text}: {error}");
        }
    }
}
