//! Sequence numbers, which wrap (RFC 9293 section 3.4).

/// Farther apart than the largest window (RFC 7323 section 2.2), two numbers do not belong to one stream.
const MAX_WINDOW: u32 = 1 << 30;

/// Whether `a` comes before `b`, for numbers less than 2^31 apart.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Whether `a` comes before `b` or is the same.
pub(super) const fn is_at_most(a: u32, b: u32) -> bool {
    !is_before(b, a)
}

/// Whether both can lie in one window.
pub(super) const fn are_near(a: u32, b: u32) -> bool {
    let distance = a.wrapping_sub(b);
    distance <= MAX_WINDOW || distance.wrapping_neg() <= MAX_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        for base in [0_u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0] {
            assert!(is_before(base, base.wrapping_add(32)));
            assert!(!is_before(base.wrapping_add(32), base));
            assert!(!is_before(base, base) && is_at_most(base, base));
            assert!(are_near(base, base.wrapping_sub(32)) && are_near(base, base.wrapping_add(1 << 30)));
            assert!(!are_near(base, base.wrapping_add(1 << 31)));
        }
    }
}
