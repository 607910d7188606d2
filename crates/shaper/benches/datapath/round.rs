//! One second of uploads through one kind of handler.

use crate::bulk::{INTERFACE, Uploads, World};
use engine::{Shaper, ShaperConfig};
use platform::clock;
use platform::datapath::Datapath;
use platform::nfqueue::{NfQueue, QueueOptions};
use platform::nft::{RulePlan, Rules};
use platform::process::wait_any;
use shaper::{Intake, Pump};
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::Salt;

const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    Bare,
    Pump,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub packets_per_s: f64,
    pub bits_per_s: f64,
    pub cpu_ns_per_packet: f64,
}

/// A fresh world each time, so that no round inherits another's congestion state.
pub fn run(handler: Handler, gso: bool) -> Outcome {
    let world = World::new();
    world.client.run(|| {
        let queue = NfQueue::bind(QueueOptions { number: None, gso, max_packets: 20_000 }).unwrap();
        let plan = RulePlan {
            table: "accel_bench".to_owned(),
            interface: INTERFACE.to_owned(),
            queue: queue.number(),
            bypass: Vec::new(),
        };
        let rules = Rules::install(&plan).unwrap();
        let uploads = Uploads::start(&world, 4);
        let outcome = match handler {
            Handler::Bare => measure(&mut Bare { queue, ids: Vec::new() }),
            Handler::Pump => {
                let config = ShaperConfig::new(Rate::mbit_per_s(1_000_000));
                measure(&mut Pump::new(queue, Shaper::new(config), Intake::new(Salt([1, 2]), 1500)))
            }
        };
        rules.remove().unwrap();
        uploads.stop();
        outcome
    })
}

/// The part of a handler that the loop needs.
trait Loop {
    fn turn(&mut self, now: Timestamp) -> usize;
    fn queue(&self) -> &NfQueue;
}

struct Bare {
    queue: NfQueue,
    ids: Vec<u32>,
}

impl Loop for Bare {
    fn turn(&mut self, _now: Timestamp) -> usize {
        self.ids.clear();
        let ids = &mut self.ids;
        let count = Datapath::receive(&mut self.queue, |captured| ids.push(captured.handle)).unwrap();
        for &id in &self.ids {
            self.queue.send(id, false);
        }
        self.queue.flush();
        count
    }

    fn queue(&self) -> &NfQueue {
        &self.queue
    }
}

impl Loop for Pump<NfQueue> {
    fn turn(&mut self, now: Timestamp) -> usize {
        let count = self.take_in(now).unwrap();
        assert_eq!(self.serve(now), Timestamp::MAX, "the engine must not shape here");
        count
    }

    fn queue(&self) -> &NfQueue {
        self.datapath()
    }
}

fn measure(handler: &mut impl Loop) -> Outcome {
    turn_until(handler, clock::now() + WARM_UP);
    let (start, cpu, bytes) = (clock::now(), cpu_ns(), transmitted_bytes());
    let packets = turn_until(handler, start + MEASURED);
    let seconds = (clock::now() - start).as_secs_f64();
    assert!(packets > 0, "no packet came");
    Outcome {
        packets_per_s: packets as f64 / seconds,
        bits_per_s: (transmitted_bytes() - bytes) as f64 * 8.0 / seconds,
        cpu_ns_per_packet: (cpu_ns() - cpu) as f64 / packets as f64,
    }
}

/// The program's own loop: one wait, one batch in, everything due out.
fn turn_until(handler: &mut impl Loop, end: Timestamp) -> usize {
    let mut packets = 0;
    loop {
        let [ready] = wait_any([handler.queue().fd()], end).unwrap();
        let now = clock::now();
        if now >= end {
            return packets;
        }
        if ready {
            packets += handler.turn(now);
        }
    }
}

/// Time that this thread has run, in ns: the first field of its schedstat.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Bytes that the interface has sent: the ninth number of its line.
fn transmitted_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)).unwrap();
    line.trim_start_matches(':').split_whitespace().nth(8).unwrap().parse().unwrap()
}
