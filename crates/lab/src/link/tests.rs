use super::*;

const FULL: Bytes = Bytes::new(1500);
const MS: Duration = Duration::from_millis(1);

fn config() -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::mbit_per_s(20)),
        delay: 10 * MS,
        jitter: Duration::ZERO,
        loss: Ratio::ZERO,
        queue: QueueLimit::Time(500 * MS),
        seed: 1,
    }
}

/// Everything under way, with its time of delivery.
fn drain<P>(link: &mut Link<P>) -> Vec<(Timestamp, P)> {
    let mut out = Vec::new();
    let mut now = Timestamp::ZERO;
    loop {
        match link.poll(now) {
            LinkPoll::Deliver(packet) => out.push((now, packet)),
            LinkPoll::WaitUntil(due) => now = due,
            LinkPoll::Idle => return out,
        }
    }
}

/// A thousand packets of random size at random times, about as many as the line carries.
fn random_traffic(seed: u64) -> Vec<(Timestamp, Bytes)> {
    let mut random = Pcg32::new(seed);
    let mut now = Timestamp::ZERO;
    (0..1000)
        .map(|_| {
            now += Duration::from_micros(u64::from(random.next_u32() % 600));
            (now, Bytes::new(u64::from(40 + random.next_u32() % 1461)))
        })
        .collect()
}

/// Configurations that cover the limits, jitter and loss.
fn random_config(seed: u64) -> LinkConfig {
    let mut random = Pcg32::new(seed ^ 0xabcd);
    let mut pick = |n: u32| random.next_u32() % n;
    LinkConfig {
        rate: (pick(5) > 0).then(|| Rate::kbit_per_s(u64::from(1_000 + pick(40_000)))),
        delay: Duration::from_micros(u64::from(pick(20_000))),
        jitter: Duration::from_micros(u64::from(pick(2) * pick(5_000))),
        loss: Ratio::new(f64::from(pick(3)) / 10.0).unwrap(),
        queue: match pick(3) {
            0 => QueueLimit::Time(Duration::from_micros(u64::from(pick(20_000)))),
            1 => QueueLimit::Bytes(Bytes::new(u64::from(pick(20_000)))),
            _ => QueueLimit::Packets(pick(20)),
        },
        seed,
    }
}

#[test]
fn a_packet_takes_its_transmission_and_the_delay() {
    let mut link = Link::new(config());
    link.push(Timestamp::from_millis(5), FULL, 'a').unwrap();
    assert_eq!(link.poll(Timestamp::from_millis(5)), LinkPoll::WaitUntil(Timestamp::from_micros(15_600)));
    assert_eq!(link.poll(Timestamp::from_micros(15_600)), LinkPoll::Deliver('a'));
    assert_eq!(link.poll(Timestamp::from_micros(15_600)), LinkPoll::Idle);
}

#[test]
fn the_rate_is_exact_even_when_a_packet_takes_no_whole_nanosecond() {
    // 1500 bytes at 350 Mbit/s take 34,285.714.. ns: 350,000 of them are 12 s, to the nanosecond.
    let rate = Some(Rate::mbit_per_s(350));
    let mut link = Link::new(LinkConfig { rate, queue: QueueLimit::Time(100_000 * MS), ..config() });
    for n in 0..350_000 {
        link.push(Timestamp::ZERO, FULL, n).unwrap();
    }
    let last = drain(&mut link).last().unwrap().0;
    assert_eq!(last, Timestamp::from_millis(12_000 + 10));
}

#[test]
fn polling_late_does_not_slow_the_line() {
    let mut link = Link::new(config());
    for n in 0..100 {
        link.push(Timestamp::ZERO, FULL, n).unwrap();
        link.poll(Timestamp::ZERO);
    }
    let late = Timestamp::from_millis(10_000);
    let at_once = std::iter::from_fn(|| match link.poll(late) {
        LinkPoll::Deliver(n) => Some(n),
        _ => None,
    });
    assert!(at_once.eq(0..100));
    assert_eq!(link.backlog(late), Duration::ZERO);
}

#[test]
fn each_limit_drops_the_packet_that_would_exceed_it() {
    let limits = [QueueLimit::Time(6 * MS), QueueLimit::Bytes(Bytes::new(15_000)), QueueLimit::Packets(10)];
    for queue in limits {
        let mut link = Link::new(LinkConfig { queue, ..config() });
        for n in 0..10 {
            link.push(Timestamp::ZERO, FULL, n).unwrap();
        }
        let dropped = link.push(Timestamp::ZERO, FULL, 10).unwrap_err();
        assert_eq!(dropped, Dropped { packet: 10, reason: DropReason::Queue }, "{queue:?}");
        // One packet has been transmitted after 0.6 ms: there is room for one.
        link.push(Timestamp::from_micros(600), FULL, 11).unwrap();
        link.push(Timestamp::from_micros(600), FULL, 12).unwrap_err();
        assert_eq!((link.stats().queue_drops, link.stats().pushed), (2, 13));
        assert_eq!(link.stats().largest_backlog, 6 * MS);
        assert_eq!(link.stats().largest_backlog_bytes, Bytes::new(15_000));
    }
}

