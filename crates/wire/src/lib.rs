//! Bytes to packets: what a shaper must know of an IP packet, read safely from bytes that anyone may have sent.
//!
//! ```text
//! bytes (from the IP header on, perhaps cut at 128) --summarize--> Summary
//!        ipv4 | ipv6 + extension headers  ->  IpHeader            |- flow: FlowKey --hash(salt)--> u64
//!        tcp | udp | ... (transport)      ->  ports, TcpSegment   |- ecn, lengths, protocol, tcp, fragment
//! bytes of a TCP segment --sack_blocks--> SackBlocks
//! bytes of a capture file --capture::Reader--> packets
//! bytes of a TCP segment --tcp_options--> TcpOptions (of SYN and SYN-ACK)
//! bytes (mutable) --set_ce--> marked, IPv4 header checksum corrected
//! bytes (mutable) --set_window--> another receive window, TCP checksum corrected
//! ```
//!
//! Invariants, each with a property test:
//! * No input makes any function here panic, allocate or loop longer than the input is long.
//! * Lengths come from the headers, so that a captured prefix summarises like the whole packet.
//! * All fragments of a packet, and all fragmented packets between the same hosts, have one [`FlowKey`].

pub mod capture;
pub mod checksum;
mod ecn;
mod flow_key;
mod ip;
mod ipv4;
mod ipv6;
mod sack;
mod summary;
mod tcp_options;
mod transport;
mod window;

pub use ecn::{Ecn, set_ce};
pub use flow_key::{FlowKey, Salt};
pub use sack::{SackBlocks, sack_blocks};
pub use summary::{Summary, WireError, summarize, summarize_sized};
pub use tcp_options::{TcpOptions, tcp_options};
pub use transport::{TcpFlags, TcpSegment, protocol};
pub use window::set_window;
