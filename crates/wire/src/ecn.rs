//! Explicit Congestion Notification: reading the codepoint and marking a packet (RFC 3168 section 5).

use crate::checksum;

/// The ECN codepoint, the low two bits of the IPv4 TOS byte or the IPv6 traffic class (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The transport does not understand marks; congestion is signalled by a drop.
    #[default]
    NotEct,
    /// ECN-capable, used by L4S (RFC 9331).
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion experienced: some queue on the path marked it.
    Ce,
}

impl Ecn {
    /// The codepoint in the low two bits of `byte`.
    pub const fn from_bits(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a mark reaches the sender, so that no drop is needed.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Sets Congestion Experienced in the IP header at the start of `packet` and corrects the IPv4 header checksum.
/// Gives `false` and changes nothing if the packet is not ECN-capable, not IP or too short.
///
/// Safe on packets whose transport checksum is not ready (GSO): no transport checksum covers these bits.
pub fn set_ce(packet: &mut [u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => set_ce_ipv4(packet),
        Some(6) => set_ce_ipv6(packet),
        _ => false,
    }
}

fn set_ce_ipv4(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<20>() else { return false };
    if !Ecn::from_bits(header[1]).is_capable() {
        return false;
    }
    let old = u16::from_be_bytes([header[0], header[1]]);
    let new = old | 0b11;
    let stored = u16::from_be_bytes([header[10], header[11]]);
    header[1] |= 0b11;
    if old != new {
        header[10..12].copy_from_slice(&checksum::incremental(stored, old, new).to_be_bytes());
    }
    true
}

/// The traffic class straddles bytes 0 and 1; its ECN bits are bits 5 and 4 of byte 1 (RFC 8200 section 3).
fn set_ce_ipv6(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<40>() else { return false };
    if !Ecn::from_bits(header[1] >> 4).is_capable() {
        return false;
    }
    header[1] |= 0b11 << 4;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checksum, summarize};
    use proptest::prelude::*;

    fn ipv4(tos: u8) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, 20, 7, 7, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        let sum = checksum::full(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn an_ect_packet_is_marked_and_its_checksum_stays_right() {
        for tos in 0..=255 {
            let mut packet = ipv4(tos);
            assert_eq!(set_ce(&mut packet), tos & 3 != 0, "tos {tos}");
            assert_eq!(checksum::full(&packet), 0, "tos {tos}");
            assert_eq!(packet[1] & !3, tos & !3, "the DSCP stays");
            let expected = if tos & 3 == 0 { Ecn::NotEct } else { Ecn::Ce };
            assert_eq!(summarize(&packet).map(|s| s.ecn), Ok(expected));
        }
    }

    #[test]
    fn ipv6_is_marked_between_traffic_class_and_flow_label() {
        let mut packet = [0_u8; 40];
        packet[0..2].copy_from_slice(&[0x6a, 0x5b]); // traffic class 0xa5: ECT(1), flow label from 0xb on
        packet[6] = 59;
        assert!(set_ce(&mut packet));
        assert_eq!(packet[0..2], [0x6a, 0x7b]);
        packet[1] = 0x0b; // Not-ECT
        assert!(!set_ce(&mut packet));
        assert_eq!(packet[1], 0x0b);
    }

    proptest! {
        #[test]
        fn marking_never_panics_and_touches_no_byte_beyond_the_header(
            mut packet in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let before = packet.clone();
            let marked = set_ce(&mut packet);
            if !marked {
                prop_assert_eq!(&packet, &before);
            }
            prop_assert_eq!(packet.get(12..), before.get(12..));
        }
    }
}
