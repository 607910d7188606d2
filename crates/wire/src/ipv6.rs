//! IPv6 headers with their extension headers (RFC 8200 sections 3 and 4).

use crate::ip::IpHeader;
use crate::{Ecn, WireError};
use core::net::{IpAddr, Ipv6Addr};

/// Length of the fixed header, in bytes.
const FIXED_HEADER_BYTES: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

pub(crate) fn parse(bytes: &[u8]) -> Result<IpHeader<'_>, WireError> {
    let Some((header, rest)) = bytes.split_first_chunk::<FIXED_HEADER_BYTES>() else {
        return Err(WireError::Truncated { needed: FIXED_HEADER_BYTES, have: bytes.len() });
    };
    let payload_bytes = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let chain = walk(header[6], rest);
    Ok(IpHeader {
        source: address(header, 8),
        destination: address(header, 24),
        ecn: Ecn::from_bits(header[1] >> 4),
        stated_bytes: if payload_bytes == 0 && header[6] == HOP_BY_HOP {
            0 // a jumbogram: the length is in an option, or nowhere when the kernel left it out
        } else {
            FIXED_HEADER_BYTES as u32 + payload_bytes
        },
        header_bytes: FIXED_HEADER_BYTES as u32 + chain.bytes,
        protocol: chain.protocol,
        fragment: chain.fragment,
        payload: rest.get(chain.bytes as usize..).unwrap_or_default(),
    })
}

fn address(header: &[u8; FIXED_HEADER_BYTES], at: usize) -> IpAddr {
    let octets = header[at..].first_chunk::<16>().copied().unwrap_or_default();
    IpAddr::V6(Ipv6Addr::from(octets))
}

/// Where the chain of extension headers ends.
struct Chain {
    protocol: u8,
    bytes: u32,
    fragment: bool,
}

/// Follows the extension headers from `protocol` on. Stops at a transport, at ESP, at "no next header", at the
/// end of the capture, and at the fragment header of a true fragment: what follows it differs between the
/// fragments of one packet, what stands in it does not. Each step consumes at least 8 bytes.
fn walk(mut protocol: u8, bytes: &[u8]) -> Chain {
    let mut at = 0;
    while let Some(&[next, length, b2, b3, ..]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let step = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6 => {
                (usize::from(length) + 1) * 8
            }
            AUTHENTICATION => (usize::from(length) + 2) * 4, // RFC 4302 section 2.2
            FRAGMENT => 8,
            _ => break,
        };
        // Offset or More Fragments set. Without either it is an atomic fragment, a whole packet (RFC 6946).
        let fragment = protocol == FRAGMENT && u16::from_be_bytes([b2, b3]) & 0xfff9 != 0;
        protocol = next;
        at += step;
        if fragment {
            return Chain { protocol, bytes: at as u32, fragment };
        }
    }
    Chain { protocol, bytes: at as u32, fragment: false }
}
