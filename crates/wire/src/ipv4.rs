//! IPv4 headers (RFC 791 section 3.1).

use crate::ip::IpHeader;
use crate::{Ecn, WireError};
use core::net::{IpAddr, Ipv4Addr};

/// Length of a header without options, in bytes.
const MIN_HEADER_BYTES: usize = 20;
/// More Fragments flag and fragment offset; Don't Fragment lies outside.
const FRAGMENT_BITS: u16 = 0x3fff;

#[inline]
pub(crate) fn parse(bytes: &[u8]) -> Result<IpHeader<'_>, WireError> {
    let Some(header) = bytes.first_chunk::<MIN_HEADER_BYTES>() else {
        return Err(WireError::Truncated { needed: MIN_HEADER_BYTES, have: bytes.len() });
    };
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    if header_bytes < MIN_HEADER_BYTES {
        return Err(WireError::HeaderLength { bytes: header_bytes });
    }
    let stated = u16::from_be_bytes([header[2], header[3]]);
    if stated != 0 && usize::from(stated) < header_bytes {
        return Err(WireError::PacketLength { stated: stated.into(), header: header_bytes });
    }
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    Ok(IpHeader {
        source: IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3)),
        destination: IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3)),
        ecn: Ecn::from_bits(header[1]),
        stated_bytes: stated.into(),
        header_bytes: header_bytes as u32,
        protocol: header[9],
        fragment: u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_BITS != 0,
        payload: bytes.get(header_bytes..).unwrap_or_default(),
    })
}
