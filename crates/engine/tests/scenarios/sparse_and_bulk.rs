//! Sparse flows beside bulk flows, and bulk flows beside each other.

use crate::simulation::{Flow, Pattern, Story, run};
use engine::{Overhead, ShaperConfig};
use std::time::Duration;
use units::Rate;

const ON_TIME: Duration = Duration::ZERO;

fn config(mbit: u64) -> ShaperConfig {
    ShaperConfig::new(Rate::mbit_per_s(mbit))
}

/// A probe and 20 bulk flows for 15 s.
fn probe_beside_20_bulk_flows(config: ShaperConfig, probe: Flow) -> Story {
    let flows: Vec<Flow> = std::iter::once(probe).chain((1..=20).map(Flow::bulk)).collect();
    run(config, &flows, Duration::from_secs(15), ON_TIME)
}

#[test]
fn a_small_sparse_flow_passes_20_bulk_flows_without_delay() {
    let story = probe_beside_20_bulk_flows(config(20), Flow::probe(99));
    let probe = &story.flows[0];
    assert!(probe.sent.len() > 2_000 && probe.dropped.is_empty());
    // The express lane is open until one MTU time of debt: the probe leaves when it comes.
    assert_eq!((probe.sojourn(0.5), probe.sojourn(0.99)), (Duration::ZERO, Duration::ZERO));
    assert!(probe.sojourn(1.0) <= Duration::from_micros(606), "{:?}", probe.sojourn(1.0));
    assert!(story.rate.as_mbit_f64() > 19.9, "{}", story.rate);
}

#[test]
fn a_large_sparse_flow_waits_for_one_packet_of_20_bulk_flows() {
    let probe = Flow::every(99, 1_200, Duration::from_nanos(51_299_713));
    let story = probe_beside_20_bulk_flows(config(20), probe);
    let mtu_time = Duration::from_micros(600);
    // Half the shortest wait of the timer comes on top.
    let bound = mtu_time + Duration::from_micros(100);
    assert!(story.flows[0].sojourn(0.99) <= bound, "{:?}", story.flows[0].sojourn(0.99));
    assert!(story.flows[0].sojourn(0.5) >= mtu_time / 4);
}

#[test]
fn bulk_flows_share_equally_whatever_their_packet_size() {
    let small_packets = Flow {
        bytes: 300,
        pattern: Pattern::Window { packets: 200, rtt: Duration::from_millis(20) },
        ..Flow::bulk(2)
    };
    let flows = [Flow::bulk(1), small_packets, Flow::bulk(3)];
    let story = run(config(20), &flows, Duration::from_secs(10), ON_TIME);
    let shares: Vec<f64> =
        story.flows.iter().map(|flow| flow.sent_bytes.get() as f64 * 8.0 / 20e6 / 10.0 * 3.0).collect();
    assert!(shares.iter().all(|share| (share - 1.0).abs() < 0.01), "{shares:?}");
}

#[test]
fn at_1_mbit_a_probe_waits_for_one_packet_at_most() {
    let probe = Flow::every(99, 60, Duration::from_nanos(101_299_713));
    let story = probe_beside_20_bulk_flows(config(1), probe);
    assert_eq!(story.flows[0].sojourn(0.99), Duration::ZERO);
    assert!(story.flows[0].sojourn(1.0) <= Duration::from_millis(13), "{:?}", story.flows[0].sojourn(1.0));
}

#[test]
fn super_packets_at_350_mbit_keep_the_rate_and_let_probes_pass() {
    let gso = |hash| Flow {
        bytes: 44 * 1_448 + 52,
        segment_bytes: 1_500,
        pattern: Pattern::Window { packets: 20, rtt: Duration::from_millis(20) },
        ..Flow::bulk(hash)
    };
    let flows: Vec<Flow> = std::iter::once(Flow::probe(99)).chain((1..=8).map(gso)).collect();
    let config = ShaperConfig { overhead: Overhead::of_bytes(38), ..config(350) };
    let story = run(config, &flows, Duration::from_secs(3), ON_TIME);
    // 44 segments of 1538 bytes each, and not 63.8 KB, are charged: the wire rate is exact, goodput 94.2 % of it.
    assert!((story.rate.as_mbit_f64() / 350.0 - 1.0).abs() < 0.003, "{}", story.rate);
    let goodput: u64 = story.flows[1..].iter().map(|flow| flow.sent_bytes.get()).sum();
    let share = goodput as f64 * 8.0 / 3.0 / 350e6;
    assert!((share - 1_449.2 / 1_538.0).abs() < 0.005, "{share}");
    assert_eq!(story.flows[0].sojourn(0.99), Duration::ZERO);
    let fewest = story.flows[1..].iter().map(|flow| flow.sent.len()).min().unwrap();
    let most = story.flows[1..].iter().map(|flow| flow.sent.len()).max().unwrap();
    assert!(most - fewest <= 2, "{fewest} to {most}");
}

#[test]
fn a_responsive_load_is_dropped_by_codel_and_not_by_overflow() {
    let story = probe_beside_20_bulk_flows(config(20), Flow::probe(99));
    assert!(story.stats.dropped_aqm.packets > 0);
    assert_eq!(story.stats.dropped_overflow.packets, 0);
}
