//! What both IP versions say about a packet.

use crate::Ecn;
use core::net::IpAddr;

/// The network layer of one packet.
pub(crate) struct IpHeader<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ecn: Ecn,
    /// Whole packet in bytes as the header states it; 0 where the length does not fit the field (RFC 2675 and
    /// super-packets beyond 64 KB).
    pub stated_bytes: u32,
    /// IP header with options or extension headers.
    pub header_bytes: u32,
    /// Protocol of `payload`.
    pub protocol: u8,
    /// The packet is one of several fragments.
    pub fragment: bool,
    /// The captured bytes behind the IP header; empty when the capture was cut within it.
    pub payload: &'a [u8],
}
