//! Selective acknowledgements of a TCP segment (RFC 2018).

use crate::summary::parse_ip;
use crate::transport::protocol;

/// The most blocks that fit into TCP's 40 bytes of options.
const MAX_BLOCKS: usize = 4;
const OPTION_SACK: u8 = 5;

/// The blocks of a SACK option: `[left, right)` edges in sequence numbers, in the order sent. The first one contains
/// the segment that triggered the acknowledgement (RFC 2018 section 4), or is a duplicate (RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_BLOCKS],
    count: usize,
}

impl SackBlocks {
    /// No blocks, as on most segments.
    pub const NONE: Self = Self { blocks: [(0, 0); MAX_BLOCKS], count: 0 };

    /// The given blocks; more than four are left out.
    pub fn new(blocks: &[(u32, u32)]) -> Self {
        let mut sack = Self::NONE;
        for (slot, block) in sack.blocks.iter_mut().zip(blocks) {
            *slot = *block;
            sack.count += 1;
        }
        sack
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..self.count).unwrap_or_default()
    }
}

/// The SACK blocks of the IP packet at the start of `bytes`; none where there is no TCP header with the option, or
/// where the capture was cut before it. Takes the options as the data offset bounds them.
pub fn sack_blocks(bytes: &[u8]) -> SackBlocks {
    let Ok(ip) = parse_ip(bytes) else { return SackBlocks::NONE };
    if ip.protocol != protocol::TCP || ip.fragment {
        return SackBlocks::NONE;
    }
    let header_bytes = ip.payload.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    find(ip.payload.get(20..header_bytes.min(ip.payload.len())).unwrap_or_default())
}

/// Walks the options; each turn consumes at least one byte.
fn find(mut options: &[u8]) -> SackBlocks {
    loop {
        match *options {
            [] | [0, ..] => return SackBlocks::NONE,
            [1, ref rest @ ..] => options = rest,
            [kind, length, ..] => {
                let Some((option, rest)) = options.split_at_checked(usize::from(length.max(2))) else {
                    return SackBlocks::NONE;
                };
                if kind == OPTION_SACK {
                    return edges(option.get(2..).unwrap_or_default());
                }
                options = rest;
            }
            [_] => return SackBlocks::NONE,
        }
    }
}

fn edges(bytes: &[u8]) -> SackBlocks {
    let mut sack = SackBlocks::NONE;
    for (slot, &[l0, l1, l2, l3, r0, r1, r2, r3]) in sack.blocks.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *slot = (u32::from_be_bytes([l0, l1, l2, l3]), u32::from_be_bytes([r0, r1, r2, r3]));
        sack.count += 1;
    }
    sack
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        packet.extend([0; 20]);
        packet[32] = ((5 + options.len().div_ceil(4)) as u8) << 4;
        packet.extend(options);
        packet.resize(packet.len().next_multiple_of(4), 0);
        packet
    }

    #[test]
    fn blocks_behind_other_options_are_found() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
        for edge in [100_u32, 200, 4_000_000_000, 5] {
            options.extend(edge.to_be_bytes());
        }
        let blocks = sack_blocks(&segment(&options));
        assert_eq!(blocks.as_slice(), [(100, 200), (4_000_000_000, 5)]);
        assert_eq!(blocks, SackBlocks::new(&[(100, 200), (4_000_000_000, 5)]));
    }

    #[test]
    fn no_option_no_blocks() {
        assert_eq!(sack_blocks(&segment(&[])), SackBlocks::NONE);
        assert_eq!(sack_blocks(&segment(&[0, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2])), SackBlocks::NONE);
        assert_eq!(sack_blocks(&segment(&[8, 255, 5])), SackBlocks::NONE);
        assert_eq!(sack_blocks(&[]), SackBlocks::NONE);
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic_or_hang(options in prop::collection::vec(any::<u8>(), 0..44), cut in 0..90_usize) {
            let packet = segment(&options);
            let blocks = sack_blocks(&packet[..cut.min(packet.len())]);
            prop_assert!(blocks.as_slice().len() <= MAX_BLOCKS);
        }
    }
}
