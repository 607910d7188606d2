//! Flows that heed no signal or look for a gap in the rules.

use crate::simulation::{Flow, run};
use engine::{DropReason, ShaperConfig};
use std::time::Duration;
use units::{Bytes, Rate};
use wire::Ecn;

const RATE: Rate = Rate::mbit_per_s(20);
const LENGTH: Duration = Duration::from_secs(8);

fn mbit(bytes: Bytes) -> f64 {
    Rate::of(bytes, LENGTH).as_mbit_f64()
}

#[test]
fn an_unresponsive_flow_that_claims_ecn_is_stopped_by_the_overflow_rule() {
    let liar = Flow { ecn: Ecn::Ect0, ..Flow::every(1, 1_500, Duration::from_micros(300)) }; // 40 Mbit/s
    let story = run(ShaperConfig::new(RATE), &[liar, Flow::bulk(2), Flow::probe(3)], LENGTH, Duration::ZERO);
    let [liar, bulk, probe] = &story.flows[..] else { panic!("three flows") };
    assert!(liar.marked > 500, "CoDel marks it ({}), in vain", liar.marked);
    assert_eq!(liar.drops(DropReason::Aqm), 0);
    assert!(liar.drops(DropReason::Overflow) > 1_000);
    assert!(
        story.stats.peak_bytes <= Bytes::new(2_500_000),
        "1 s of the rate holds: {}",
        story.stats.peak_bytes
    );
    assert!((mbit(bulk.sent_bytes) - 10.0).abs() < 0.2, "{}", mbit(bulk.sent_bytes));
    assert_eq!(bulk.drops(DropReason::Overflow), 0, "the fattest queue pays");
    assert_eq!(probe.sojourn(0.99), Duration::ZERO);
}

#[test]
fn a_flood_of_small_packets_gains_nothing_by_the_express_lane() {
    let flood = Flow::every(1, 64, Duration::from_nanos(12_800)); // 40 Mbit/s
    let story = run(ShaperConfig::new(RATE), &[flood, Flow::bulk(2), Flow::probe(3)], LENGTH, Duration::ZERO);
    let [flood, bulk, probe] = &story.flows[..] else { panic!("three flows") };
    assert!(mbit(flood.sent_bytes) <= 10.1, "{}", mbit(flood.sent_bytes));
    assert!(mbit(bulk.sent_bytes) >= 9.8, "{}", mbit(bulk.sent_bytes));
    assert_eq!(probe.sojourn(0.99), Duration::ZERO);
    assert!(story.rate.as_mbit_f64() <= 20.01, "{}", story.rate);
}

#[test]
fn many_flows_of_small_packets_do_not_starve_a_bulk_flow() {
    // 500 flows of 100-byte packets, together 40 Mbit/s: each asks for 80 kbit/s, twice its fair share.
    let crowd = (10..510).map(|hash| Flow {
        start: units::Timestamp::from_micros(1_000 + hash * 17),
        ..Flow::every(hash, 100, Duration::from_millis(10))
    });
    let flows: Vec<Flow> = std::iter::once(Flow::bulk(1)).chain(crowd).collect();
    let story = run(ShaperConfig::new(RATE), &flows, LENGTH, Duration::ZERO);
    let fair = 20.0 / 501.0;
    assert!(mbit(story.flows[0].sent_bytes) >= 0.9 * fair, "{}", mbit(story.flows[0].sent_bytes));
    assert!(story.rate.as_mbit_f64() <= 20.01, "{}", story.rate);
}

#[test]
fn at_500_kbit_an_unresponsive_flow_holds_no_more_than_a_second() {
    let flood = Flow::every(1, 1_500, Duration::from_millis(12)); // 1 Mbit/s
    let config = ShaperConfig::new(Rate::kbit_per_s(500));
    let story = run(config, &[flood, Flow::probe(2)], Duration::from_secs(30), Duration::ZERO);
    assert!(story.flows[0].sojourn(1.0) <= Duration::from_millis(1_050), "{:?}", story.flows[0].sojourn(1.0));
    assert_eq!(story.flows[1].sojourn(0.99), Duration::ZERO);
}
