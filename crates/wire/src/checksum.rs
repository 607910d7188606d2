//! The Internet checksum, computed afresh (RFC 1071) and after a change of one word (RFC 1624).

/// The checksum of `bytes` as it is stored in a header: the one's complement of the one's complement sum of
/// all big-endian 16-bit words, an odd last byte padded with zero (RFC 1071 section 1). Over data that
/// already contains its correct checksum the result is 0.
pub fn full(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// The checksum after one 16-bit word changed from `old_word` to `new_word`: HC' = ~(~HC + ~m + m'),
/// RFC 1624 section 3, equation 3, which unlike equation 4 never produces a wrong zero.
pub fn incremental(checksum: u16, old_word: u16, new_word: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old_word) + u64::from(new_word))
}

/// The plain sum of the 16-bit words; 2^48 words would be needed to overflow it.
fn sum(bytes: &[u8]) -> u64 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let words: u64 = pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum();
    words + odd.first().map_or(0, |&last| u64::from(last) << 8)
}

/// Adds the carries back in until 16 bits are left.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        assert_eq!(full(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(full(&[]), 0xffff);
        assert_eq!(full(&[0xab]), !0xab00);
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        // Equation 2 of RFC 1071 gives 0xffff here; the right answer is 0.
        assert_eq!(incremental(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn changing_a_word_equals_computing_afresh(
            mut words in prop::collection::vec(any::<u16>(), 2..40), at in any::<prop::sample::Index>(), new: u16,
        ) {
            let bytes = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
            words[0] |= 1; // a header is never all zero (its version is not), which keeps the two zeros apart
            let at = 1 + at.index(words.len() - 1);
            let (before, old) = (full(&bytes(&words)), words[at]);
            words[at] = new;
            prop_assert_eq!(incremental(before, old, new), full(&bytes(&words)));
        }
    }
}
