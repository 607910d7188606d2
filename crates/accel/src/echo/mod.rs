//! Echoes on an established connection and by datagrams: what a handshake cannot see.
//!
//! ```text
//! Client (prober thread)                          EchoServer (thread of its own)
//!   TCP frame, 64 bytes       ------------------>   the same frame back
//!   session over TCP          <------------------   16 random bytes
//!   UDP question              ------------------>   times, counts: an answer of the same length, to that peer only
//! ```
//! A frame on an established connection meets what an application meets: Nagle's algorithm, delayed
//! acknowledgements, the send buffer, and a lost segment that holds up the ones behind it. Datagrams tell the two
//! directions apart, in loss and in the variation of the delay, at two sizes.
//!
//! The server answers no datagram before its sender's address has completed a TCP handshake, shown the token and been
//! told a session over it: a forged source address gets nothing, and nobody gets more than was sent.

mod client;
mod datagram;
mod server;

pub(crate) use client::{DatagramSeries, EchoClient, EchoPlan, EchoResult, Fate, StreamSeries};
pub(crate) use datagram::{Answer, MIN_DATAGRAM_BYTES, Question, Session};
pub(crate) use server::EchoServer;

/// Length of one frame on an echo connection.
pub(crate) const FRAME_BYTES: usize = 64;
