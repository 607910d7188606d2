//! One packet in a few numbers.

use crate::ip::IpHeader;
use crate::transport::{self, Transport};
use crate::{Ecn, FlowKey, TcpSegment, ipv4, ipv6};
use std::fmt;

/// What the shaper needs to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Addresses, ports and protocol; ports are 0 for fragments and for protocols without ports.
    pub flow: FlowKey,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// The whole packet from its IP header on, however much of it was captured.
    pub packet_bytes: u32,
    /// IP header (with options or extension headers) and transport header: what each segment of a super-packet
    /// repeats. Never more than `packet_bytes`.
    pub header_bytes: u16,
    /// IP protocol number of the transport.
    pub protocol: u8,
    /// Set for an unfragmented TCP packet whose header was captured.
    pub tcp: Option<TcpSegment>,
    /// The packet is a fragment, also the first one.
    pub fragment: bool,
}

/// Why bytes are not an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Shorter than the fixed header.
    Truncated {
        /// Bytes of the fixed header.
        needed: usize,
        /// Bytes at hand.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    Version(u8),
    /// An IPv4 header length below 20 bytes.
    HeaderLength {
        /// The stated length.
        bytes: usize,
    },
    /// A packet that claims to be shorter than its own header.
    PacketLength {
        /// The stated length of the packet.
        stated: u32,
        /// The length of its header.
        header: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, have } => {
                write!(f, "an IP header takes {needed} bytes, only {have} were captured")
            }
            Self::Version(version) => write!(f, "IP version {version} is neither 4 nor 6"),
            Self::HeaderLength { bytes } => write!(f, "an IPv4 header of {bytes} bytes is impossible"),
            Self::PacketLength { stated, header } => {
                write!(f, "a packet of {stated} bytes cannot hold its header of {header} bytes")
            }
        }
    }
}

impl std::error::Error for WireError {}

/// Reads the IP packet that starts at the first byte of `bytes`. The capture may be cut (128 bytes hold every
/// usual header) or padded: lengths come from the headers. Where the header states none (super-packets beyond
/// 64 KB), the captured length counts; [`summarize_sized`] knows better.
///
/// # Errors
/// When the bytes are no IP packet. What cannot be read behind a sound IP header is no error: such a packet
/// belongs to the flow of its addresses and protocol.
pub fn summarize(bytes: &[u8]) -> Result<Summary, WireError> {
    let ip = parse_ip(bytes)?;
    let packet_bytes = match ip.stated_bytes {
        0 => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        stated => stated,
    };
    Ok(describe(&ip, packet_bytes))
}

/// Like [`summarize`] for a packet whose true length is known from elsewhere, as the kernel tells it for a
/// super-packet.
///
/// # Errors
/// As [`summarize`].
#[inline]
pub fn summarize_sized(bytes: &[u8], packet_bytes: u32) -> Result<Summary, WireError> {
    Ok(describe(&parse_ip(bytes)?, packet_bytes))
}

#[inline]
pub(crate) fn parse_ip(bytes: &[u8]) -> Result<IpHeader<'_>, WireError> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => ipv4::parse(bytes),
        Some(6) => ipv6::parse(bytes),
        Some(version) => Err(WireError::Version(version)),
        None => Err(WireError::Truncated { needed: 20, have: 0 }),
    }
}

#[inline]
fn describe(ip: &IpHeader<'_>, packet_bytes: u32) -> Summary {
    let transport =
        if ip.fragment { Transport::default() } else { transport::parse(ip.protocol, ip.payload) };
    let header_bytes = ip.header_bytes.saturating_add(transport.header_bytes).min(packet_bytes);
    let payload_bytes = packet_bytes - header_bytes;
    Summary {
        flow: FlowKey {
            source: ip.source,
            destination: ip.destination,
            source_port: transport.source_port,
            destination_port: transport.destination_port,
            protocol: ip.protocol,
        },
        ecn: ip.ecn,
        packet_bytes,
        header_bytes: u16::try_from(header_bytes).unwrap_or(u16::MAX),
        protocol: ip.protocol,
        tcp: transport.tcp.map(|tcp| TcpSegment { payload_bytes, ..tcp }),
        fragment: ip.fragment,
    }
}
