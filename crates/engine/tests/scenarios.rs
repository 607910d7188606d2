//! Whole stories in virtual time.

use engine::{Packet, Poll, Shaper, ShaperConfig};
use units::{Rate, Timestamp};
use wire::Ecn;

#[test]
fn smoke() {
    let mut shaper = Shaper::new(ShaperConfig::new(Rate::mbit_per_s(20)));
    let now = Timestamp::from_millis(1);
    for handle in 0..10 {
        shaper.push(
            now,
            Packet { handle, flow: 5, bytes: 1500, segments: 1, header_bytes: 52, ecn: Ecn::NotEct },
        );
    }
    assert_eq!(shaper.poll(now), Poll::Send { handle: 0, mark: false });
    assert!(matches!(shaper.poll(now), Poll::WaitUntil(_)));
    assert_eq!(shaper.drain().collect::<Vec<_>>(), (1..10).collect::<Vec<_>>());
    assert_eq!(shaper.poll(now), Poll::Idle);
    assert_eq!(shaper.stats().held(), 0);
}
