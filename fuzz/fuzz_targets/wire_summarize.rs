//! Any bytes as a packet: nothing panics, lengths are consistent, a mark changes nothing but the mark.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Ecn, Salt, Summary};

fuzz_target!(|bytes: &[u8]| {
    let Ok(summary) = wire::summarize(bytes) else {
        return;
    };
    check(&summary);
    if let Ok(sized) = wire::summarize_sized(bytes, 70_000) {
        check(&sized);
        assert_eq!(sized.flow, summary.flow);
    }
    // A cut never moves a fragment to another flow, nor any packet to other addresses.
    if let Ok(cut) = wire::summarize(&bytes[..bytes.len().min(128)]) {
        assert_eq!(cut.flow.source, summary.flow.source);
        assert_eq!(cut.flow.destination, summary.flow.destination);
    }
    let mut marked = bytes.to_vec();
    if wire::set_ce(&mut marked) {
        let after = wire::summarize(&marked).expect("a marked packet is still a packet");
        assert_eq!(after, Summary { ecn: Ecn::Ce, ..summary });
    } else {
        assert_eq!(marked, bytes);
    }
});

fn check(summary: &Summary) {
    assert!(u32::from(summary.header_bytes) <= summary.packet_bytes);
    assert!(summary.tcp.is_none_or(|tcp| tcp.payload_bytes <= summary.packet_bytes));
    assert!(!summary.fragment || (summary.flow.source_port, summary.flow.destination_port) == (0, 0));
    summary.flow.hash(&Salt([1, 2]));
}
