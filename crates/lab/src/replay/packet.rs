//! From a record of a capture to what is known of its IP packet.

use std::fmt;
use units::Timestamp;
use wire::capture::{LinkError, Record, network};
use wire::{SackBlocks, Summary, TcpFlags, WireError};

/// Why a record is no IP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skipped {
    /// Because of what stands in front of it.
    Link(LinkError),
    /// Its IP header is cut.
    IpHeaderCut,
    /// Its IP header cannot be.
    IpHeaderBroken,
    /// Where an IP packet should start stands another version.
    IpVersion(u8),
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(error) => error.fmt(f),
            Self::IpHeaderCut => write!(f, "cut within the IP header"),
            Self::IpHeaderBroken => write!(f, "broken IP header"),
            Self::IpVersion(version) => write!(f, "IP version {version}"),
        }
    }
}

impl From<WireError> for Skipped {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Truncated { .. } => Self::IpHeaderCut,
            WireError::Version(version) => Self::IpVersion(version),
            WireError::HeaderLength { .. } | WireError::PacketLength { .. } => Self::IpHeaderBroken,
        }
    }
}

/// An IP packet of a capture.
pub(super) struct Captured<'a> {
    pub time: Option<Timestamp>,
    /// VLANs and PPPoE session.
    pub tag: u64,
    pub summary: Summary,
    bytes: &'a [u8],
}

impl<'a> Captured<'a> {
    pub fn read(record: &Record<'a>) -> Result<Self, Skipped> {
        let network = network(record.link, record.bytes).map_err(Skipped::Link)?;
        let bytes = network.bytes;
        let frame_room = record.original_bytes.saturating_sub(network.link_header_bytes);
        let mut summary = if states_no_length(bytes) {
            wire::summarize_sized(bytes, frame_room)?
        } else {
            wire::summarize(bytes)?
        };
        if let Some(room) = network.room_bytes.filter(|&room| room < summary.packet_bytes) {
            summary = wire::summarize_sized(bytes, room)?;
        }
        Ok(Self { time: record.time, tag: network.tag, summary, bytes })
    }

    /// An acknowledgement and nothing else; a padded frame is still one, since lengths come from the IP header.
    pub fn is_pure_ack(&self) -> bool {
        const OTHERS: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        self.summary.tcp.is_some_and(|tcp| {
            tcp.payload_bytes == 0 && tcp.flags.has(TcpFlags::ACK) && tcp.flags.0 & OTHERS == 0
        })
    }

    /// The SACK blocks; looked for only where the header is long enough to hold one.
    pub fn sack_blocks(&self) -> SackBlocks {
        const SHORTEST: u16 = 20 + 20 + 10;
        if self.summary.header_bytes < SHORTEST || self.summary.tcp.is_none() {
            return SackBlocks::NONE;
        }
        wire::sack_blocks(self.bytes)
    }
}

/// An IPv4 packet captured before segmentation (TSO) may state length 0, as an IPv6 packet beyond 64 KB does: then
/// the captured frame's length counts.
fn states_no_length(bytes: &[u8]) -> bool {
    match *bytes {
        [first, _, 0, 0, ..] if first >> 4 == 4 => true,
        [first, _, _, _, 0, 0, 0, ..] if first >> 4 == 6 => true,
        _ => false,
    }
}
