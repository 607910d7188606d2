//! Any sequence of calls, four bytes each: every packet comes back once and in its flow's order.
#![no_main]

use engine::{Class, Framing, Overhead, Packet, Poll, Shaper, ShaperConfig};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::Ecn;

/// Flow, whether it is a pure ACK (these may overtake the flow's other packets), serial number.
type Handle = (u64, bool, u64);

struct World {
    shaper: Shaper<Handle>,
    now: Timestamp,
    serial: u64,
    held: BTreeMap<(u64, bool), VecDeque<u64>>,
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[rate, overhead, limit, credit], calls)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let config = ShaperConfig {
        overhead: Overhead {
            bytes: i32::from(overhead as i8) * 16,
            mpu: u32::from(limit) / 2,
            framing: [Framing::Plain, Framing::Ptm, Framing::Atm][usize::from(credit % 3)],
        },
        limit_packets: limit.into(),
        credit: Duration::from_micros(u64::from(credit) * 4),
        target: Duration::from_micros(500),
        interval: Duration::from_millis(2),
        ..ShaperConfig::new(Rate::kbit_per_s(1 << (rate % 24)))
    };
    let shaper = Shaper::new(config);
    let mut world = World { shaper, now: Timestamp::from_millis(1), serial: 0, held: BTreeMap::new() };
    for &call in calls.as_chunks::<4>().0 {
        world.make(call);
        let held: usize = world.held.values().map(VecDeque::len).sum();
        assert_eq!(world.shaper.stats().held(), held as u64);
    }
    let drained: Vec<_> = world.shaper.drain().collect();
    drained.into_iter().for_each(|handle| world.hand_back(handle));
    assert!(world.held.values().all(VecDeque::is_empty));
    assert_eq!(world.shaper.poll(world.now), Poll::Idle);
});

impl World {
    fn make(&mut self, [kind, a, b, c]: [u8; 4]) {
        match kind % 8 {
            0..=4 => self.push(a, u32::from(b) << (c % 18), c),
            // Also backwards: a caller's clock may be anything.
            5 => self.now = Timestamp::from_micros(u64::from(a) << (b % 32)),
            6 => self.now += Duration::from_micros(u64::from(a) << (b % 12)),
            _ => self.shaper.set_rate(self.now, Rate::kbit_per_s(u64::from(a) << (b % 16))),
        }
        if c & 1 == 1 {
            self.poll();
        }
    }

    fn push(&mut self, which: u8, bytes: u32, bits: u8) {
        let flow = u64::from(which) << 32 | u64::from(which) << 10 | u64::from(which % 3);
        self.serial += 1;
        let class = [Class::Normal, Class::Priority, Class::Ack][usize::from(bits % 3)];
        let is_ack = class == Class::Ack;
        self.held.entry((flow, is_ack)).or_default().push_back(self.serial);
        let packet = Packet {
            handle: (flow, is_ack, self.serial),
            flow,
            bytes,
            segment_bytes: u16::from(bits / 4) * 24,
            header_bytes: 52,
            ecn: Ecn::from_bits(bits >> 1),
            class,
        };
        self.shaper.push(self.now, packet);
    }

    fn poll(&mut self) {
        loop {
            match self.shaper.poll(self.now) {
                Poll::Send { handle, .. } | Poll::Drop { handle, .. } => self.hand_back(handle),
                Poll::WaitUntil(at) => return assert!(at >= self.now),
                Poll::Idle => return assert_eq!(self.shaper.backlog().packets, 0),
            }
        }
    }

    fn hand_back(&mut self, (flow, is_ack, serial): Handle) {
        assert_eq!(self.held.get_mut(&(flow, is_ack)).and_then(VecDeque::pop_front), Some(serial));
    }
}
