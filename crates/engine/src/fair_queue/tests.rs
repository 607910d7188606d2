use super::*;
use wire::Ecn;

const QUANTUM: i64 = 1_514;

fn packet(flow: u64, handle: u32, bytes: u32) -> Packet<u32> {
    Packet { handle, flow, bytes, segment_bytes: 0, header_bytes: 40, ecn: Ecn::NotEct, class: Class::Normal }
}

/// A fair queue with its pushes and sends in short form.
struct Bench(FairQueue<u32>);

impl Bench {
    fn new() -> Self {
        Self(FairQueue::new(16))
    }

    /// Queues a packet and gives the index of its queue.
    fn push(&mut self, flow: u64, handle: u32, bytes: u32) -> u32 {
        let held = Held {
            packet: packet(flow, handle, bytes),
            enqueued: Timestamp::ZERO,
            wire_bytes: bytes,
            guest: false,
        };
        self.0.push(held, QUANTUM);
        self.0.table.assign(flow).queue
    }

    /// Sends the next packet and pays for it.
    fn send(&mut self) -> Option<u32> {
        let index = self.0.select(QUANTUM)?;
        let held = self.0.take(index)?;
        self.0.table.queues[index as usize].deficit -= i64::from(held.wire_bytes);
        Some(held.packet.handle)
    }

    fn queue(&self, index: u32) -> &crate::flow_table::FlowQueue {
        &self.0.table.queues[index as usize]
    }

    /// Puts `flow` onto OLD with `packets` large packets waiting.
    fn bulk(&mut self, flow: u64, packets: u32) -> u32 {
        let index = self.push(flow, 0, 1_514);
        (1..=packets).for_each(|_| {
            self.push(flow, 0, 1_514);
        });
        assert_eq!(self.send(), Some(0));
        assert_eq!(self.0.select(QUANTUM), Some(index));
        assert_eq!(self.queue(index).place, Place::Old);
        index
    }
}

#[test]
fn a_packet_for_an_idle_queue_puts_it_at_the_tail_of_new_with_one_quantum() {
    let mut bench = Bench::new();
    let (first, second) = (bench.push(1, 0, 100), bench.push(2, 0, 100));
    assert_eq!(bench.0.new.iter(&bench.0.table.queues).collect::<Vec<_>>(), [first, second]);
    assert_eq!((bench.queue(second).place, bench.queue(second).deficit), (Place::New, QUANTUM));
}

#[test]
fn a_packet_for_a_listed_queue_touches_neither_list_nor_deficit() {
    let mut bench = Bench::new();
    let index = bench.push(1, 0, 1_000);
    bench.send();
    bench.push(1, 1, 1_000);
    assert_eq!((bench.queue(index).place, bench.queue(index).deficit), (Place::New, QUANTUM - 1_000));

    let mut bench = Bench::new();
    let old = bench.bulk(2, 1);
    let deficit = bench.queue(old).deficit;
    bench.push(2, 0, 1_514);
    assert_eq!((bench.queue(old).place, bench.queue(old).deficit), (Place::Old, deficit));
}

#[test]
fn new_is_served_before_old() {
    let mut bench = Bench::new();
    bench.bulk(1, 3);
    bench.push(2, 77, 100);
    assert_eq!(bench.send(), Some(77));
    assert_eq!(bench.send(), Some(0));
}

#[test]
fn a_queue_without_deficit_gets_a_quantum_and_goes_to_the_tail_of_old() {
    let mut bench = Bench::new();
    let other = bench.bulk(2, 2);
    let index = bench.push(1, 5, 1_600);
    bench.push(1, 6, 1_600);
    assert_eq!(bench.send(), Some(5));
    assert_eq!(bench.send(), Some(0), "the queue in debt gives way");
    assert_eq!(bench.queue(index).deficit, QUANTUM - 1_600 + QUANTUM);
    assert_eq!(bench.0.old.iter(&bench.0.table.queues).collect::<Vec<_>>(), [other, index]);
}

#[test]
fn an_empty_queue_of_new_goes_to_the_tail_of_old_and_an_empty_one_of_old_away() {
    let mut bench = Bench::new();
    let bulk = bench.bulk(1, 2);
    let sparse = bench.push(2, 77, 100);
    assert_eq!(bench.send(), Some(77));
    assert_eq!(bench.queue(sparse).place, Place::New, "found empty only at its next turn");
    assert_eq!(bench.send(), Some(0));
    assert_eq!(bench.0.old.iter(&bench.0.table.queues).collect::<Vec<_>>(), [bulk, sparse]);
    assert_eq!(bench.send(), Some(0));
    assert_eq!(bench.send(), None);
    assert_eq!(bench.queue(sparse).place, Place::Idle);
}

#[test]
fn a_flow_of_single_packets_cannot_starve_old_by_becoming_new_again() {
    let mut bench = Bench::new();
    bench.bulk(1, 50);
    let mut sent = [0, 0];
    for _ in 0..60 {
        bench.push(2, 1, 100);
        sent[bench.send().unwrap() as usize] += 1;
    }
    assert!(sent[0] >= 3, "{sent:?}"); // one large packet for each quantum of small ones
}

#[test]
fn codel_state_outlives_the_packets_of_the_queue() {
    let mut bench = Bench::new();
    let index = bench.push(1, 0, 100);
    bench.0.table.queues[index as usize].codel = crate::codel::Codel::with_count(7);
    bench.send();
    assert_eq!(bench.send(), None);
    assert_eq!(bench.queue(index).place, Place::Idle);
    assert_eq!(bench.push(1, 1, 100), index);
    assert_eq!(bench.queue(index).codel.count(), 7);
}

