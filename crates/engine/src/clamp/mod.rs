//! The receive-window clamp: a receiver decides how much the other side may have under way, and so how long a queue a
//! download can build.
//!
//! ```text
//! inbound  SYN, SYN-ACK, data --on_inbound-->  scale, round trip, rate of each connection
//!                                              | every period: the rate's bytes in flight, divided among the downloads
//! outbound ACK --on_outbound--> the window to write instead (`wire::set_window`), or leave it
//! ```
//! The rules, and where they are kept:
//! 1. All downloads together may have under way what 95 % of the rate carries in a round trip; each active one gets an
//!    equal part of the rate (`budget`), times its own round trip, and one segment more. Idle ones are left alone.
//! 2. The round trip is the smallest of the last minutes, never the present one: that contains the queue (`rtt`).
//! 3. Windows are scaled. A connection whose SYN and SYN-ACK were not both seen to carry a shift is not touched
//!    (RFC 7323 section 2.2), nor is one that signs its segments.
//! 4. The right edge of the window never moves back (RFC 9293 section 3.8.6), the field is rounded up, never larger
//!    than the host's own, never zero, and the window never below four segments. A zero of the host's passes.
//! 5. A connection is left alone in its first 64 KB and three round trips; then the limit comes over one round trip.
//! 6. UDP is not in our hands: its rate is taken off first.
//! 7. The limit goes as it came: it rises until the host's own window is smaller.
//!
//! Sources: RFC 9293, RFC 7323; the idea is that of Jiang et al., "Tackling Bufferbloat in 3G/4G Networks" (IMC 2012),
//! and of RFC 9840.

mod budget;
mod connection;
mod limit;
mod rtt;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use budget::Load;
use std::time::Duration;
use table::Table;
use units::{Bytes, Rate, Timestamp};
use wire::{FlowKey, Salt, Summary, TcpFlags, TcpOptions, protocol};

/// The share of the rate that the downloads may fill.
const UTILISATION: f64 = 0.95;
/// The budget is divided anew after this time or a round trip, whichever is longer.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// How large the windows may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// What keeps the queue of a link of this rate short.
    Rate(Rate),
    /// This much for each connection, from the start.
    Window(Bytes),
}

impl Budget {
    /// The window that holds for every connection, in bytes.
    fn window(self) -> Option<u64> {
        match self {
            Self::Window(window) => Some(window.get()),
            Self::Rate(_) => None,
        }
    }
}

/// Settings of a [`Clamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClampConfig {
    /// How large the windows may be.
    pub budget: Budget,
    /// Round trip of connections that have not shown their own; those without one are left alone if it is `None`.
    pub base_rtt: Option<Duration>,
    /// Connections remembered; the one that was silent the longest makes room (within its part of the table).
    pub connections: usize,
    /// Secret of the table's hash.
    pub salt: Salt,
}

/// What the clamp does at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClampStatus {
    /// Connections remembered.
    pub connections: usize,
    /// Downloads that share the budget.
    pub active: usize,
    /// Those of them that cannot be touched: their handshake was not seen, carried no scale, or they are signed.
    pub untouchable: usize,
    /// Inbound rate of UDP, which is beyond the clamp's reach.
    pub udp: Rate,
    /// Most that the clamped connections together can reach: the sum of window over round trip. A ceiling below the
    /// rate that was asked for throttles.
    pub ceiling: Rate,
    /// Connections that would have to be kept below four segments; the queue will stand in spite of the clamp.
    pub at_floor: usize,
    /// Window fields given out to be written since the start.
    pub rewritten: u64,
}

/// The clamp for many connections.
#[derive(Debug)]
pub struct Clamp {
    config: ClampConfig,
    table: Table,
    /// Start of the present period.
    period_start: Timestamp,
    load: Load,
    status: ClampStatus,
}

impl Clamp {
    /// A clamp that has seen nothing.
    pub fn new(config: ClampConfig) -> Self {
        Self {
            config,
            table: Table::new(config.connections, config.salt),
            period_start: Timestamp::ZERO,
            load: Load::default(),
            status: ClampStatus::default(),
        }
    }

    /// Another budget from now on.
    pub fn set_budget(&mut self, budget: Budget) {
        self.config.budget = budget;
    }

    /// Takes note of a packet that arrives.
    pub fn on_inbound(&mut self, now: Timestamp, packet: &Summary, options: &TcpOptions) {
        self.divide(now);
        if packet.protocol == protocol::UDP {
            self.load.udp_bytes += u64::from(packet.packet_bytes);
        }
        let Some(segment) = packet.tcp else { return };
        let key = reversed(&packet.flow);
        let connection = self.table.entry(key, now);
        if segment.flags.has(TcpFlags::SYN) {
            connection.on_inbound_syn(now, &segment, options);
        } else {
            connection.on_inbound(now, &segment, packet.packet_bytes);
        }
    }

    /// Takes note of a packet that leaves, and tells the window field to write into it, if another one than it has.
    /// To be asked of every packet, when it leaves for good. Where it cannot be written to (a super-packet, a checksum
    /// left to the hardware; see `wire::set_window`), `writable` is false and the answer `None`.
    pub fn on_outbound(
        &mut self,
        now: Timestamp,
        packet: &Summary,
        options: &TcpOptions,
        writable: bool,
    ) -> Option<u16> {
        self.divide(now);
        let segment = packet.tcp?;
        let connection = self.table.entry(packet.flow, now);
        if segment.flags.has(TcpFlags::SYN) {
            connection.on_outbound_syn(now, &segment, options);
            return None;
        }
        if !segment.flags.has(TcpFlags::ACK) || segment.flags.has(TcpFlags::RST) {
            return None;
        }
        let fixed = self.config.budget.window();
        let window = connection.on_outbound(now, &segment, fixed, writable);
        self.status.rewritten += u64::from(window.is_some());
        window
    }

    /// What the clamp does at present.
    pub fn status(&self) -> ClampStatus {
        ClampStatus { connections: self.table.len(), ..self.status }
    }

    /// At the end of a period: who downloads, and how much each may have under way.
    fn divide(&mut self, now: Timestamp) {
        let span = now - self.period_start;
        if span < self.config.base_rtt.unwrap_or_default().max(SHORTEST_PERIOD) {
            return;
        }
        self.period_start = now;
        self.load.end_period(span);
        let rate = match self.config.budget {
            Budget::Rate(rate) => rate.scaled(UTILISATION),
            Budget::Window(_) => Rate::ZERO, // nothing is divided
        };
        let fixed = self.config.budget.window();
        let base_rtt = self.config.base_rtt;
        self.status = ClampStatus { rewritten: self.status.rewritten, ..self.load.status() };
        let share = self.load.share(rate, span, &mut self.table);
        for connection in self.table.iter_mut() {
            connection.end_period(now, share, fixed, base_rtt, &mut self.status);
        }
    }
}

/// The key of the opposite direction.
fn reversed(flow: &FlowKey) -> FlowKey {
    FlowKey {
        source: flow.destination,
        destination: flow.source,
        source_port: flow.destination_port,
        destination_port: flow.source_port,
        protocol: flow.protocol,
    }
}
