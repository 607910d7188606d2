//! The classic pcap format (draft-ietf-opsawg-pcap-04), with nanoseconds and in Kuznetzov's variant.

use super::byte_order::ByteOrder;
use super::{DamageKind, LinkType, MAX_CAPTURED_BYTES, Parsed, Record, Step};
use units::Timestamp;

/// Length of the file header.
pub(super) const HEADER_BYTES: usize = 24;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Alexey Kuznetzov's patch to libpcap 0.4: microseconds, eight more bytes in each record header.
const KUZNETZOV: u32 = 0xa1b2_cd34;

/// Whether a classic file starts like this, in either byte order.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    let known = |number| matches!(number, MICROSECONDS | NANOSECONDS | KUZNETZOV);
    known(u32::from_le_bytes(magic)) || known(u32::from_be_bytes(magic))
}

/// What the file header says about the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    order: ByteOrder,
    link: LinkType,
    nanos_per_tick: u64,
    record_header_bytes: usize,
}

impl Header {
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, DamageKind> {
        let big = bytes[0] == 0xa1;
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let (major, minor) = (order.u16(bytes, 4), order.u16(bytes, 6));
        // Until version 2.3 the two lengths of a record stood in the other order (libpcap's savefile format).
        if major != 2 || minor < 4 {
            return Err(DamageKind::Version(major, minor));
        }
        let magic = order.u32(bytes, 0);
        Ok(Self {
            order,
            link: LinkType(order.u32(bytes, 20) as u16), // the upper half describes a frame check sequence
            nanos_per_tick: if magic == NANOSECONDS { 1 } else { 1_000 },
            record_header_bytes: if magic == KUZNETZOV { 24 } else { 16 },
        })
    }

    /// Reads the record at the start of `bytes`.
    pub fn record<'a>(&self, bytes: &'a [u8]) -> Parsed<'a> {
        if bytes.len() < self.record_header_bytes {
            return Ok(Step::NeedMore(self.record_header_bytes));
        }
        let captured = self.order.u32(bytes, 8);
        if captured > MAX_CAPTURED_BYTES {
            return Err(DamageKind::CapturedLength(captured));
        }
        let consumed = self.record_header_bytes + captured as usize;
        let Some(packet) = bytes.get(self.record_header_bytes..consumed) else {
            return Ok(Step::NeedMore(consumed));
        };
        let seconds = u64::from(self.order.u32(bytes, 0));
        let ticks = u64::from(self.order.u32(bytes, 4));
        let time = Timestamp::from_nanos(seconds * 1_000_000_000 + ticks * self.nanos_per_tick);
        let original_bytes = self.order.u32(bytes, 12).max(captured);
        Ok(Step::Record {
            consumed,
            record: Record { time: Some(time), link: self.link, original_bytes, bytes: packet },
        })
    }
}
