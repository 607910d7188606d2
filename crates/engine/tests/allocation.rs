//! The steady state allocates nothing. A test binary of its own, since it counts the whole program's allocations.

use engine::{Class, Packet, Poll, Shaper, ShaperConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::Duration;
use units::{Rate, Timestamp};
use wire::Ecn;

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Offers 10 % more than the rate with packets of `flows` flows and polls; gives the packets handed back.
fn run(shaper: &mut Shaper<u64>, from: Timestamp, packets: u64, flows: u64) -> (Timestamp, u64) {
    let (mut now, mut back) = (from, 0);
    for handle in 0..packets {
        let flow = (handle % flows).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (bytes, class) = match handle % 10 {
            8 => (1_500, Class::Priority),
            9 => (60, Class::Ack),
            _ => (1_700, Class::Normal),
        };
        let packet =
            Packet { handle, flow, bytes, segment_bytes: 0, header_bytes: 52, ecn: Ecn::Ect0, class };
        shaper.push(now, packet);
        now += Duration::from_micros(109);
        while let Poll::Send { .. } | Poll::Drop { .. } = shaper.poll(now) {
            back += 1;
        }
    }
    (now, back)
}

#[test]
fn push_and_poll_allocate_nothing_even_while_marking_dropping_and_overflowing() {
    let mut shaper =
        Shaper::new(ShaperConfig { limit_packets: 2_000, ..ShaperConfig::new(Rate::mbit_per_s(100)) });
    let (now, _) = run(&mut shaper, Timestamp::ZERO, 100, 10);
    let mut regions = Vec::new();
    let (mut now, mut back) = (now, 0);
    for _ in 0..5 {
        let region = Region::new(COUNTING);
        let (later, more) = run(&mut shaper, now, 40_000, 5_000);
        let change = region.change();
        regions.push((change.allocations, change.reallocations, change.deallocations));
        (now, back) = (later, back + more);
    }
    // The test harness has a thread of its own, which allocates once when it comes to run.
    let silent = regions.iter().filter(|&&region| region == (0, 0, 0)).count();
    assert!(silent >= 4, "{regions:?}");
    let stats = shaper.stats();
    assert!(stats.marked > 0 && stats.dropped_overflow.packets > 0 && back > 100_000, "{stats:?}");
    assert!(
        stats.priority.packets > 0 && stats.demotions > 0 && stats.acks_bypassed.packets > 0,
        "{stats:?}"
    );
    let region = Region::new(COUNTING);
    assert!(Box::new(back) == Box::new(back) && region.change().allocations > 0, "the counter counts");
}
