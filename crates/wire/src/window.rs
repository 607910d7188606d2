//! Writing another receive window into a TCP segment.

use crate::checksum;
use crate::summary::parse_ip;
use crate::transport::protocol;

/// Where the window and the checksum stand in a TCP header (RFC 9293 section 3.1).
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
const HEADER_BYTES: usize = 20;

/// Writes `window`, unscaled, into the TCP header of the IP packet at the start of `packet` and corrects the checksum
/// (RFC 1624). Gives `false` and changes nothing if there is no whole TCP header.
///
/// Only for packets whose checksum is complete: where it is left to the hardware, the field holds the sum of
/// the pseudo-header alone, and this would spoil it.
pub fn set_window(packet: &mut [u8], window: u16) -> bool {
    let Ok(ip) = parse_ip(packet) else { return false };
    if ip.protocol != protocol::TCP || ip.fragment || ip.payload.len() < HEADER_BYTES {
        return false;
    }
    let start = packet.len() - ip.payload.len();
    let Some(header) = packet[start..].first_chunk_mut::<HEADER_BYTES>() else { return false };
    let word = |at: usize, header: &[u8; HEADER_BYTES]| u16::from_be_bytes([header[at], header[at + 1]]);
    let sum = checksum::incremental(word(CHECKSUM_AT, header), word(WINDOW_AT, header), window);
    header[WINDOW_AT..CHECKSUM_AT].copy_from_slice(&window.to_be_bytes());
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarize;
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    fn packet(v6: bool, window: u16, payload: &[u8]) -> Vec<u8> {
        let builder = if v6 {
            PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64)
        } else {
            PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64)
        };
        let mut bytes = Vec::new();
        builder.tcp(40_000, 443, 7, window).ack(9).write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let mut udp = Vec::new();
        PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64)
            .udp(1, 2)
            .write(&mut udp, &[0; 40])
            .unwrap();
        let mut fragment = packet(false, 100, &[1; 40]);
        fragment[6] |= 0x20; // more fragments
        let cut = packet(false, 100, &[])[..39].to_vec();
        for mut bytes in [udp, fragment, cut, Vec::new(), vec![0xff; 60]] {
            let before = bytes.clone();
            assert!(!set_window(&mut bytes, 1));
            assert_eq!(bytes, before);
        }
    }

    proptest! {
        #[test]
        fn the_window_is_new_and_the_checksum_right(
            v6: bool, old: u16, new: u16, payload in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut bytes = packet(v6, old, &payload);
            prop_assert!(set_window(&mut bytes, new));
            prop_assert_eq!(summarize(&bytes).unwrap().tcp.unwrap().window, new);
            let sliced = SlicedPacket::from_ip(&bytes).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
            let right = match sliced.net.unwrap() {
                etherparse::NetSlice::Ipv4(ip) => {
                    tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
                },
                etherparse::NetSlice::Ipv6(ip) => {
                    tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
                },
                _ => panic!("no IP"),
            };
            prop_assert_eq!(Ok(tcp.checksum()), right);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..100), window: u16) {
            let before = bytes.clone();
            if !set_window(&mut bytes, window) {
                prop_assert_eq!(bytes, before);
            }
        }
    }
}
