//! The process that handles packets. It decides nothing about its own life: it turns until its supervisor hangs up.

use crate::args::WorkerSettings;
use crate::classify::Classifier;
use crate::message::{Message, Report};
use crate::{Intake, Pump, ShaperError};
use engine::{Histogram, Shaper, ShaperConfig};
use platform::netlink::NetlinkError;
use platform::nfqueue::{NfQueue, QueueOptions};
use platform::process::{Channel, Received, ignore_termination, wait_any};
use platform::{clock, sched};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use units::{Bytes, Rate, Timestamp};
use wire::Salt;

/// Between two signs of life. The supervisor waits for ten of them.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Heartbeats between two reports: one a second.
const HEARTBEATS_PER_REPORT: u32 = 10;

/// From this rate on the kernel hands over super-packets whole. Below it cuts them first: at 20 Mbit/s one of
/// 64 KB would keep the line busy for 26 ms.
const GSO_FROM: Rate = Rate::mbit_per_s(100);

/// Modest priority above every normal process; the loop sleeps whenever it has nothing to do.
const FIFO_PRIORITY: u8 = 10;

/// After hanging up, packets may still come until the rules are gone: so long must it be silent, and so long may
/// it last.
const QUIET: Duration = Duration::from_millis(20);
const LONGEST_END: Duration = Duration::from_millis(500);

/// Handles packets until the supervisor hangs up.
///
/// # Errors
/// When it was not started by a supervisor, or the queue is broken.
pub fn run(settings: &WorkerSettings) -> Result<(), ShaperError> {
    let channel =
        Channel::from_standard_input().map_err(ShaperError::io("take over the channel of the supervisor"))?;
    ignore_termination();
    clock::set_exact_timers().map_err(ShaperError::io("make timers exact"))?;
    sched::request_fifo(FIFO_PRIORITY);
    let queue = match bind(settings) {
        Ok(queue) => queue,
        Err(error) => {
            channel.send(&Message::Failed { errno: error.errno(), text: error.to_string() }.to_bytes());
            return Ok(()); // the supervisor tells it
        }
    };
    channel.send(&Message::Hello { queue: queue.number() }.to_bytes());
    turn(&mut pump(queue, settings), &channel)
}

/// Binds the queue. A predecessor that was killed a moment ago may still have the number, so an asked-for number is
/// tried for 200 ms.
fn bind(settings: &WorkerSettings) -> Result<NfQueue, NetlinkError> {
    let gso = Rate::bits_per_s(settings.rate_bits) > GSO_FROM;
    // The engine drops before the kernel's own limit is reached, since it knows which packet to drop.
    let max_packets = 2 * engine_config(settings).limit_packets;
    let options = QueueOptions { number: settings.queue, gso, max_packets };
    let mut tries = if settings.queue.is_some() { 20 } else { 1 };
    loop {
        tries -= 1;
        match NfQueue::bind(options) {
            Err(_) if tries > 0 => clock::sleep_until(clock::now() + Duration::from_millis(10)),
            result => return result,
        }
    }
}

fn engine_config(settings: &WorkerSettings) -> ShaperConfig {
    let rate = Rate::bits_per_s(settings.rate_bits);
    let priority_limit = Bytes::new(settings.prio_bytes);
    ShaperConfig { overhead: settings.overhead, priority_limit, ..ShaperConfig::new(rate) }
}

fn pump(queue: NfQueue, settings: &WorkerSettings) -> Pump<NfQueue> {
    // std seeds its hashers from the system's random source.
    let salt = Salt([0, 1].map(|n: u8| RandomState::new().hash_one(n)));
    let classifier = Classifier { game_ports: settings.game_port.clone(), shape_acks: settings.shape_acks };
    Pump::new(queue, Shaper::new(engine_config(settings)), Intake::new(salt, settings.mtu, classifier))
}

/// The loop: sleep until a packet, a departure or a heartbeat is due.
fn turn(pump: &mut Pump<NfQueue>, channel: &Channel) -> Result<(), ShaperError> {
    let mut pulse = Pulse::new(clock::now());
    let mut departure = Timestamp::MAX;
    loop {
        let deadline = departure.min(pulse.next);
        let [has_packets, has_news] = wait_any([pump.datapath().fd(), channel.fd()], deadline)
            .map_err(ShaperError::io("wait for packets"))?;
        let now = clock::now();
        if has_packets {
            pump.take_in(now).map_err(ShaperError::io("receive packets"))?;
        }
        if has_packets || now >= departure {
            departure = pump.serve(now);
        }
        if now >= pulse.next {
            pulse.beat(now, pump, channel);
        }
        if has_news && channel.receive() == Received::Closed {
            return end(pump);
        }
    }
}

/// Lets everything go that is held, until no more packets come.
fn end(pump: &mut Pump<NfQueue>) -> Result<(), ShaperError> {
    let broken = ShaperError::io("release held packets");
    let last = clock::now() + LONGEST_END;
    pump.release_all().map_err(&broken)?;
    loop {
        let deadline = (clock::now() + QUIET).min(last);
        let [has_packets] = wait_any([pump.datapath().fd()], deadline).map_err(&broken)?;
        if !has_packets || clock::now() >= last {
            return Ok(());
        }
        pump.pass_waiting().map_err(&broken)?;
    }
}

/// Signs of life and reports.
struct Pulse {
    next: Timestamp,
    beats: u32,
    reported: Histogram,
}

impl Pulse {
    fn new(now: Timestamp) -> Self {
        Self { next: now, beats: 0, reported: Histogram::default() }
    }

    /// Sends a heartbeat, or a report in its place. A full channel loses it: then the supervisor is behind, and the
    /// next one does as well.
    fn beat(&mut self, now: Timestamp, pump: &Pump<NfQueue>, channel: &Channel) {
        self.next = now + HEARTBEAT;
        let message = if self.beats.is_multiple_of(HEARTBEATS_PER_REPORT) {
            let report = report(pump, &self.reported);
            self.reported.clone_from(&pump.engine().stats().sojourn);
            Message::Report(report)
        } else {
            Message::Heartbeat
        };
        self.beats = self.beats.wrapping_add(1);
        channel.send(&message.to_bytes());
    }
}

fn report(pump: &Pump<NfQueue>, reported: &Histogram) -> Report {
    let (stats, backlog, errors) = (pump.engine().stats(), pump.engine().backlog(), pump.datapath().errors());
    let sojourn = stats.sojourn.since(reported);
    Report {
        sent_packets: stats.sent.packets,
        sent_wire_bytes: stats.sent_wire_bytes.get(),
        dropped_aqm: stats.dropped_aqm.packets,
        dropped_overflow: stats.dropped_overflow.packets,
        marked: stats.marked,
        express: stats.express,
        backlog_packets: backlog.packets.into(),
        backlog_bytes: backlog.bytes.get(),
        sojourn_p50_ns: Report::nanos(sojourn.quantile(0.5)),
        sojourn_p99_ns: Report::nanos(sojourn.quantile(0.99)),
        overrun_packets: errors.overrun_packets,
        faults: errors.malformed_messages + errors.refused_verdicts,
    }
}
