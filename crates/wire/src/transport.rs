//! What the transport header says: ports, header length, TCP's fields.

/// IP protocol numbers that are read here (IANA).
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP, RFC 9293.
    pub const TCP: u8 = 6;
    /// UDP, RFC 768.
    pub const UDP: u8 = 17;
    /// DCCP, RFC 4340.
    pub const DCCP: u8 = 33;
    /// ICMPv6, RFC 4443.
    pub const ICMPV6: u8 = 58;
    /// SCTP, RFC 9260.
    pub const SCTP: u8 = 132;
    /// UDP-Lite, RFC 3828.
    pub const UDP_LITE: u8 = 136;
}

/// The control bits of a TCP header (RFC 9293 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `flags` is set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// The parts of a TCP segment that congestion control and RTT measurement look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Control bits.
    pub flags: TcpFlags,
    /// Sequence number of the first byte (of the SYN, if set).
    pub seq: u32,
    /// Next byte expected from the other side; meaningful with [`TcpFlags::ACK`].
    pub ack: u32,
    /// Receive window as sent, unscaled.
    pub window: u16,
    /// Bytes of data; of all segments together in a super-packet.
    pub payload_bytes: u32,
}

impl TcpSegment {
    /// Whether the segment does nothing but acknowledge: no data, no SYN, FIN or RST. Padding of the frame does not
    /// count, since the length comes from the IP header. SACK blocks, ECN echoes and window updates may be in it.
    #[inline]
    pub const fn is_pure_ack(&self) -> bool {
        let TcpFlags(bits) = self.flags;
        let others = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        self.payload_bytes == 0 && bits & TcpFlags::ACK.0 != 0 && bits & others == 0
    }
}

/// A transport header, as far as it was captured.
#[derive(Clone, Copy, Default)]
pub(crate) struct Transport {
    pub source_port: u16,
    pub destination_port: u16,
    /// Length of the header; 0 for a protocol that is not known.
    pub header_bytes: u32,
    /// `None` when not TCP or when the capture was cut within the first 16 bytes.
    pub tcp: Option<TcpSegment>,
}

/// Reads the transport header at the start of `bytes`. `payload_bytes` of TCP is left to the caller, who knows
/// the packet's length.
#[inline]
pub(crate) fn parse(number: u8, bytes: &[u8]) -> Transport {
    let header_bytes = match number {
        protocol::TCP => tcp_header_bytes(bytes),
        protocol::UDP | protocol::UDP_LITE | protocol::ICMP | protocol::ICMPV6 => 8,
        protocol::SCTP => 12,
        protocol::DCCP => 16,
        _ => return Transport::default(),
    };
    let has_ports = !matches!(number, protocol::ICMP | protocol::ICMPV6);
    let ports = bytes.first_chunk::<4>().filter(|_| has_ports).copied().unwrap_or_default();
    Transport {
        source_port: u16::from_be_bytes([ports[0], ports[1]]),
        destination_port: u16::from_be_bytes([ports[2], ports[3]]),
        header_bytes,
        tcp: if number == protocol::TCP { tcp_segment(bytes) } else { None },
    }
}

/// Data offset in bytes; at least the 20 that every header has, also when the field was cut off or lies.
#[inline]
fn tcp_header_bytes(bytes: &[u8]) -> u32 {
    bytes.get(12).map_or(20, |byte| u32::from(byte >> 4) * 4).max(20)
}

#[inline]
fn tcp_segment(bytes: &[u8]) -> Option<TcpSegment> {
    let &[_, _, _, _, s0, s1, s2, s3, a0, a1, a2, a3, _, flags, w0, w1] = bytes.first_chunk::<16>()?;
    Some(TcpSegment {
        flags: TcpFlags(flags),
        seq: u32::from_be_bytes([s0, s1, s2, s3]),
        ack: u32::from_be_bytes([a0, a1, a2, a3]),
        window: u16::from_be_bytes([w0, w1]),
        payload_bytes: 0,
    })
}
