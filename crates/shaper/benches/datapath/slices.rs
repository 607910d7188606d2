//! Uploads through one queue whose packets are handled in turn by the bare loop and by the pump.

use crate::bulk::{INTERFACE, Uploads, World};
use engine::{Shaper, ShaperConfig};
use platform::clock;
use platform::datapath::Datapath;
use platform::nfqueue::{NfQueue, QueueOptions};
use platform::nft::{RulePlan, Rules};
use platform::process::wait_any;
use shaper::classify::Classifier;
use shaper::{Intake, Pump};
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::Salt;

/// Long enough for some thousand packets, short against the changes of the machine's other load.
const SLICE: Duration = Duration::from_millis(20);
/// Slices until the uploads run at full speed and every buffer is warm.
const WARM_UP: usize = 25;

/// What was done in one slice.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    packets: u64,
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

impl Slice {
    pub fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.wall.as_secs_f64()
    }

    pub fn bits_per_s(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.wall.as_secs_f64()
    }

    pub fn cpu_ns_per_packet(&self) -> f64 {
        self.cpu.as_nanos() as f64 / self.packets as f64
    }
}

/// Two slices, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub bare: Slice,
    pub pump: Slice,
}

/// Runs the bare loop and the pump in turn, `pairs` times.
pub fn run(gso: bool, pairs: usize) -> Vec<Pair> {
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
        let config = ShaperConfig::new(Rate::mbit_per_s(1_000_000));
        let mut handlers = Handlers {
            pump: Pump::new(
                queue,
                Shaper::new(config),
                Intake::new(Salt([1, 2]), 1500, Classifier::default()),
            ),
            handles: Vec::new(),
            bytes: 0,
        };
        let measured = handlers.alternate(pairs);
        rules.remove().unwrap();
        uploads.stop();
        measured
    })
}

struct Handlers {
    pump: Pump<NfQueue>,
    handles: Vec<u32>,
    bytes: u64,
}

impl Handlers {
    /// Pairs in which nothing came (the uploads recover from a loss) tell nothing and are left out.
    fn alternate(&mut self, pairs: usize) -> Vec<Pair> {
        for _ in 0..WARM_UP {
            self.slice(false);
        }
        let measured = (0..pairs).map(|_| Pair { bare: self.slice(false), pump: self.slice(true) });
        measured.filter(|pair| pair.bare.packets > 0 && pair.pump.packets > 0).collect()
    }

    fn slice(&mut self, with_engine: bool) -> Slice {
        let (start, cpu, bytes) = (clock::now(), clock::thread_cpu_time(), self.bytes);
        let packets = self.turn_until(start + SLICE, with_engine) as u64;
        Slice {
            packets,
            bytes: self.bytes - bytes,
            wall: clock::now() - start,
            cpu: clock::thread_cpu_time() - cpu,
        }
    }

    /// The program's own loop: one wait, one batch in, everything due out.
    fn turn_until(&mut self, end: Timestamp, with_engine: bool) -> usize {
        let mut packets = 0;
        loop {
            let [ready] = wait_any([self.pump.datapath().fd()], end).unwrap();
            let now = clock::now();
            if now >= end {
                return packets;
            }
            if ready {
                packets += if with_engine { self.turn_pump(now) } else { self.turn_bare() };
            }
        }
    }

    fn turn_bare(&mut self) -> usize {
        self.handles.clear();
        let (handles, bytes) = (&mut self.handles, &mut self.bytes);
        let queue = self.pump.datapath_mut();
        let received = Datapath::receive(queue, |captured| {
            handles.push(captured.handle);
            *bytes += u64::from(captured.bytes);
        });
        for &handle in &self.handles {
            self.pump.datapath_mut().send(handle, false);
        }
        self.pump.datapath_mut().flush();
        received.unwrap()
    }

    fn turn_pump(&mut self, now: Timestamp) -> usize {
        let before = self.pump.engine().stats().sent.bytes;
        let received = self.pump.take_in(now).unwrap();
        assert_eq!(self.pump.serve(now), Timestamp::MAX, "the engine must not shape here");
        self.bytes += (self.pump.engine().stats().sent.bytes - before).get();
        received
    }
}
