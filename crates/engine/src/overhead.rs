//! What a packet costs on the link beyond its own bytes: the link's headers, its smallest frame, its cells.
//!
//! ```text
//! IP bytes -> + overhead -> at least mpu -> framing: plain | ptm: + 1 byte for each 64 | atm: whole cells of 48 in 53
//! ```
//! The names are those of `tc-cake(8)`, so that advice for it can be followed here. Sizes count from the IP header,
//! which is what cake's names mean too. Sources: ITU-T I.432.1 (ATM cells), IEEE 802.3 clause 61 (PTM's 64/65 octet
//! encapsulation), IEEE 802.3 clause 3 (Ethernet frames), RFC 2516 (PPPoE), RFC 2684 (AAL5).

use std::fmt;
use std::str::FromStr;

/// How the link cuts frames up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Not at all.
    #[default]
    Plain,
    /// One byte more for each 64 of a frame, as on VDSL2.
    Ptm,
    /// Cells of 48 bytes that take 53 on the line; the last one is padded. ADSL.
    Atm,
}

/// The link's overhead for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overhead {
    /// Bytes added to each IP packet; negative where the link carries fewer.
    pub bytes: i32,
    /// Smallest packet in bytes, overhead included; 0 for none.
    pub mpu: u32,
    /// What the link does to the sum.
    pub framing: Framing,
}

/// Bytes that may be added or taken away; beyond is a slip of the pen. The same limits as cake's.
const BYTES_RANGE: std::ops::RangeInclusive<i32> = -64..=256;
const MAX_MPU: u32 = 256;
/// An 802.1Q tag.
const VLAN_BYTES: i32 = 4;
const CELL_BYTES: u32 = 53;
const CELL_PAYLOAD_BYTES: u32 = 48;
const PTM_BLOCK_BYTES: u32 = 64;

const fn of(bytes: i32, mpu: u32, framing: Framing) -> Overhead {
    Overhead { bytes, mpu, framing }
}

/// Each name with what it stands for; `ether-vlan` adds to what stands before it and is not in here.
const NAMED: [(&str, Overhead); 14] = [
    ("raw", Overhead::NONE),
    ("conservative", of(48, 0, Framing::Atm)),
    ("ethernet", of(38, 84, Framing::Plain)),
    ("docsis", of(18, 64, Framing::Plain)),
    ("pppoe-ptm", of(30, 0, Framing::Ptm)),
    ("bridged-ptm", of(22, 0, Framing::Ptm)),
    ("pppoa-vcmux", of(10, 0, Framing::Atm)),
    ("pppoa-llc", of(14, 0, Framing::Atm)),
    ("pppoe-vcmux", of(32, 0, Framing::Atm)),
    ("pppoe-llcsnap", of(40, 0, Framing::Atm)),
    ("ipoa-vcmux", of(8, 0, Framing::Atm)),
    ("ipoa-llcsnap", of(16, 0, Framing::Atm)),
    ("bridged-vcmux", of(24, 0, Framing::Atm)),
    ("bridged-llcsnap", of(32, 0, Framing::Atm)),
];

impl Overhead {
    /// None: a packet costs its IP bytes.
    pub const NONE: Self = of(0, 0, Framing::Plain);

    /// `bytes` on each packet and nothing else.
    pub const fn of_bytes(bytes: i32) -> Self {
        of(bytes, 0, Framing::Plain)
    }

    /// The names that [`FromStr`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(name, _)| *name).chain(["ether-vlan"])
    }

    /// Bytes that one packet of `ip_bytes` takes on the link; at least 1, so that nothing is free.
    #[inline]
    pub fn charge(&self, ip_bytes: u32) -> u32 {
        let sum = i64::from(ip_bytes) + i64::from(self.bytes);
        let bytes = u32::try_from(sum.max(self.mpu.into()).max(1)).unwrap_or(u32::MAX);
        match self.framing {
            Framing::Plain => bytes,
            Framing::Ptm => bytes.saturating_add(bytes.div_ceil(PTM_BLOCK_BYTES)),
            Framing::Atm => bytes.div_ceil(CELL_PAYLOAD_BYTES).saturating_mul(CELL_BYTES),
        }
    }
}

