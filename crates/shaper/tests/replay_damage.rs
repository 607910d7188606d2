//! Real captures with random damage: the analysis comes to an end, and what precedes the damage stands.

use lab::Pcg32;
use lab::replay::{Replay, Shaping};
use std::path::Path;
use units::Rate;
use wire::capture::{Reader, Step};

/// Runs a file through reader, analysis and engine; gives the number of packets.
fn run(file: &[u8]) -> u64 {
    let mut reader = Reader::new();
    let mut replay = Replay::new();
    let everyone = vec![[141, 142, 228, 5].into(), [10, 0, 0, 1].into(), [192, 168, 0, 27].into()];
    let mut shaping = Shaping::new(engine::ShaperConfig::new(Rate::mbit_per_s(1)), everyone);
    let mut rest = file;
    // Each step takes at least one byte, but for the one that finds the format.
    for _ in 0..file.len() + 2 {
        match reader.next(rest) {
            Step::Record { consumed, record } => {
                replay.push(&record);
                shaping.push(&record);
                rest = &rest[consumed..];
            }
            Step::Skip(bytes) => {
                rest = usize::try_from(bytes).ok().and_then(|bytes| rest.get(bytes..)).unwrap_or_default();
            }
            Step::NeedMore(_) | Step::Damaged(_) => break,
        }
    }
    let stats = shaping.finish().stats;
    assert_eq!(stats.held(), 0);
    replay.finish().packets
}

#[test]
fn random_damage_never_panics_and_spares_the_packets_before_it() {
    let seed = 0x5eed;
    let mut random = Pcg32::new(seed);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    for name in [
        "e-vlan-collisions.pcap",
        "i-v6-ext-tcp.pcap",
        "t-rto-300s.pcapng",
        "t-fast-retx-snap.pcap",
        "f-ns-be.pcap",
    ] {
        let good = std::fs::read(folder.join(name)).unwrap();
        let all = run(&good);
        assert!(all > 0, "{name}");
        for round in 0..300 {
            let mut file = good.clone();
            for _ in 0..=random.next_u32() % 8 {
                let at = random.next_u32() as usize % file.len();
                file[at] = random.next_u32() as u8;
            }
            file.truncate(1 + random.next_u32() as usize % file.len());
            assert!(run(&file) <= all + good.len() as u64 / 16, "{name}, round {round}, seed {seed:#x}");
        }
        let cut = good.len() / 2;
        assert!(run(&good[..cut]) < all, "{name}");
    }
}
