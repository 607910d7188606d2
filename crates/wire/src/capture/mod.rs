//! Capture files: classic pcap and pcapng, bytes in, packets out.
//!
//! ```text
//! bytes of a file, in pieces --Reader::next--> Step::Record(Record { time, link, bytes }) --network--> IP packet
//!                                              Step::Skip | NeedMore | Damaged
//! ```
//!
//! The reader holds no bytes: the caller shows it the unread part of the file, discards what a step consumed and
//! adds more when asked. It never asks for more than [`MAX_STEP_BYTES`], whatever a length field claims. The first
//! damage ends the reading; the packets before it stand.
//!
//! Formats: draft-ietf-opsawg-pcap-04 (classic), draft-ietf-opsawg-pcapng-02; link types:
//! draft-ietf-opsawg-pcaplinktype-08.
//!
//! Own code because the crates do not cope with the files we must read: pcap-parser 0.17 knows no obsolete Packet
//! Block, rejects every `if_tsresol` that is a power of two, reads the Kuznetzov format in one byte order only and
//! allocates for each pcapng packet; pcap-file 2.0 does not know the Kuznetzov format.

mod byte_order;
mod classic;
mod link;
mod pcapng;
#[cfg(test)]
mod tests;

use units::Timestamp;

pub use link::{LinkError, LinkType, Network, network};

/// The most bytes that a [`Reader`] must see at once to make a step.
pub const MAX_STEP_BYTES: usize = 1 << 20;

/// The largest packet that a capture can hold (libpcap's MAXIMUM_SNAPLEN); a larger claim is damage.
const MAX_CAPTURED_BYTES: u32 = 262_144;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Since the Unix epoch; `None` in a Simple Packet Block, which carries no time.
    pub time: Option<Timestamp>,
    /// What the bytes begin with.
    pub link: LinkType,
    /// Length of the packet on the wire, link header included.
    pub original_bytes: u32,
    /// The captured bytes from the link header on.
    pub bytes: &'a [u8],
}

/// What the bytes shown to [`Reader::next`] hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A packet; discard `consumed` bytes, which are all at hand.
    Record {
        /// Bytes that the record takes in the file.
        consumed: usize,
        /// The packet.
        record: Record<'a>,
    },
    /// Something else than a packet; discard that many bytes, which may be more than are at hand.
    Skip(u64),
    /// At least this many bytes must be at hand, at most [`MAX_STEP_BYTES`]. At the end of the file: see
    /// [`Reader::end`].
    NeedMore(usize),
    /// Nothing behind this point can be read.
    Damaged(Damage),
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Copy)]
pub struct Damage {
    /// Bytes from the start of the (decompressed) file to the damaged part.
    pub offset: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The first bytes belong to no format that is known here.
    UnknownFormat([u8; 4]),
    /// A version of the format that is not known here.
    Version(u16, u16),
    /// A packet that claims more bytes than any capture can hold.
    CapturedLength(u32),
    /// A block whose length cannot be.
    BlockLength(u32),
    /// The two length fields of a block differ.
    TrailingLength {
        /// At the start.
        leading: u32,
        /// At the end.
        trailing: u32,
    },
    /// A packet of an interface that was not described.
    Interface(u32),
    /// More interfaces than a sane file has.
    TooManyInterfaces,
    /// The file ends within a record or block.
    Cut {
        /// Bytes present of it.
        have: u64,
        /// Bytes needed to go on.
        needed: u64,
    },
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at byte {}: ", self.offset)?;
        match self.kind {
            DamageKind::UnknownFormat([a, b, c, d]) => {
                write!(f, "neither pcap nor pcapng (starts with {a:02x} {b:02x} {c:02x} {d:02x})")
            }
            DamageKind::Version(major, minor) => write!(f, "format version {major}.{minor} is not known"),
            DamageKind::CapturedLength(bytes) => {
                write!(
                    f,
                    "a packet claims {bytes} captured bytes, more than the {MAX_CAPTURED_BYTES} possible"
                )
            }
            DamageKind::BlockLength(bytes) => write!(f, "a block cannot be {bytes} bytes long"),
            DamageKind::TrailingLength { leading, trailing } => {
                write!(f, "a block is {leading} bytes long by its start and {trailing} by its end")
            }
            DamageKind::Interface(id) => write!(f, "a packet of interface {id}, which was not described"),
            DamageKind::TooManyInterfaces => write!(f, "too many interfaces"),
            DamageKind::Cut { have, needed } => {
                write!(f, "the file ends within a record: {have} of at least {needed} bytes")
            }
        }
    }
}

/// Reads one capture file from its first byte on.
#[derive(Debug, Default)]
pub struct Reader {
    format: Format,
    /// Bytes consumed so far.
    offset: u64,
}

#[derive(Debug, Default)]
enum Format {
    /// Nothing was read yet.
    #[default]
    Unknown,
    Classic(classic::Header),
    Pcapng(pcapng::Section),
}

/// A step before the reader has added where it happened.
type Parsed<'a> = Result<Step<'a>, DamageKind>;

impl Reader {
    /// A reader at the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next part of the file, which starts at the first of `bytes`.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Step<'a> {
        let parsed = match &mut self.format {
            Format::Unknown => self.detect(bytes),
            Format::Classic(header) => header.record(bytes),
            Format::Pcapng(section) => section.block(bytes),
        };
        match parsed {
            Ok(step) => {
                match step {
                    Step::Record { consumed, .. } => self.offset += consumed as u64,
                    Step::Skip(consumed) => self.offset += consumed,
                    Step::NeedMore(_) | Step::Damaged(_) => {}
                }
                step
            }
            Err(kind) => Step::Damaged(Damage { offset: self.offset, kind }),
        }
    }

    /// What is wrong when the file ends with `have` bytes unread and the last step was `NeedMore(needed)`.
    pub fn end(&self, have: usize, needed: usize) -> Option<Damage> {
        let kind = DamageKind::Cut { have: have as u64, needed: needed as u64 };
        let started = have > 0 || matches!(self.format, Format::Unknown);
        started.then_some(Damage { offset: self.offset, kind })
    }

    /// What is wrong when the file ends although a [`Step::Skip`] still had `missing` bytes to go.
    pub fn end_within_skip(&self, missing: u64) -> Option<Damage> {
        let kind = DamageKind::Cut { have: 0, needed: missing };
        (missing > 0).then_some(Damage { offset: self.offset.saturating_sub(missing), kind })
    }

    fn detect<'a>(&mut self, bytes: &'a [u8]) -> Parsed<'a> {
        let Some(&magic) = bytes.first_chunk::<4>() else { return Ok(Step::NeedMore(4)) };
        if magic == pcapng::SECTION_HEADER.to_be_bytes() {
            self.format = Format::Pcapng(pcapng::Section::default());
            return Ok(Step::Skip(0));
        }
        if !classic::is_magic(magic) {
            return Err(DamageKind::UnknownFormat(magic));
        }
        let Some(header) = bytes.first_chunk() else { return Ok(Step::NeedMore(classic::HEADER_BYTES)) };
        self.format = Format::Classic(classic::Header::parse(header)?);
        Ok(Step::Skip(classic::HEADER_BYTES as u64))
    }
}