#[test]
fn an_idle_line_takes_a_packet_of_any_size() {
    let mut link = Link::new(LinkConfig { queue: QueueLimit::Bytes(Bytes::ZERO), ..config() });
    link.push(Timestamp::ZERO, FULL, ()).unwrap();
    link.push(Timestamp::ZERO, Bytes::new(40), ()).unwrap_err();
}

#[test]
fn without_a_rate_only_the_delay_counts() {
    let mut link = Link::new(LinkConfig { rate: None, ..config() });
    for n in 0..1000 {
        link.push(Timestamp::ZERO, FULL, n).unwrap();
    }
    assert!(drain(&mut link).iter().all(|(due, _)| *due == Timestamp::from_millis(10)));
}

#[test]
fn lost_packets_take_their_time_on_the_line() {
    let mut link = Link::new(LinkConfig { loss: Ratio::ONE, ..config() });
    let dropped = link.push(Timestamp::ZERO, FULL, 'a').unwrap_err();
    assert_eq!(dropped.reason, DropReason::Loss);
    assert_eq!(link.backlog(Timestamp::ZERO), Duration::from_micros(600));
    assert_eq!((link.stats().losses, link.stats().delivered), (1, 0));
}

#[test]
fn losses_come_at_their_share() {
    let loss = Ratio::new(0.1).unwrap();
    let mut link = Link::new(LinkConfig { rate: None, loss, ..config() });
    for _ in 0..100_000 {
        let _lost_or_taken = link.push(Timestamp::ZERO, FULL, ());
    }
    // Standard deviation 95.
    assert!(link.stats().losses.abs_diff(10_000) < 475, "{}", link.stats().losses);
}

#[test]
fn jitter_stays_within_its_bound_and_reorders_only_when_asked() {
    let jittery = LinkConfig { jitter: 5 * MS, ..config() };
    let run = |mut link: Link<usize>| {
        for (n, (at, bytes)) in random_traffic(3).into_iter().enumerate() {
            link.push(at, bytes, n).unwrap();
        }
        drain(&mut link)
    };
    let in_order = |got: &[(Timestamp, usize)]| got.is_sorted_by_key(|(_, n)| *n);
    let kept = run(Link::new(jittery));
    assert!(in_order(&kept));
    assert!(!in_order(&run(Link::new(jittery).allow_reordering())));
    let plain = run(Link::new(config()));
    for ((with, _), (without, _)) in kept.iter().zip(&plain) {
        assert!(with >= without && *with - *without <= 5 * MS);
    }
}

#[test]
fn packets_are_conserved_and_keep_their_order_whatever_the_configuration() {
    for seed in 0..200 {
        let config = random_config(seed);
        let mut link = Link::new(config);
        let mut taken = Vec::new();
        for (n, (at, bytes)) in random_traffic(seed).into_iter().enumerate() {
            if link.push(at, bytes, n).is_ok() {
                taken.push(n);
            }
        }
        let delivered: Vec<usize> = drain(&mut link).into_iter().map(|(_, n)| n).collect();
        assert_eq!(delivered, taken, "seed {seed}: {config:?}");
        let stats = link.stats();
        assert_eq!(stats.pushed, stats.delivered + stats.queue_drops + stats.losses, "seed {seed}");
    }
}

#[test]
fn no_packet_waits_longer_than_the_limit() {
    for seed in 0..200 {
        let limit = Duration::from_micros(1_000 + seed * 100);
        let rate = Rate::mbit_per_s(5);
        let mut link = Link::new(LinkConfig { rate: Some(rate), queue: QueueLimit::Time(limit), ..config() });
        for (at, bytes) in random_traffic(seed) {
            // A packet on the idle line may take longer by itself.
            let _dropped_or_taken = link.push(at, bytes, at);
        }
        for (due, at) in drain(&mut link) {
            let longest = limit.max(FULL / rate) + 10 * MS;
            assert!(due - at <= longest, "seed {seed}: {:?} > {longest:?}", due - at);
        }
    }
}

#[test]
fn over_any_window_the_line_carries_no_more_than_its_rate() {
    let mut link = Link::new(config());
    for (at, bytes) in random_traffic(9) {
        let _dropped_or_taken = link.push(at, bytes, bytes);
    }
    let got = drain(&mut link);
    for first in 0..got.len() {
        let mut sum = Bytes::ZERO;
        for (due, bytes) in &got[first + 1..] {
            sum += *bytes;
            let span = *due - got[first].0 + Duration::from_nanos(1);
            assert!(sum <= Rate::mbit_per_s(20) * span, "{sum} in {span:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_deliveries() {
    let run = |seed| {
        let loss = Ratio::new(0.2).unwrap();
        let mut link = Link::new(LinkConfig { jitter: 3 * MS, loss, seed, ..config() });
        for (n, (at, bytes)) in random_traffic(5).into_iter().enumerate() {
            let _lost_or_taken = link.push(at, bytes, n);
        }
        drain(&mut link)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