#[test]
fn overflow_takes_half_the_bytes_of_the_fattest_queue_from_its_head() {
    let mut bench = Bench::new();
    bench.push(1, 100, 3_000);
    let fat = (0..10).map(|handle| bench.push(2, handle, 1_000)).last().unwrap();
    bench.0.shed_fattest();
    let doomed: Vec<u32> =
        std::iter::from_fn(|| bench.0.take_doomed()).map(|held| held.packet.handle).collect();
    assert_eq!(doomed, [0, 1, 2, 3, 4]);
    assert_eq!(bench.queue(fat).bytes, 5_000);
    assert_eq!(bench.0.backlog(), Backlog { packets: 6, bytes: Bytes::new(8_000) });
}

#[test]
fn one_overflow_takes_at_most_64_packets() {
    let mut bench = Bench::new();
    for handle in 0..200 {
        bench.push(1, handle, 1_000);
    }
    bench.0.shed_fattest();
    assert_eq!(std::iter::from_fn(|| bench.0.take_doomed()).count(), 64);
}

/// Turn by turn this would take 14 million rounds of 500 queues, minutes instead of milliseconds.
#[test]
fn queues_deep_in_debt_do_not_take_their_rounds_one_by_one() {
    let mut bench = Bench::new();
    for flow in 1..=500 {
        bench.push(flow, 0, u32::MAX);
        bench.push(flow, 1, 1_000);
    }
    (0..500).for_each(|_| assert_eq!(bench.send(), Some(0)));
    let index = bench.0.select(300).unwrap();
    assert!((1..=300).contains(&bench.queue(index).deficit));
}

#[test]
fn skipped_rounds_keep_the_shares_of_turns_taken_one_by_one() {
    let mut bench = Bench::new();
    for (flow, bytes) in [(1, 30_000), (2, 9_000), (3, 60_000)] {
        bench.push(flow, 0, bytes);
        bench.push(flow, flow as u32, 1_000);
    }
    (0..3).for_each(|_| assert_eq!(bench.send(), Some(0)));
    let order: Vec<u32> = std::iter::from_fn(|| bench.send()).collect();
    assert_eq!(order, [2, 1, 3]);
}

#[test]
fn the_express_lane_takes_small_packets_that_find_their_queue_empty() {
    let mut bench = Bench::new();
    bench.bulk(1, 1);
    bench.push(1, 5, 64);
    assert_eq!(bench.0.select_express(), None, "small, but behind others of its flow");
    bench.push(2, 6, EXPRESS_BYTES + 1);
    assert_eq!(bench.0.select_express(), None, "alone, but large");
    let small = bench.push(3, 7, EXPRESS_BYTES);
    assert_eq!(bench.0.select_express(), Some(small));
}

#[test]
fn the_express_lane_never_gives_more_than_the_deficit_of_the_round() {
    let mut bench = Bench::new();
    let flood = bench.push(1, 0, 100);
    (1..100).for_each(|handle| {
        bench.push(1, handle, 100);
    });
    let mut sent = 0;
    while let Some(index) = bench.0.select_express() {
        bench.0.take(index);
        bench.0.table.queues[index as usize].deficit -= 100;
        sent += 1;
    }
    assert_eq!(sent, 16, "1514 bytes, the last packet on credit");
    bench.push(1, 100, 100);
    bench.0.table.queues[flood as usize].deficit = QUANTUM;
    assert_eq!(bench.0.select_express(), None, "a queue that does not run empty stays out");
}

#[test]
fn a_sparse_flow_that_waits_in_old_uses_its_deficit_by_the_express_lane() {
    let mut bench = Bench::new();
    bench.bulk(1, 5);
    let sparse = bench.push(2, 7, 100);
    assert_eq!(bench.send(), Some(7));
    assert_eq!(bench.send(), Some(0));
    assert_eq!(bench.queue(sparse).place, Place::Old);
    bench.push(2, 8, 100);
    assert_eq!(bench.0.select_express(), Some(sparse));
}

fn ack(flow: u64, handle: u32, bytes: u32) -> Held<u32> {
    let packet = Packet { class: Class::Ack, ..packet(flow, handle, bytes) };
    Held { packet, enqueued: Timestamp::ZERO, wire_bytes: bytes, guest: false }
}

#[test]
fn an_ack_too_large_for_the_lane_does_not_overtake_those_in_it() {
    let limits = Limits::new(&crate::ShaperConfig::new(units::Rate::mbit_per_s(1_000)));
    let mut bench = Bench::new();
    bench.0.push_classed(ack(1, 0, 60), &limits);
    assert_eq!(bench.0.queued_acks, 0);
    bench.0.push_classed(ack(1, 1, 1_500), &limits);
    bench.0.push_classed(ack(1, 2, 60), &limits);
    assert!(bench.0.acks.is_empty());
    assert_eq!((bench.0.queued_acks, bench.0.backlog().packets), (3, 3));
    assert_eq!([bench.send(), bench.send(), bench.send()], [Some(0), Some(1), Some(2)]);
}

#[test]
fn the_lane_opens_again_when_the_last_queued_ack_has_left() {
    let limits = Limits::new(&crate::ShaperConfig::new(units::Rate::mbit_per_s(1_000)));
    let mut bench = Bench::new();
    bench.0.push_classed(ack(1, 0, 60), &limits);
    bench.0.close_ack_lane(&limits);
    bench.0.push_classed(ack(2, 1, 60), &limits);
    assert!(bench.0.acks.is_empty(), "another connection's, too");
    for _ in 0..2 {
        bench.send();
        bench.0.on_ack_left();
    }
    bench.0.push_classed(ack(2, 2, 60), &limits);
    assert_eq!(bench.0.take_ack().map(|held| held.packet.handle), Some(2));
    assert_eq!(bench.0.backlog().packets, 0);
}
