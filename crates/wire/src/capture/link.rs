//! From the link header to the IP packet.

use std::fmt;

/// A LINKTYPE_ value (draft-ietf-opsawg-pcaplinktype-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

/// VLAN tags that are followed, and that an identity has room for.
const MAX_VLAN_TAGS: u32 = 3;

/// The IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network<'a> {
    /// From the IP header on, as far as captured; behind a short packet there may be padding.
    pub bytes: &'a [u8],
    /// What stood in front of it.
    pub link_header_bytes: u32,
    /// Room for the packet as the link header states it (PPPoE); `None` where it states none. An IP packet that
    /// claims more counts the padding of another link as its own.
    pub room_bytes: Option<u32>,
    /// Which VLANs and PPPoE session the packet travelled in; 0 for none. The same addresses and ports in another
    /// one are another connection.
    pub tag: u64,
}

/// Why a frame holds no IP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkError {
    /// Link headers of this type are not understood.
    UnsupportedLinkType(LinkType),
    /// Another network protocol, by its EtherType.
    EtherType(u16),
    /// An IEEE 802.3 frame with LLC that carries no EtherType.
    Llc,
    /// Another network protocol, by its PPP protocol number.
    Ppp(u16),
    /// Another address family in a loopback header.
    Family(u32),
    /// More VLAN tags than are followed.
    VlanTags,
    /// Cut within the link header.
    Truncated,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedLinkType(link) => write!(f, "unsupported link type {link}"),
            Self::EtherType(0x0806) => write!(f, "ARP"),
            Self::EtherType(number) => write!(f, "EtherType 0x{number:04x}"),
            Self::Llc => write!(f, "LLC without EtherType"),
            Self::Ppp(number) => write!(f, "PPP protocol 0x{number:04x}"),
            Self::Family(number) => write!(f, "address family {number}"),
            Self::VlanTags => write!(f, "more than {MAX_VLAN_TAGS} VLAN tags"),
            Self::Truncated => write!(f, "cut within the link header"),
        }
    }
}

impl LinkType {
    const NULL: u16 = 0;
    const ETHERNET: u16 = 1;
    const PPP: u16 = 9;
    /// DLT_RAW as BSD and Linux write it.
    const RAW_BSD: u16 = 12;
    /// DLT_RAW as OpenBSD writes it.
    const RAW_OPENBSD: u16 = 14;
    const PPP_HDLC: u16 = 50;
    const PPP_ETHER: u16 = 51;
    const RAW: u16 = 101;
    const C_HDLC: u16 = 104;
    const LOOP: u16 = 108;
    const LINUX_SLL: u16 = 113;
    const IPV4: u16 = 228;
    const IPV6: u16 = 229;
    const LINUX_SLL2: u16 = 276;

    const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            Self::NULL => "NULL",
            Self::ETHERNET => "ETHERNET",
            6 => "IEEE802_5",
            Self::PPP => "PPP",
            10 => "FDDI",
            Self::RAW_BSD | Self::RAW_OPENBSD | Self::RAW => "RAW",
            Self::PPP_HDLC => "PPP_HDLC",
            Self::PPP_ETHER => "PPP_ETHER",
            Self::C_HDLC => "C_HDLC",
            105 => "IEEE802_11",
            107 => "FRELAY",
            Self::LOOP => "LOOP",
            Self::LINUX_SLL => "LINUX_SLL",
            117 => "PFLOG",
            119 => "IEEE802_11_PRISM",
            127 => "IEEE802_11_RADIOTAP",
            147..=162 => "USER",
            187 => "BLUETOOTH_HCI_H4",
            189 => "USB_LINUX",
            192 => "PPI",
            195 => "IEEE802_15_4_WITHFCS",
            Self::IPV4 => "IPV4",
            Self::IPV6 => "IPV6",
            239 => "NFLOG",
            249 => "USBPCAP",
            253 => "NETLINK",
            Self::LINUX_SLL2 => "LINUX_SLL2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The IP packet in a frame of this link type.
///
/// # Errors
/// When the frame carries something else, is cut, or its link type is not known here.
pub fn network(link: LinkType, frame: &[u8]) -> Result<Network<'_>, LinkError> {
    let mut cursor = Cursor { frame, at: 0, tag: 0, end: None };
    match link.0 {
        LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => {}
        LinkType::NULL | LinkType::LOOP => cursor.family()?,
        LinkType::ETHERNET => {
            cursor.skip(12)?;
            cursor.ether_type()?;
        }
        LinkType::LINUX_SLL => {
            cursor.skip(14)?;
            cursor.ether_type()?;
        }
        LinkType::LINUX_SLL2 => cursor.sll2()?,
        LinkType::C_HDLC => {
            cursor.skip(2)?;
            cursor.ether_type()?;
        }
        LinkType::PPP | LinkType::PPP_HDLC => cursor.ppp()?,
        LinkType::PPP_ETHER => cursor.pppoe()?,
        _ => return Err(LinkError::UnsupportedLinkType(link)),
    }
    Ok(Network {
        bytes: frame.get(cursor.at..).unwrap_or_default(),
        link_header_bytes: cursor.at as u32,
        room_bytes: cursor.end.map(|end| end.saturating_sub(cursor.at) as u32),
        tag: cursor.tag,
    })
}

