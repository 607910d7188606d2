//! A packet as the engine sees it.

use wire::Ecn;

/// What the engine must know of a packet, and the caller's handle for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<H> {
    /// The caller's name for the packet; given back unchanged.
    pub handle: H,
    /// Salted hash of the flow, `wire::FlowKey::hash`.
    pub flow: u64,
    /// IP bytes of the whole packet, of all segments of a super-packet (GSO) together.
    pub bytes: u32,
    /// Packets that this becomes on the wire; 1 unless it is a super-packet. 0 counts as 1.
    pub segments: u16,
    /// IP and transport header in bytes, which each further segment of a super-packet repeats.
    pub header_bytes: u16,
    /// ECN codepoint.
    pub ecn: Ecn,
}

impl<H> Packet<H> {
    /// Bytes that the packet takes on the link: each segment of a super-packet has its own header and its own
    /// `overhead` in bytes (negative where the link carries less than the IP packet). At least 1.
    pub(crate) fn wire_bytes(&self, overhead: i32) -> u32 {
        let segments = i64::from(self.segments.max(1));
        let repeated = (segments - 1) * i64::from(self.header_bytes);
        let total = i64::from(self.bytes) + repeated + segments * i64::from(overhead);
        u32::try_from(total.max(1)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: u32, segments: u16, header_bytes: u16) -> Packet<()> {
        Packet { handle: (), flow: 0, bytes, segments, header_bytes, ecn: Ecn::NotEct }
    }

    #[test]
    fn a_super_packet_pays_for_every_segment() {
        // 40 segments of 1448 bytes behind 52 bytes of headers: 40 * 1500 on the wire.
        assert_eq!(packet(40 * 1448 + 52, 40, 52).wire_bytes(0), 40 * 1500);
        assert_eq!(packet(40 * 1448 + 52, 40, 52).wire_bytes(38), 40 * 1538);
        assert_eq!(packet(100, 0, 40).wire_bytes(0), 100);
    }

    #[test]
    fn a_negative_overhead_never_makes_a_packet_free() {
        assert_eq!(packet(100, 1, 40).wire_bytes(-14), 86);
        assert_eq!(packet(10, 1, 40).wire_bytes(i32::MIN), 1);
        assert_eq!(packet(u32::MAX, u16::MAX, u16::MAX).wire_bytes(i32::MAX), u32::MAX);
    }
}
