//! The pcapng format (draft-ietf-opsawg-pcapng-02), as far as packets and their interfaces.

use super::byte_order::ByteOrder;
use super::{DamageKind, LinkType, MAX_CAPTURED_BYTES, MAX_STEP_BYTES, Parsed, Record, Step};
use units::Timestamp;

/// Block type of a Section Header Block; reads the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// The obsolete Packet Block.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Type, length and trailing length: the least that a block takes.
const FRAME_BYTES: usize = 12;
/// Bounds the memory that a file of nothing but interfaces can take.
const MAX_INTERFACES: usize = 4_096;

/// The section being read: its byte order and interfaces. The default one waits for its header.
#[derive(Debug, Default)]
pub(super) struct Section {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

impl Section {
    /// Reads the block at the start of `bytes`.
    pub fn block<'a>(&mut self, bytes: &'a [u8]) -> Parsed<'a> {
        let Some(start) = bytes.first_chunk::<FRAME_BYTES>() else { return Ok(Step::NeedMore(FRAME_BYTES)) };
        let kind = self.order.u32(start, 0);
        if kind == SECTION_HEADER {
            return self.section_header(bytes);
        }
        let stated = self.order.u32(start, 4);
        let whole = stated as usize;
        if whole < FRAME_BYTES || !whole.is_multiple_of(4) {
            return Err(DamageKind::BlockLength(stated));
        }
        if !matches!(kind, INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            return Ok(Step::Skip(whole as u64));
        }
        if whole > MAX_STEP_BYTES {
            return Err(DamageKind::BlockLength(stated));
        }
        let Some(body) = bytes.get(8..whole - 4) else { return Ok(Step::NeedMore(whole)) };
        let Some(end) = bytes.get(whole - 4..whole) else { return Ok(Step::NeedMore(whole)) };
        let trailing = self.order.u32(end, 0);
        if trailing != stated {
            return Err(DamageKind::TrailingLength { leading: stated, trailing });
        }
        let record = match kind {
            ENHANCED_PACKET => self.enhanced_packet(body, stated)?,
            SIMPLE_PACKET => self.simple_packet(body, stated)?,
            PACKET => self.packet(body, stated)?,
            _ => {
                self.add_interface(body, stated)?;
                return Ok(Step::Skip(whole as u64));
            }
        };
        Ok(Step::Record { consumed: whole, record })
    }

    /// Section 4.1: the byte order magic comes before anything that needs a byte order.
    fn section_header<'a>(&mut self, bytes: &'a [u8]) -> Parsed<'a> {
        let Some(header) = bytes.first_chunk::<16>() else { return Ok(Step::NeedMore(16)) };
        let order = match [header[8], header[9], header[10], header[11]] {
            [0x1a, 0x2b, 0x3c, 0x4d] => ByteOrder::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => ByteOrder::Little,
            other => return Err(DamageKind::UnknownFormat(other)),
        };
        let (major, minor) = (order.u16(header, 12), order.u16(header, 14));
        if major != 1 {
            return Err(DamageKind::Version(major, minor));
        }
        let stated = order.u32(header, 4);
        if stated < 28 || !stated.is_multiple_of(4) {
            return Err(DamageKind::BlockLength(stated));
        }
        *self = Self { order, interfaces: Vec::new() };
        Ok(Step::Skip(stated.into()))
    }

    /// Section 4.2.
    fn add_interface(&mut self, body: &[u8], stated: u32) -> Result<(), DamageKind> {
        if body.len() < 8 {
            return Err(DamageKind::BlockLength(stated));
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(DamageKind::TooManyInterfaces);
        }
        self.interfaces.push(Interface::parse(self.order, body));
        Ok(())
    }

    /// Section 4.3.
    fn enhanced_packet<'a>(&self, body: &'a [u8], stated: u32) -> Result<Record<'a>, DamageKind> {
        self.timed_packet(body, stated, self.order.u32(body, 0))
    }

    /// Appendix A: like the Enhanced Packet Block, but with a 16-bit interface and a drop counter.
    fn packet<'a>(&self, body: &'a [u8], stated: u32) -> Result<Record<'a>, DamageKind> {
        self.timed_packet(body, stated, self.order.u16(body, 0).into())
    }

    fn timed_packet<'a>(&self, body: &'a [u8], stated: u32, id: u32) -> Result<Record<'a>, DamageKind> {
        let interface = self.interface(id)?;
        let ticks = u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8));
        let captured = self.order.u32(body, 12);
        Ok(Record {
            time: Some(interface.clock.time(ticks)),
            link: interface.link,
            original_bytes: self.order.u32(body, 16).max(captured),
            bytes: packet_data(body, 20, captured, stated)?,
        })
    }

    /// Section 4.4: of interface 0, without a time; captured to the interface's snapshot length.
    fn simple_packet<'a>(&self, body: &'a [u8], stated: u32) -> Result<Record<'a>, DamageKind> {
        let interface = self.interface(0)?;
        let original_bytes = self.order.u32(body, 0);
        let limit = if interface.snapshot_bytes == 0 { u32::MAX } else { interface.snapshot_bytes };
        let present = u32::try_from(body.len().saturating_sub(4)).unwrap_or(u32::MAX);
        let captured = original_bytes.min(limit).min(present);
        Ok(Record {
            time: None,
            link: interface.link,
            original_bytes,
            bytes: packet_data(body, 4, captured, stated)?,
        })
    }

    fn interface(&self, id: u32) -> Result<&Interface, DamageKind> {
        self.interfaces.get(id as usize).ok_or(DamageKind::Interface(id))
    }
}

