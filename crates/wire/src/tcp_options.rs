//! The options of a TCP header (RFC 9293 section 3.1).

use crate::summary::parse_ip;
use crate::transport::protocol;

const OPTION_MSS: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 3;
const OPTION_MD5: u8 = 19;
const OPTION_AO: u8 = 29;
/// A larger shift means this one (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

/// What a connection's SYN and SYN-ACK say about the segments to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Largest segment that the sender of this header takes, in bytes of data (RFC 9293 section 3.7.1).
    pub max_segment_bytes: Option<u16>,
    /// By how many bits the sender's windows are shifted, at most 14 (RFC 7323 section 2.2).
    pub window_shift: Option<u8>,
    /// The segment is signed (RFC 2385, RFC 5925): nothing in it may be changed.
    pub signed: bool,
}

/// The options of the IP packet at the start of `bytes`; none where there is no TCP header, and as far as the capture
/// goes.
pub fn tcp_options(bytes: &[u8]) -> TcpOptions {
    let mut found = TcpOptions::default();
    for (kind, data) in option_bytes(bytes).map(walk).into_iter().flatten() {
        match (kind, data) {
            (OPTION_MSS, &[high, low]) => found.max_segment_bytes = Some(u16::from_be_bytes([high, low])),
            (OPTION_WINDOW_SCALE, &[shift]) => found.window_shift = Some(shift.min(MAX_SHIFT)),
            (OPTION_MD5 | OPTION_AO, _) => found.signed = true,
            _ => {}
        }
    }
    found
}

/// The captured bytes between the fixed TCP header and the data offset.
fn option_bytes(bytes: &[u8]) -> Option<&[u8]> {
    let ip = parse_ip(bytes).ok().filter(|ip| ip.protocol == protocol::TCP && !ip.fragment)?;
    let header_bytes = usize::from(ip.payload.get(12)? >> 4) * 4;
    ip.payload.get(20..header_bytes.min(ip.payload.len()))
}

/// Kind and data of each option; each step consumes at least one byte.
fn walk(mut options: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            match *options {
                [] | [0, ..] | [_] => return None,
                [1, ref rest @ ..] => options = rest,
                [kind, length, ..] => {
                    let (option, rest) = options.split_at_checked(usize::from(length.max(2)))?;
                    options = rest;
                    return Some((kind, option.get(2..).unwrap_or_default()));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, TcpOptionElement};
    use proptest::prelude::*;

    /// An IPv4 packet whose TCP header has these options.
    fn packet(options: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64)
            .tcp(1, 2, 3, 4)
            .options_raw(options)
            .unwrap()
            .write(&mut bytes, &[])
            .unwrap();
        bytes
    }

    #[test]
    fn a_usual_syn() {
        let elements = [
            TcpOptionElement::MaximumSegmentSize(1_460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(1, 0),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(7),
        ];
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .tcp(1, 2, 3, 4)
            .options(&elements)
            .unwrap()
            .write(&mut bytes, &[])
            .unwrap();
        let expected = TcpOptions { max_segment_bytes: Some(1_460), window_shift: Some(7), signed: false };
        assert_eq!(tcp_options(&bytes), expected);
    }

    #[test]
    fn shifts_beyond_14_and_signatures() {
        assert_eq!(tcp_options(&packet(&[3, 3, 200])).window_shift, Some(14));
        assert!(tcp_options(&packet(&[29, 4, 1, 1])).signed);
        assert!(tcp_options(&packet(&[1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).signed);
        assert_eq!(
            tcp_options(&packet(&[0, 3, 3, 7])),
            TcpOptions::default(),
            "behind the end of the options"
        );
        assert_eq!(tcp_options(&packet(&[3, 2, 1, 1])).window_shift, None, "too short for a shift");
        assert_eq!(tcp_options(&packet(&[1, 3, 9, 1])).window_shift, None, "longer than the header");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(options in prop::collection::vec(any::<u8>(), 0..40), cut in 0..80_usize) {
            let mut bytes = packet(&options);
            bytes.truncate(cut);
            let _ = tcp_options(&bytes);
            prop_assert!(walk(&options).count() <= options.len());
        }
    }
}