/// Why a text is no overhead. The message says what to type instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseOverheadError {
    /// A word that is neither a name nor a number.
    Unknown(String),
    /// More bytes than any link adds.
    Range(i64),
}

impl fmt::Display for ParseOverheadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => {
                let names = Overhead::names().collect::<Vec<_>>().join(", ");
                write!(f, "'{word}' is no overhead; write a number of bytes or one of {names}")
            }
            Self::Range(bytes) => {
                let (least, most) = (BYTES_RANGE.start(), BYTES_RANGE.end());
                write!(f, "no link has an overhead of {bytes} bytes; {least} to {most} are possible")
            }
        }
    }
}

impl std::error::Error for ParseOverheadError {}

/// Reads words with commas between them, the later ones over the earlier ones as in cake: a name, a number of bytes,
/// `mpu=64`, `atm`, `ptm` or `noatm`. `ether-vlan` adds a VLAN tag and may be repeated.
impl FromStr for Overhead {
    type Err = ParseOverheadError;

    fn from_str(text: &str) -> Result<Self, ParseOverheadError> {
        let overhead = text.split(',').map(str::trim).try_fold(Self::NONE, apply)?;
        if BYTES_RANGE.contains(&overhead.bytes) {
            Ok(overhead)
        } else {
            Err(ParseOverheadError::Range(overhead.bytes.into()))
        }
    }
}

fn apply(before: Overhead, word: &str) -> Result<Overhead, ParseOverheadError> {
    if let Some((_, named)) = NAMED.iter().find(|(name, _)| *name == word) {
        return Ok(*named);
    }
    let in_range = |bytes: i64| i32::try_from(bytes).map_err(|_| ParseOverheadError::Range(bytes));
    Ok(match word.split_once('=').unwrap_or((word, "")) {
        ("ether-vlan", "") => Overhead { bytes: before.bytes.saturating_add(VLAN_BYTES), ..before },
        ("atm", "") => Overhead { framing: Framing::Atm, ..before },
        ("ptm", "") => Overhead { framing: Framing::Ptm, ..before },
        ("noatm", "") => Overhead { framing: Framing::Plain, ..before },
        ("mpu", number) => match number.parse() {
            Ok(mpu) if mpu <= MAX_MPU => Overhead { mpu, ..before },
            Ok(mpu) => return Err(ParseOverheadError::Range(mpu.into())),
            Err(_) => return Err(ParseOverheadError::Unknown(word.to_owned())),
        },
        (number, "") => match number.parse() {
            Ok(bytes) => Overhead { bytes: in_range(bytes)?, ..before },
            Err(_) => return Err(ParseOverheadError::Unknown(word.to_owned())),
        },
        _ => return Err(ParseOverheadError::Unknown(word.to_owned())),
    })
}