fn packet_data(body: &[u8], at: usize, captured: u32, stated: u32) -> Result<&[u8], DamageKind> {
    if captured > MAX_CAPTURED_BYTES {
        return Err(DamageKind::CapturedLength(captured));
    }
    body.get(at..at + captured as usize).ok_or(DamageKind::BlockLength(stated))
}

/// What an Interface Description Block says.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// 0 means no limit.
    snapshot_bytes: u32,
    clock: Clock,
}

impl Interface {
    fn parse(order: ByteOrder, body: &[u8]) -> Self {
        let mut clock = Clock::default();
        let mut options = body.get(8..).unwrap_or_default();
        // Each turn consumes at least the four bytes of an option's header.
        while options.len() >= 4 {
            let (code, length) = (order.u16(options, 0), usize::from(order.u16(options, 2)));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (9, &[resolution, ..]) => clock.resolution = resolution, // if_tsresol
                (14, value) if length == 8 => clock.offset_seconds = order.u64(value, 0).cast_signed(), // if_tsoffset
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        Self { link: LinkType(order.u16(body, 0)), snapshot_bytes: order.u32(body, 4), clock }
    }
}

/// How an interface counts time (section 4.2, if_tsresol and if_tsoffset).
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Ticks in a second: ten, or with the top bit set two, to the power of the lower bits.
    resolution: u8,
    offset_seconds: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { resolution: 6, offset_seconds: 0 }
    }
}

impl Clock {
    /// Nanoseconds since the epoch, saturated at both ends; below a nanosecond rounded down.
    fn time(&self, ticks: u64) -> Timestamp {
        let nanos = match self.resolution {
            9 => ticks,
            power if power & 0x80 != 0 => saturate((u128::from(ticks) * 1_000_000_000) >> (power & 0x7f)),
            power if power < 9 => saturate(u128::from(ticks) * 10_u128.pow(9 - u32::from(power))),
            power => 10_u64.checked_pow(u32::from(power) - 9).map_or(0, |per_nano| ticks / per_nano),
        };
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        let nanos = (i128::from(nanos) + offset).max(0).cast_unsigned();
        Timestamp::from_nanos(saturate(nanos))
    }
}

fn saturate(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
