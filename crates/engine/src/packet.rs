//! A packet as the engine sees it.

use crate::Overhead;
use wire::Ecn;

/// How the caller's classifier marks a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// Served in its flow's turn.
    #[default]
    Normal,
    /// Of a flow that the user marked: served first while the flow keeps within the tier's bounds.
    Priority,
    /// A pure TCP acknowledgement (`wire::TcpSegment::is_pure_ack`): skips the queue while the link has room.
    Ack,
}

/// What the engine must know of a packet, and the caller's handle for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<H> {
    /// The caller's name for the packet; given back unchanged.
    pub handle: H,
    /// Salted hash of the flow, `wire::FlowKey::hash`.
    pub flow: u64,
    /// IP bytes of the whole packet, of all segments of a super-packet (GSO) together.
    pub bytes: u32,
    /// IP bytes of each segment that a super-packet becomes on the wire, its header included; the last one may be
    /// shorter. 0 for an ordinary packet.
    pub segment_bytes: u16,
    /// IP and transport header in bytes, which each segment of a super-packet repeats.
    pub header_bytes: u16,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// What the caller's classifier found.
    pub class: Class,
}

impl<H> Packet<H> {
    /// Whether the packet is cut into several on its way out.
    #[inline]
    pub(crate) fn is_super(&self) -> bool {
        self.segment_bytes != 0 && self.bytes > u32::from(self.segment_bytes)
    }

    /// Bytes that the packet takes on the link: each segment of a super-packet has its own header and pays its own
    /// `overhead`. At least 1.
    #[inline]
    pub(crate) fn wire_bytes(&self, overhead: &Overhead) -> u32 {
        if self.is_super() { self.super_bytes(overhead) } else { overhead.charge(self.bytes) }
    }

    /// The sum over all segments.
    #[inline(never)]
    fn super_bytes(&self, overhead: &Overhead) -> u32 {
        let header = u32::from(self.header_bytes).min(self.bytes);
        let payload = self.bytes - header;
        let per_segment = u32::from(self.segment_bytes).saturating_sub(header).max(1);
        let full = u64::from(payload / per_segment) * u64::from(overhead.charge(header + per_segment));
        let last = match payload % per_segment {
            0 => 0,
            rest => u64::from(overhead.charge(header + rest)),
        };
        u32::try_from((full + last).max(1)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(bytes: u32, segment_bytes: u16, header_bytes: u16) -> Packet<()> {
        Packet {
            handle: (),
            flow: 0,
            bytes,
            segment_bytes,
            header_bytes,
            ecn: Ecn::NotEct,
            class: Class::Normal,
        }
    }

    fn named(text: &str) -> Overhead {
        text.parse().unwrap()
    }

    #[test]
    fn a_super_packet_pays_for_every_segment() {
        // 40 segments of 1448 bytes behind 52 bytes of headers: 40 * 1500 on the wire.
        assert_eq!(packet(40 * 1448 + 52, 1_500, 52).wire_bytes(&Overhead::NONE), 40 * 1500);
        assert_eq!(packet(40 * 1448 + 52, 1_500, 52).wire_bytes(&Overhead::of_bytes(38)), 40 * 1538);
        assert_eq!(packet(100, 0, 40).wire_bytes(&Overhead::NONE), 100);
    }

    #[test]
    fn each_segment_fills_its_own_cells_and_the_last_one_is_shorter() {
        // Three full segments, and one of 100 bytes of data: 152 + 40 bytes are four cells.
        let packet = packet(3 * 1_448 + 100 + 52, 1_500, 52);
        assert_eq!(packet.wire_bytes(&named("pppoe-llcsnap")), 3 * 1_749 + 4 * 53);
        assert_eq!(packet.wire_bytes(&named("docsis")), 3 * 1_518 + 170);
    }

    #[test]
    fn the_smallest_packet_holds_for_the_last_segment() {
        let packet = packet(2 * 1_448 + 1 + 40, 1_488, 40);
        assert_eq!(packet.wire_bytes(&named("ethernet")), 2 * 1_526 + 84);
    }

    #[test]
    fn a_packet_of_one_segment_is_an_ordinary_one() {
        assert_eq!(packet(1_500, 1_500, 52).wire_bytes(&named("ethernet")), 1_538);
        assert!(!packet(1_500, 1_500, 52).is_super() && packet(1_501, 1_500, 52).is_super());
    }

    #[test]
    fn a_negative_overhead_never_makes_a_packet_free() {
        assert_eq!(packet(100, 0, 40).wire_bytes(&Overhead::of_bytes(-14)), 86);
        assert_eq!(packet(10, 0, 40).wire_bytes(&Overhead::of_bytes(i32::MIN)), 1);
        assert_eq!(packet(u32::MAX, 1, u16::MAX).wire_bytes(&Overhead::of_bytes(i32::MAX)), u32::MAX);
    }

    proptest! {
        #[test]
        fn a_super_packet_costs_what_its_segments_cost_one_by_one(
            payload in 1..70_000_u32, mss in 1..9_000_u16, header in 20..120_u16, name in 0..14_usize,
        ) {
            let overhead = named(Overhead::names().nth(name).unwrap());
            let packet = packet(payload + u32::from(header), mss + header, header);
            let mut left = payload;
            let mut sum = 0;
            while left > 0 {
                let part = left.min(mss.into());
                sum += overhead.charge(part + u32::from(header));
                left -= part;
            }
            prop_assert_eq!(packet.wire_bytes(&overhead), sum);
        }
    }
}
