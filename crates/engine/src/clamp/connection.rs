//! What is known of one connection, and the window that it may announce.

use super::ClampStatus;
use super::budget::{Share, smooth};
use super::limit::Limit;
use super::rtt::BaseRtt;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};
use wire::{TcpOptions, TcpSegment};

/// Received bytes and round trips in which a connection is left alone: short transfers end before they fill a queue,
/// and slow start needs room.
const EXEMPT_BYTES: u64 = 64_000;
const EXEMPT_ROUND_TRIPS: u32 = 3;
/// No window is kept below so many segments: fewer cannot keep loss recovery going (RFC 5681 section 3.2).
const LEAST_SEGMENTS: u64 = 4;
/// Data of a full segment on Ethernet, when the handshake does not tell (RFC 9293 section 3.7.1 would say 536).
const DEFAULT_SEGMENT_BYTES: u16 = 1_460;
/// Of the rate that makes a download, what keeps it one.
const STAYS_ACTIVE: f64 = 0.25;
/// A round trip of less, on the own network, is taken as this much.
const SHORTEST_RTT: Duration = Duration::from_millis(1);

/// What a SYN or SYN-ACK of one side said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Unseen,
    NoScale,
    Shift(u8),
}

impl Handshake {
    fn of(options: &TcpOptions) -> Self {
        options.window_shift.map_or(Self::NoScale, Self::Shift)
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    since: Timestamp,
    /// Sequence number of the SYN that opened it, if that was seen.
    opened_by: Option<u32>,
    ours: Handshake,
    theirs: Handshake,
    signed: bool,
    segment_bytes: u16,
    /// Window of our SYN, which is never scaled.
    syn_window: u16,
    /// When our SYN or SYN-ACK left; `None` once it is answered, and when it was sent twice (Karn's rule).
    syn_at: Option<Timestamp>,
    rtt: BaseRtt,
    /// Right edge of the window as the peer knows it, the farthest one that left.
    edge: Option<u32>,
    /// The highest acknowledgement sent.
    acknowledged: u32,
    /// The host's own window in the last segment.
    host_window: u64,
    /// An edge, and when the first segment left that moved it on: data beyond it is an answer to that segment.
    timing: Option<(u32, Timestamp)>,
    /// Data received since the start, and packets' bytes in this period.
    received: u64,
    period_bytes: u64,
    /// Smoothed rate in bit/s.
    bits: f64,
    limit: Option<Limit>,
}

impl Connection {
    pub fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            opened_by: None,
            ours: Handshake::Unseen,
            theirs: Handshake::Unseen,
            signed: false,
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            syn_window: 0,
            syn_at: None,
            rtt: BaseRtt::default(),
            edge: None,
            acknowledged: 0,
            host_window: 0,
            timing: None,
            received: 0,
            period_bytes: 0,
            bits: 0.0,
            limit: None,
        }
    }

    pub fn on_outbound_syn(&mut self, now: Timestamp, segment: &TcpSegment, options: &TcpOptions) {
        if segment.flags.has(wire::TcpFlags::ACK) {
            self.announce(now, segment.ack.wrapping_add(segment.window.into()));
        } else {
            self.open(now, segment.seq);
            self.syn_window = segment.window;
        }
        let is_repeated = self.ours != Handshake::Unseen;
        self.ours = Handshake::of(options);
        self.signed |= options.signed;
        self.segment_bytes = options.max_segment_bytes.unwrap_or(DEFAULT_SEGMENT_BYTES).max(1);
        self.syn_at = if is_repeated { None } else { Some(now) };
    }

    pub fn on_inbound_syn(&mut self, now: Timestamp, segment: &TcpSegment, options: &TcpOptions) {
        if segment.flags.has(wire::TcpFlags::ACK) {
            self.on_answer(now);
            self.announce(now, segment.seq.wrapping_add(1).wrapping_add(self.syn_window.into()));
        } else {
            self.open(now, segment.seq);
        }
        self.theirs = Handshake::of(options);
        self.signed |= options.signed;
    }

    pub fn on_inbound(&mut self, now: Timestamp, segment: &TcpSegment, packet_bytes: u32) {
        self.on_answer(now);
        self.period_bytes += u64::from(packet_bytes);
        self.received += u64::from(segment.payload_bytes);
        if let Some((edge, left)) = self.timing
            // One byte beyond the edge may be a probe of a closed window.
            && is_after(segment.seq.wrapping_add(segment.payload_bytes), edge.wrapping_add(1))
        {
            self.rtt.on_sample(now, now - left);
            self.timing = None;
        }
    }

    /// The window field for a segment that acknowledges, if not its own. `fixed` is a limit that holds for all.
    /// One that is not `writable` keeps its own.
    pub fn on_outbound(
        &mut self,
        now: Timestamp,
        segment: &TcpSegment,
        fixed: Option<u64>,
        writable: bool,
    ) -> Option<u16> {
        let shift = self.shift()?;
        let field = if writable { self.field(now, segment, shift, fixed) } else { segment.window };
        self.host_window = u64::from(segment.window) << shift;
        self.acknowledged = segment.ack;
        self.announce(now, segment.ack.wrapping_add(u32::from(field) << shift));
        (field != segment.window).then_some(field)
    }

    /// Smooths the rate of the period that ends.
    pub fn measure(&mut self, span: Duration) -> f64 {
        self.bits = smooth(self.bits, self.period_bytes, span);
        self.period_bytes = 0;
        self.bits
    }

    /// Whether this is a download. One that is limited stays one until it has all but ended: small windows make its
    /// rate uneven.
    pub fn is_active(&self, above: f64) -> bool {
        self.bits > if self.limit.is_some() { above * STAYS_ACTIVE } else { above }
    }

    /// Sets the limit for the next period.
    pub fn end_period(
        &mut self,
        now: Timestamp,
        share: Share,
        fixed: Option<u64>,
        base_rtt: Option<Duration>,
        status: &mut ClampStatus,
    ) {
        let is_active = self.is_active(share.active_above);
        status.active += usize::from(is_active);
        if self.shift().is_none() {
            status.untouchable += usize::from(is_active);
            return;
        }
        let Some(rtt) = self.rtt.get().or(base_rtt).map(|rtt| rtt.max(SHORTEST_RTT)) else { return };
        if !is_active {
            return self.fade_out(now, rtt);
        }
        if let Some(window) = fixed {
            return self.report(window, rtt, status);
        }
        let is_young = now - self.since < rtt * EXEMPT_ROUND_TRIPS || self.received < EXEMPT_BYTES;
        if is_young && self.limit.is_none() {
            return;
        }
        let window = (share.rate * rtt).get() + u64::from(self.segment_bytes);
        self.report(window, rtt, status);
        let window = window.max(self.floor());
        let allowed = self.allowed();
        let limit = self.limit.get_or_insert_with(|| Limit::new(now, allowed.max(window), window, rtt));
        limit.aim(now, window, rtt);
    }

    /// Adds to the status what a limit of `window` bytes means for the connection.
    fn report(&self, window: u64, rtt: Duration, status: &mut ClampStatus) {
        status.at_floor += usize::from(window < self.floor());
        let reach = Bytes::new(window.max(self.floor()).min(self.host_window));
        let sum = status.ceiling.as_bits_per_s().saturating_add(Rate::of(reach, rtt).as_bits_per_s());
        status.ceiling = Rate::bits_per_s(sum);
    }

    #[cfg(test)]
    pub fn base_rtt(&self) -> Option<Duration> {
        self.rtt.get()
    }

    /// A new connection, unless this SYN was seen before.
    fn open(&mut self, now: Timestamp, seq: u32) {
        if self.opened_by != Some(seq) {
            *self = Self { opened_by: Some(seq), ..Self::new(now) };
        }
    }

    /// The first segment after our SYN or SYN-ACK: a round trip before there is any queue of this connection.
    fn on_answer(&mut self, now: Timestamp) {
        if let Some(left) = self.syn_at.take() {
            self.rtt.on_sample(now, now - left);
        }
    }

    /// By how much our windows are shifted; `None` when they must not be touched.
    fn shift(&self) -> Option<u8> {
        match (self.ours, self.theirs) {
            (Handshake::Shift(shift), Handshake::Shift(_)) if !self.signed => Some(shift),
            _ => None,
        }
    }

    fn floor(&self) -> u64 {
        LEAST_SEGMENTS * u64::from(self.segment_bytes)
    }

    /// What the peer may send beyond what was acknowledged.
    fn allowed(&self) -> u64 {
        self.edge.map_or(0, |edge| distance(self.acknowledged, edge))
    }

    /// The window field that keeps the limit: the right edge does not move back, and nothing grows.
    fn field(&self, now: Timestamp, segment: &TcpSegment, shift: u8, fixed: Option<u64>) -> u16 {
        let limit = fixed.map(|window| window.max(self.floor()));
        let Some(limit) = limit.or_else(|| Some(self.limit?.at(now))) else { return segment.window };
        let kept = self.edge.map_or(0, |edge| distance(segment.ack, edge));
        let field = limit.max(kept).div_ceil(1 << shift).max(1);
        u16::try_from(field).unwrap_or(u16::MAX).min(segment.window)
    }

    /// A segment leaves with this right edge.
    fn announce(&mut self, now: Timestamp, edge: u32) {
        let Some(before) = self.edge else {
            self.edge = Some(edge);
            return;
        };
        if is_after(edge, before) {
            self.timing.get_or_insert((before, now));
            self.edge = Some(edge);
        }
    }

    /// No download any more: the limit doubles until it is none.
    fn fade_out(&mut self, now: Timestamp, rtt: Duration) {
        let Some(limit) = &mut self.limit else { return };
        let value = limit.at(now);
        if value >= self.host_window {
            self.limit = None;
        } else if value == limit.target() {
            limit.aim(now, value.saturating_mul(2), rtt);
        }
    }
}

/// Whether `a` comes after `b` (RFC 9293 section 3.4).
const fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// From `from` to a later number, 0 if it is an earlier one.
const fn distance(from: u32, to: u32) -> u64 {
    if is_after(to, from) { to.wrapping_sub(from) as u64 } else { 0 }
}