/// A position in a frame that only moves on.
struct Cursor<'a> {
    frame: &'a [u8],
    at: usize,
    tag: u64,
    /// Where the payload ends, if a header said so.
    end: Option<usize>,
}

impl Cursor<'_> {
    fn peek<const N: usize>(&self) -> Result<[u8; N], LinkError> {
        self.frame.get(self.at..).and_then(|rest| rest.first_chunk()).copied().ok_or(LinkError::Truncated)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], LinkError> {
        let bytes = self.peek()?;
        self.at += N;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: usize) -> Result<(), LinkError> {
        if self.frame.len() < self.at + bytes {
            return Err(LinkError::Truncated);
        }
        self.at += bytes;
        Ok(())
    }

    /// An address family, in the writer's byte order (NULL) or big-endian (LOOP); families are small numbers, so the
    /// value itself shows which. BSD systems number IPv6 differently.
    fn family(&mut self) -> Result<(), LinkError> {
        let stated = u32::from_be_bytes(self.take()?);
        let family = if stated > 0xffff { stated.swap_bytes() } else { stated };
        match family {
            2 | 10 | 24 | 28 | 30 => Ok(()),
            other => Err(LinkError::Family(other)),
        }
    }

    /// Protocol first, then 18 bytes on interface and address.
    fn sll2(&mut self) -> Result<(), LinkError> {
        let protocol = u16::from_be_bytes(self.take()?);
        self.skip(18)?;
        self.protocol(protocol)
    }

    fn ether_type(&mut self) -> Result<(), LinkError> {
        let protocol = u16::from_be_bytes(self.take()?);
        self.protocol(protocol)
    }

    /// Follows VLAN tags (IEEE 802.1Q, 802.1ad and their predecessors) and PPPoE to an IP packet.
    fn protocol(&mut self, mut protocol: u16) -> Result<(), LinkError> {
        for _ in 0..=MAX_VLAN_TAGS {
            match protocol {
                0x0800 | 0x86dd => return Ok(()),
                0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                    let [t0, t1, p0, p1] = self.take()?;
                    let id = u64::from(u16::from_be_bytes([t0, t1]) & 0x0fff);
                    self.tag = self.tag << 13 | 1 << 12 | id;
                    protocol = u16::from_be_bytes([p0, p1]);
                }
                0x8864 => return self.pppoe(),
                0..0x0600 => return self.snap(),
                other => return Err(LinkError::EtherType(other)),
            }
        }
        Err(LinkError::VlanTags)
    }

    /// The length of an IEEE 802.3 frame was read; LLC with SNAP follows, or no IP.
    fn snap(&mut self) -> Result<(), LinkError> {
        match self.take::<8>()? {
            [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00] | [0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd] => Ok(()),
            _ => Err(LinkError::Llc),
        }
    }

    /// RFC 2516 section 4: version and type, code, session, length; then PPP.
    fn pppoe(&mut self) -> Result<(), LinkError> {
        let [_, _, s0, s1, l0, l1] = self.take()?;
        self.end = Some(self.at + usize::from(u16::from_be_bytes([l0, l1])));
        self.tag = self.tag << 17 | 1 << 16 | u64::from(u16::from_be_bytes([s0, s1]));
        self.ppp_protocol()
    }

    /// Address and control, unless they were negotiated away (RFC 1661 section 6.6), then the protocol.
    fn ppp(&mut self) -> Result<(), LinkError> {
        if matches!(self.peek::<2>()?, [0xff | 0x0f, 0x03 | 0x00]) {
            self.skip(2)?;
        }
        self.ppp_protocol()
    }

    /// One byte if it was compressed, which its lowest bit shows (RFC 1661 sections 2 and 6.5).
    fn ppp_protocol(&mut self) -> Result<(), LinkError> {
        let [first] = self.take()?;
        let number = if first & 1 == 1 {
            first.into()
        } else {
            let [second] = self.take()?;
            u16::from_be_bytes([first, second])
        };
        match number {
            // Of PPP; or of Cisco HDLC, which uses EtherTypes in the same place.
            0x0021 | 0x0057 | 0x0800 | 0x86dd => Ok(()),
            other => Err(LinkError::Ppp(other)),
        }
    }
}
