//! What the engine costs for each packet.
//!
//! ```text
//! cost run FLOWS PACKETS   runs the workload once; bench/engine-instructions counts its instructions
//! cost ratio               time of push + poll as a ratio to a plain FIFO's push + pop of the same packets
//! ```
//! The workload keeps a link of 1 Gbit/s busy: every packet time one packet of 1500 or 60 bytes of one of FLOWS flows
//! comes in, at first four times as often, so that a backlog stands.

use engine::{Class, Packet, Poll, Shaper, ShaperConfig};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::{Ecn, FlowKey, Salt};

const RATE: Rate = Rate::mbit_per_s(1_000);
/// Time of the mean packet on the link.
const STEP: Duration = Duration::from_nanos(10_080);
const SALT: Salt = Salt([0x5eed, 0xacce1]);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", flows, packets] => {
            let number = |text: &str| text.parse().expect("FLOWS and PACKETS are numbers");
            let input = workload(number(flows), number(packets));
            let mut shaper = warm_shaper(&input);
            let sent = push_and_poll(&mut shaper, &input, Timestamp::from_millis(1_000));
            println!("packets {} sent {sent} dropped {}", input.len(), shaper.stats().dropped_aqm.packets);
        }
        ["ratio"] => ratios(),
        _ => eprintln!("usage: cost run FLOWS PACKETS | cost ratio"),
    }
}

/// `packets` packets that take the flows in turn, in an order without pattern; five of six are full.
fn workload(flows: u64, packets: u64) -> Vec<Packet<u32>> {
    let hash = |flow: u64| {
        let source = [198, 18, (flow >> 16) as u8, 1].into();
        let key = FlowKey {
            source,
            destination: [198, 19, 0, 1].into(),
            source_port: flow as u16,
            destination_port: 443,
            protocol: 6,
        };
        key.hash(&SALT)
    };
    let hashes: Vec<u64> = (0..flows).map(hash).collect();
    (0..packets as u32)
        .map(|handle| {
            let flow = u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15) % flows;
            let bytes = if handle % 6 == 5 { 60 } else { 1_500 };
            let flow = hashes[flow as usize];
            Packet {
                handle,
                flow,
                bytes,
                segment_bytes: 0,
                header_bytes: 52,
                ecn: Ecn::NotEct,
                class: Class::Normal,
            }
        })
        .collect()
}

/// A shaper with a standing backlog, whose memory has reached its steady state.
fn warm_shaper(input: &[Packet<u32>]) -> Shaper<u32> {
    let mut shaper = Shaper::new(ShaperConfig::new(RATE));
    let mut now = Timestamp::ZERO;
    for (at, packet) in input.iter().take(10_000).enumerate() {
        if at % 4 == 0 {
            now += STEP;
        }
        shaper.push(now, *packet);
        while let Poll::Send { .. } | Poll::Drop { .. } = shaper.poll(now) {}
    }
    shaper
}

/// The measured part: each packet is pushed, time goes on by one packet, and the shaper is polled until it waits.
#[inline(never)]
fn push_and_poll(shaper: &mut Shaper<u32>, input: &[Packet<u32>], start: Timestamp) -> u64 {
    let (mut now, mut sent) = (start, 0);
    for packet in input {
        now += STEP;
        shaper.push(now, *packet);
        loop {
            match shaper.poll(now) {
                Poll::Send { handle, .. } => sent += u64::from(black_box(handle) != u32::MAX),
                Poll::Drop { handle, .. } => _ = black_box(handle),
                Poll::WaitUntil(_) | Poll::Idle => break,
            }
        }
    }
    sent
}

/// The yardstick: the same packets through a queue without any rule.
#[inline(never)]
fn fifo(queue: &mut VecDeque<(Timestamp, Packet<u32>)>, input: &[Packet<u32>], start: Timestamp) -> u64 {
    let (mut now, mut sent) = (start, 0);
    for packet in input {
        now += STEP;
        queue.push_back((now, *packet));
        if let Some((_, packet)) = queue.pop_front() {
            sent += u64::from(black_box(packet).handle != u32::MAX);
        }
    }
    sent
}

/// Best of several rounds for each, since everything else on the machine only adds time.
fn ratios() {
    println!("{:>8} {:>12} {:>12} {:>7}", "flows", "engine", "fifo", "ratio");
    for flows in [1, 100, 1_000, 100_000] {
        let input = workload(flows, 200_000);
        let engine = best(&input, || warm_shaper(&input), push_and_poll);
        let plain = best(&input, || input.iter().take(1_000).map(|p| (Timestamp::ZERO, *p)).collect(), fifo);
        println!("{flows:>8} {engine:>9.1} ns {plain:>9.1} ns {:>7.1}", engine / plain);
    }
}

/// Smallest time for each packet in ns.
fn best<S>(
    input: &[Packet<u32>],
    prepare: impl Fn() -> S,
    run: fn(&mut S, &[Packet<u32>], Timestamp) -> u64,
) -> f64 {
    let rounds = (0..7).map(|_| {
        let mut state = prepare();
        let started = clock();
        black_box(run(&mut state, input, Timestamp::from_millis(1_000)));
        started.elapsed().as_secs_f64() * 1e9 / input.len() as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time; the engine itself never asks")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