/// In a form that [`FromStr`] reads: `38`, `38,mpu=84`, `40,atm`.
impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes)?;
        if self.mpu > 0 {
            write!(f, ",mpu={}", self.mpu)?;
        }
        match self.framing {
            Framing::Plain => Ok(()),
            Framing::Ptm => f.write_str(",ptm"),
            Framing::Atm => f.write_str(",atm"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(text: &str) -> Overhead {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn bytes_on_the_link_by_name() {
        // IP bytes of a pure ACK, a game update, half a packet, a full PPPoE packet, a full packet.
        let table = [
            ("raw", [40, 120, 576, 1_492, 1_500]),
            ("ethernet", [84, 158, 614, 1_530, 1_538]),
            ("ethernet,ether-vlan", [84, 162, 618, 1_534, 1_542]),
            ("docsis", [64, 138, 594, 1_510, 1_518]),
            ("pppoe-ptm", [72, 153, 616, 1_546, 1_554]),
            ("bridged-ptm", [63, 145, 608, 1_538, 1_546]),
            ("bridged-ptm,ether-vlan", [68, 149, 612, 1_542, 1_550]),
            ("pppoa-vcmux", [106, 159, 689, 1_696, 1_696]),
            ("pppoa-llc", [106, 159, 689, 1_696, 1_696]),
            ("pppoe-vcmux", [106, 212, 689, 1_696, 1_696]),
            ("pppoe-llcsnap", [106, 212, 689, 1_696, 1_749]),
            ("ipoa-vcmux", [53, 159, 689, 1_696, 1_696]),
            ("ipoa-llcsnap", [106, 159, 689, 1_696, 1_696]),
            ("bridged-vcmux", [106, 159, 689, 1_696, 1_696]),
            ("bridged-llcsnap", [106, 212, 689, 1_696, 1_696]),
            ("conservative", [106, 212, 689, 1_749, 1_749]),
            ("38", [78, 158, 614, 1_530, 1_538]),
            ("-14", [26, 106, 562, 1_478, 1_486]),
        ];
        for (name, bytes) in table {
            assert_eq!([40, 120, 576, 1_492, 1_500].map(|ip| named(name).charge(ip)), bytes, "{name}");
        }
    }

    #[test]
    fn an_ack_costs_two_and_a_half_times_its_bytes_on_pppoe_over_atm() {
        let line = named("pppoe-llcsnap");
        assert_eq!((line.charge(40), line.charge(1_500)), (106, 1_749));
    }

    #[test]
    fn the_smallest_packet_comes_before_the_cells() {
        let line = named("18,mpu=64,atm");
        assert_eq!(line.charge(20), 2 * 53, "64 bytes, not 38, in cells");
        assert_eq!(named("18,mpu=64,ptm").charge(20), 65);
    }

    #[test]
    fn later_words_win_except_that_vlan_tags_add_up() {
        assert_eq!(named("44,atm"), of(44, 0, Framing::Atm));
        assert_eq!(named("pppoe-llcsnap, noatm"), of(40, 0, Framing::Plain));
        assert_eq!(named("ethernet,ether-vlan,ether-vlan"), of(46, 84, Framing::Plain));
        assert_eq!(named("ethernet,mpu=0"), Overhead::of_bytes(38));
        assert_eq!(named("34,docsis"), named("docsis"));
    }

    #[test]
    fn nonsense_is_refused_with_advice() {
        for text in ["", "pppoe", "38 bytes", "mpu", "mpu=", "mpu=x", "atm=1", "38,", "1e1"] {
            let message = text.parse::<Overhead>().unwrap_err().to_string();
            assert!(message.contains("pppoe-llcsnap") && message.contains("ether-vlan"), "{text}: {message}");
        }
        for text in ["257", "-65", "9999999999", "mpu=257", "254,ether-vlan"] {
            let message = text.parse::<Overhead>().unwrap_err().to_string();
            assert!(message.contains("-64 to 256"), "{text}: {message}");
        }
    }

    fn any_overhead() -> impl Strategy<Value = Overhead> {
        let framing = prop::sample::select(vec![Framing::Plain, Framing::Ptm, Framing::Atm]);
        (BYTES_RANGE, 0..=MAX_MPU, framing).prop_map(|(bytes, mpu, framing)| of(bytes, mpu, framing))
    }

    proptest! {
        #[test]
        fn what_is_printed_can_be_read(overhead in any_overhead()) {
            prop_assert_eq!(overhead.to_string().parse(), Ok(overhead));
        }

        #[test]
        fn a_larger_packet_never_costs_less(overhead in any_overhead(), bytes: u32) {
            let cost = overhead.charge(bytes);
            prop_assert!(cost >= 1 && cost >= overhead.mpu);
            prop_assert!(overhead.charge(bytes.saturating_add(1)) >= cost);
        }
    }
}
