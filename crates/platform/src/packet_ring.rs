//! Whole Ethernet frames of one interface: received in a ring shared with the kernel, sent in batches.
//!
//! AF_PACKET with TPACKET_V2 (the kernel's Documentation/networking/packet_mmap.rst; man 7 packet). The ring is not
//! bounded by net.core.rmem_max, costs no system call for a packet, and each slot carries the kernel's time of
//! arrival, so a reader that wakes late still knows when a packet came. Version 2 and not 3: version 3 hands over
//! blocks of packets, which adds up to the block's timeout to each of them.
//!
//! ```text
//! slot: | tpacket2_hdr | sockaddr_ll | .. | virtio_net_hdr, if asked for | Ethernet frame .. |
//!         tp_status                         tp_mac - 10                    tp_mac, tp_snaplen bytes
//! ```

mod filter;
mod map;
mod sender;
mod socket;

pub use filter::Filter;
pub use sender::{BATCH, PacketSender};

use crate::clock;
use map::SharedMap;
use socket::{packet_option, packet_socket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use units::Timestamp;

/// struct virtio_net_hdr (virtio 1.2, section 5.1.6) without the number of buffers: tells the other end where a
/// checksum is still to be computed, so that nobody computes it on the way.
pub const VNET_HEADER_BYTES: usize = 10;

/// What a [`PacketRing`] receives.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions<'a> {
    /// The interface, in the calling thread's network namespace.
    pub interface: &'a str,
    /// Slots of [`SLOT_BYTES`] each; rounded up to whole blocks of 32.
    pub slots: u32,
    /// Whether frames that this host sends on the interface are received too.
    pub outgoing: bool,
    /// Whether each frame comes with a virtio_net_hdr in front.
    pub vnet_header: bool,
    /// Which frames are received.
    pub filter: Filter,
}

/// Room for a frame of 1500 bytes of IP with all headers; longer ones are cut.
pub const SLOT_BYTES: usize = 2048;

const BLOCK_BYTES: usize = 1 << 16;

/// Version 2 of the slot's layout (linux/if_packet.h).
const TPACKET_V2: libc::c_int = 1;

/// One received frame.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// When the kernel got it, on the monotonic clock.
    pub arrival: Timestamp,
    /// Whether this host sent it.
    pub outgoing: bool,
    /// The virtio_net_hdr, if asked for, then the frame: as [`PacketSender`] takes it.
    pub bytes: &'a [u8],
    /// The frame's own length; larger than what is here when it was cut.
    pub frame_bytes: usize,
    header_bytes: usize,
}

impl Received<'_> {
    /// The Ethernet frame.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[self.header_bytes..]
    }

    /// Whether the frame did not fit its slot.
    pub fn is_cut(&self) -> bool {
        self.frame().len() < self.frame_bytes
    }
}

/// Receives the frames of one interface.
#[derive(Debug)]
pub struct PacketRing {
    // Before the socket, so that the memory is unmapped before the socket closes.
    map: SharedMap,
    socket: OwnedFd,
    next: usize,
    slots: usize,
    header_bytes: usize,
    wall_offset_ns: i128,
    dropped: u64,
}

impl PacketRing {
    /// Starts receiving.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW over the namespace, EAFNOSUPPORT on a kernel without packet sockets, ENODEV for an
    /// unknown interface.
    pub fn open(options: RingOptions<'_>) -> io::Result<Self> {
        let socket = packet_socket()?;
        options.filter.attach(&socket)?;
        packet_option(&socket, libc::PACKET_VERSION, &TPACKET_V2)?;
        packet_option(&socket, libc::PACKET_VNET_HDR, &libc::c_int::from(options.vnet_header))?;
        packet_option(&socket, libc::PACKET_IGNORE_OUTGOING, &libc::c_int::from(!options.outgoing))?;
        socket::stamp_at_arrival(&socket)?;
        let blocks = (options.slots as usize * SLOT_BYTES).div_ceil(BLOCK_BYTES).max(1);
        let slots = blocks * BLOCK_BYTES / SLOT_BYTES;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: slots as u32,
        };
        packet_option(&socket, libc::PACKET_RX_RING, &request)?;
        let map = SharedMap::new(&socket, blocks * BLOCK_BYTES)?;
        socket::bind(&socket, options.interface, libc::ETH_P_ALL as u16)?;
        let header_bytes = if options.vnet_header { VNET_HEADER_BYTES } else { 0 };
        let wall_offset_ns = clock::wall_to_monotonic_ns();
        Ok(Self { map, socket, next: 0, slots, header_bytes, wall_offset_ns, dropped: 0 })
    }

    /// Hands the next frame to `take` and frees its slot; false when none has come. To wait, poll
    /// [`as_fd`](AsFd::as_fd) for reading.
    ///
    /// The kernel stamps with the wall clock: call [`sync_clock`](Self::sync_clock) regularly.
    pub fn receive(&mut self, take: impl FnOnce(Received<'_>)) -> bool {
        let slot = self.next * SLOT_BYTES;
        // Acquire: what the kernel wrote before it gave the slot to us is visible.
        if self.map.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        if let Some(received) = self.read_slot(slot) {
            take(received);
        }
        // Release: our reads of the slot are over before the kernel gets it back.
        self.map.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }

    /// `None` for a slot whose offsets leave the slot, which no kernel writes.
    fn read_slot(&self, slot: usize) -> Option<Received<'_>> {
        /// Behind the header (32 bytes): sockaddr_ll, of which byte 10 is the packet type.
        const PACKET_TYPE_AT: usize = 32 + 10;
        let bytes = self.map.bytes(slot, SLOT_BYTES)?;
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        // struct tpacket2_hdr: status, len, snaplen (32 bit), mac, net (16 bit), sec, nsec (32 bit).
        let (length, held) = (word(4) as usize, word(8) as usize);
        let mac = usize::from(u16::from_ne_bytes([bytes[12], bytes[13]]));
        let wall_ns = i128::from(word(16)) * 1_000_000_000 + i128::from(word(20));
        Some(Received {
            arrival: Timestamp::from_nanos(u64::try_from(wall_ns + self.wall_offset_ns).unwrap_or(0)),
            outgoing: bytes[PACKET_TYPE_AT] == libc::PACKET_OUTGOING,
            bytes: bytes.get(mac.checked_sub(self.header_bytes)?..mac + held)?,
            frame_bytes: length,
            header_bytes: self.header_bytes,
        })
    }

    /// Measures anew how far the wall clock, which stamps the packets, is from the monotonic clock. Every 100 ms is
    /// enough: the wall clock is slewed by at most 500 ppm, 50 us in that time (man 2 adjtimex).
    pub fn sync_clock(&mut self) {
        self.wall_offset_ns = clock::wall_to_monotonic_ns();
    }

    /// Frames that found the ring full, since it was opened.
    pub fn dropped(&mut self) -> u64 {
        // The kernel counts from the last question on.
        self.dropped += u64::from(socket::drops_since_last_asked(&self.socket));
        self.dropped
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
