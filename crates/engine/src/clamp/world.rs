//! Downloads through one bottleneck in virtual time, to this host behind its clamp. Senders know slow start and the
//! window that they were told, and nothing else: without a clamp they fill any buffer.

use super::tests::{SYN_ACK, options, segment, summary};
use super::{Clamp, ClampConfig};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};
use wire::{TcpFlags, TcpOptions, protocol};

const SEGMENT: u64 = 1_448;
pub const SHIFT: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The SYN leaves.
    Syn,
    /// The SYN-ACK arrives here.
    SynAck,
    /// A segment arrives here that begins at this offset; when it came to the bottleneck.
    Data(u64, Timestamp),
    /// An acknowledgement arrives at the sender: offset, right edge.
    Ack(u64, u64),
    /// A packet of UDP arrives here, the next one leaves.
    Udp,
}

/// One download.
#[derive(Clone, Debug)]
pub struct Download {
    rtt: Duration,
    end: Timestamp,
    congestion_window: u64,
    sent: u64,
    acknowledged: u64,
    edge: u64,
    /// In order, at the receiver.
    pub received: u64,
    /// The window announced last.
    pub window: u64,
}

pub struct World {
    pub clamp: Clamp,
    pub now: Timestamp,
    rate: Rate,
    /// The receiving host's own window when it has opened it.
    host_window: u64,
    free: Timestamp,
    events: BinaryHeap<Reverse<(Timestamp, u64, usize, Event)>>,
    serial: u64,
    pub downloads: Vec<Download>,
    /// Time in the bottleneck's queue since the last look.
    pub delays: Vec<Duration>,
}

impl World {
    pub fn new(config: ClampConfig, rate: Rate, host_window: u64) -> Self {
        Self {
            clamp: Clamp::new(config),
            now: Timestamp::from_millis(10_000),
            rate,
            host_window,
            free: Timestamp::ZERO,
            events: BinaryHeap::new(),
            serial: 0,
            downloads: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// A download over a path of round trip `rtt` that begins now and sends until `end`.
    pub fn start(&mut self, rtt: Duration, end: Timestamp) {
        self.downloads.push(Download {
            rtt,
            end,
            congestion_window: 10 * SEGMENT,
            sent: 0,
            acknowledged: 0,
            edge: 0,
            received: 0,
            window: 0,
        });
        // Not all in the same nanosecond.
        let at = self.now + Duration::from_micros(self.downloads.len() as u64 * 713);
        self.schedule(at, self.downloads.len() - 1, Event::Syn);
    }

    /// Packets of UDP of 1250 bytes, one each millisecond for each 10 Mbit/s.
    pub fn start_udp(&mut self, mbit: usize) {
        (0..mbit / 10).for_each(|_| self.schedule(self.now, 0, Event::Udp));
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(Reverse((at, _, flow, event))) = self.events.peek().copied() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            self.happen(flow, event);
        }
        self.now = end;
    }

    /// The queueing delay at quantile `q` of what arrived since the last look, which it forgets.
    pub fn delay(&mut self, q: f64) -> Duration {
        self.delays.sort_unstable();
        self.delays[((q * self.delays.len() as f64).ceil() as usize).clamp(1, self.delays.len()) - 1]
    }

    fn schedule(&mut self, at: Timestamp, flow: usize, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, flow, event)));
    }

    fn happen(&mut self, flow: usize, event: Event) {
        let port = flow as u16;
        let handshake = options(Some(SHIFT));
        match event {
            Event::Syn => {
                let syn = segment(TcpFlags::SYN, 7, 0, 64_240, 0);
                self.clamp.on_outbound(self.now, &summary(true, port, syn), &handshake, true);
                self.schedule(self.now + self.downloads[flow].rtt, flow, Event::SynAck);
            }
            Event::SynAck => {
                let syn_ack = segment(SYN_ACK, u32::MAX, 8, 65_535, 0);
                self.clamp.on_inbound(self.now, &summary(false, port, syn_ack), &handshake);
                self.acknowledge(flow);
            }
            Event::Data(offset, arrived) => {
                self.delays.push(self.now - arrived - self.downloads[flow].rtt / 2);
                let data = segment(TcpFlags::ACK, offset as u32, 8, 500, SEGMENT as u32);
                self.clamp.on_inbound(self.now, &summary(false, port, data), &TcpOptions::default());
                let download = &mut self.downloads[flow];
                download.received += SEGMENT;
                if (download.received / SEGMENT).is_multiple_of(2) {
                    self.acknowledge(flow);
                }
            }
            Event::Ack(acknowledged, edge) => {
                let download = &mut self.downloads[flow];
                download.congestion_window += acknowledged - download.acknowledged;
                download.acknowledged = acknowledged;
                download.edge = download.edge.max(edge);
                self.send(flow);
            }
            Event::Udp => {
                let mut packet = summary(false, 9, segment(TcpFlags::ACK, 0, 0, 0, 0));
                (packet.flow.protocol, packet.protocol, packet.tcp) = (protocol::UDP, protocol::UDP, None);
                packet.packet_bytes = 1_250;
                self.clamp.on_inbound(self.now, &packet, &TcpOptions::default());
                self.free = self.free.max(self.now) + Bytes::new(1_250) / self.rate;
                self.schedule(self.now + Duration::from_millis(1), 0, Event::Udp);
            }
        }
    }

    fn acknowledge(&mut self, flow: usize) {
        let received = self.downloads[flow].received;
        // Hosts open their windows as data comes in (receive-buffer autotuning).
        let own = self.host_window.min(65_536 + 2 * received);
        let field = (own >> SHIFT) as u16;
        let ack = segment(TcpFlags::ACK, 8, received as u32, field, 0);
        let packet = summary(true, flow as u16, ack);
        let field = self.clamp.on_outbound(self.now, &packet, &TcpOptions::default(), true).unwrap_or(field);
        let window = u64::from(field) << SHIFT;
        self.downloads[flow].window = window;
        let at = self.now + self.downloads[flow].rtt / 2;
        self.schedule(at, flow, Event::Ack(received, received + window));
    }

    /// Sends what slow start and the window allow.
    fn send(&mut self, flow: usize) {
        loop {
            let now = self.now;
            let download = &mut self.downloads[flow];
            let last = download.edge.min(download.acknowledged + download.congestion_window);
            if now >= download.end || download.sent + SEGMENT > last {
                return;
            }
            let offset = download.sent;
            download.sent += SEGMENT;
            self.free = self.free.max(now) + Bytes::new(1_500) / self.rate;
            let at = self.free + self.downloads[flow].rtt / 2;
            self.schedule(at, flow, Event::Data(offset, now));
        }
    }
}
