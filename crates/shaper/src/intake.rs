//! From a captured packet to what the engine must know of it.

use crate::classify::Classifier;
use engine::{Class, Packet};
use platform::datapath::Captured;
use wire::{Ecn, FlowKey, Salt, summarize_sized};

/// Describes packets to the engine.
#[derive(Clone, Debug)]
pub struct Intake {
    /// Keeps senders from choosing flows that collide.
    salt: Salt,
    /// Largest IP packet on the interface, in bytes.
    mtu_bytes: u32,
    classifier: Classifier,
    /// The last packet's flow with its hash: packets come in bursts of one flow, and hashing is a third of the work.
    last: Option<(FlowKey, u64)>,
}

impl Intake {
    /// An intake for an interface of `mtu_bytes`. The salt should be random and secret.
    pub const fn new(salt: Salt, mtu_bytes: u32, classifier: Classifier) -> Self {
        Self { salt, mtu_bytes, classifier, last: None }
    }

    /// What the engine must know of the packet. One that is no IP packet belongs to flow 0.
    #[inline]
    pub fn describe<H>(&mut self, captured: &Captured<'_, H>) -> Packet<H>
    where
        H: Copy,
    {
        let Ok(summary) = summarize_sized(captured.head, captured.bytes) else {
            return Packet {
                handle: captured.handle,
                flow: 0,
                bytes: captured.bytes,
                segment_bytes: 0,
                header_bytes: 0,
                ecn: Ecn::NotEct,
                class: Class::Normal,
            };
        };
        Packet {
            handle: captured.handle,
            flow: self.hash(summary.flow),
            bytes: captured.bytes,
            segment_bytes: self.segment_bytes(captured.bytes),
            header_bytes: summary.header_bytes,
            // What cannot be marked is dropped like a packet whose sender knows no ECN.
            ecn: if captured.can_mark { summary.ecn } else { Ecn::NotEct },
            class: self.classifier.class(&summary),
        }
    }

    #[inline]
    fn hash(&mut self, flow: FlowKey) -> u64 {
        if let Some((last, hash)) = self.last
            && last == flow
        {
            return hash;
        }
        let hash = flow.hash(&self.salt);
        self.last = Some((flow, hash));
        hash
    }

    /// Size of the packets that a super-packet becomes on the wire. The kernel does not tell the segment size (it keeps
    /// gso_size to itself), so full-size segments are assumed; a path with a smaller MSS is charged too few headers
    /// (at MSS 1360 instead of 1448: 0.2 %).
    #[inline]
    fn segment_bytes(&self, bytes: u32) -> u16 {
        if bytes > self.mtu_bytes { u16::try_from(self.mtu_bytes).unwrap_or(u16::MAX) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intake() -> Intake {
        Intake::new(Salt([1, 2]), 1500, Classifier::default())
    }

    /// An IPv4 packet with a UDP header, ECT(0), whole length `bytes`.
    fn head(bytes: u16) -> [u8; 28] {
        let mut head = [0; 28];
        (head[0], head[1], head[8], head[9]) = (0x45, 2, 64, 17);
        head[2..4].copy_from_slice(&bytes.to_be_bytes());
        head[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        head[20..24].copy_from_slice(&[0, 1, 0, 2]);
        head
    }

    fn described(bytes: u16, can_mark: bool) -> Packet<u32> {
        let head = head(bytes);
        intake().describe(&Captured { handle: 9, head: &head, bytes: bytes.into(), can_mark })
    }

    #[test]
    fn a_super_packet_is_charged_segment_by_segment() {
        assert_eq!(described(1500, true).segment_bytes, 0);
        assert_eq!(described(1501, true).segment_bytes, 1500);
        assert_eq!(described(2000, true).header_bytes, 28);
    }

    #[test]
    fn ecn_counts_only_where_it_can_be_marked() {
        assert_eq!(described(100, true).ecn, Ecn::Ect0);
        assert_eq!(described(100, false).ecn, Ecn::NotEct);
    }

    #[test]
    fn a_remembered_hash_is_the_flows_own() {
        let mut intake = intake();
        let mut hash = |last_octet: u8| {
            let mut head = head(100);
            head[19] = last_octet;
            intake.describe(&Captured { handle: 0, head: &head, bytes: 100, can_mark: true }).flow
        };
        let (a, b) = (hash(1), hash(2));
        assert_ne!(a, b);
        assert_eq!([hash(1), hash(1), hash(2)], [a, a, b]);
    }

    #[test]
    fn what_is_no_ip_packet_is_still_a_packet() {
        for head in [&[][..], &[0xff; 40], &[0x45, 0, 0]] {
            let packet = intake().describe(&Captured { handle: 1, head, bytes: 77, can_mark: true });
            assert_eq!((packet.flow, packet.bytes, packet.segment_bytes), (0, 77, 0));
        }
    }
}
