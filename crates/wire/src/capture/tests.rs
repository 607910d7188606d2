//! Files built byte by byte, damaged ones, and random ones.

use super::*;
use proptest::prelude::*;

/// Time, link type, original length and bytes of a record.
type Owned = (Option<Timestamp>, LinkType, u32, Vec<u8>);

/// Everything that a file yields when it is shown in pieces of `piece` bytes.
fn read_all(file: &[u8], piece: usize) -> (Vec<Owned>, Option<Damage>) {
    let (mut reader, mut at, mut shown, mut records) = (Reader::new(), 0_usize, 0_usize, Vec::new());
    for _ in 0..4 * file.len() + 16 {
        match reader.next(&file[at..shown]) {
            Step::Record { consumed, record } => {
                records.push((record.time, record.link, record.original_bytes, record.bytes.to_vec()));
                at += consumed;
            }
            Step::Skip(bytes) => {
                let missing = bytes.saturating_sub((file.len() - at) as u64);
                if missing > 0 {
                    return (records, reader.end_within_skip(missing));
                }
                at += bytes as usize;
                shown = shown.max(at);
            }
            Step::NeedMore(needed) => {
                assert!(needed <= MAX_STEP_BYTES);
                assert!(needed > shown - at, "asks for what it was shown");
                if shown == file.len() {
                    return (records, reader.end(shown - at, needed));
                }
                shown = (shown + piece).min(file.len());
            }
            Step::Damaged(damage) => return (records, Some(damage)),
        }
    }
    panic!("the reader does not come to an end");
}

fn classic(magic: u32, big: bool, extra: usize, packets: &[&[u8]]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = word(magic).to_vec();
    file.extend([half(2), half(4)].concat());
    file.extend([word(0), word(0), word(65_535), word(1)].concat());
    for packet in packets {
        file.extend([word(7), word(42), word(packet.len() as u32), word(1_000)].concat());
        file.extend(vec![0; extra]);
        file.extend(*packet);
    }
    file
}

#[test]
fn classic_files_in_both_orders_and_all_variants() {
    for big in [false, true] {
        for (magic, extra, nanos) in [
            (0xa1b2_c3d4, 0, 7_000_042_000),
            (0xa1b2_3c4d, 0, 7_000_000_042),
            (0xa1b2_cd34, 8, 7_000_042_000),
        ] {
            let file = classic(magic, big, extra, &[b"abc", b"", b"defgh"]);
            let (records, damage) = read_all(&file, 5);
            assert_eq!(damage, None);
            let bytes: Vec<&[u8]> = records.iter().map(|r| &r.3[..]).collect();
            assert_eq!(bytes, [&b"abc"[..], b"", b"defgh"], "magic {magic:x}, big {big}");
            assert!(records.iter().all(|r| r.0 == Some(Timestamp::from_nanos(nanos)) && r.2 == 1_000));
        }
    }
}

#[test]
fn a_cut_file_yields_the_whole_packets_and_says_where_it_ends() {
    let file = classic(0xa1b2_c3d4, false, 0, &[b"abc", b"defgh"]);
    let (records, damage) = read_all(&file[..file.len() - 1], 100);
    assert_eq!(records.len(), 1);
    assert_eq!(damage, Some(Damage { offset: 43, kind: DamageKind::Cut { have: 20, needed: 21 } }));
    let (records, damage) = read_all(&file[..43], 100);
    assert_eq!((records.len(), damage), (1, None), "cut between two records is a shorter file");
    assert_eq!(read_all(&[], 1).1.map(|d| d.kind), Some(DamageKind::Cut { have: 0, needed: 4 }));
}

#[test]
fn a_claimed_length_of_4_gb_ends_the_reading() {
    let mut file = classic(0xa1b2_c3d4, false, 0, &[b"abc", b"def"]);
    file[24 + 19 + 8..][..4].copy_from_slice(&3_925_868_813_u32.to_le_bytes());
    let (records, damage) = read_all(&file, 100);
    assert_eq!(records.len(), 1);
    assert_eq!(damage, Some(Damage { offset: 43, kind: DamageKind::CapturedLength(3_925_868_813) }));
}

#[test]
fn what_is_no_capture_is_refused() {
    assert_eq!(
        read_all(b"\x1f\x8b\x08\0abc", 9).1.unwrap().kind,
        DamageKind::UnknownFormat([0x1f, 0x8b, 8, 0])
    );
    let mut old = classic(0xa1b2_c3d4, false, 0, &[]);
    old[6] = 2;
    assert_eq!(read_all(&old, 99).1.unwrap().kind, DamageKind::Version(2, 2));
}

/// A pcapng block in the given byte order.
fn block(big: bool, kind: u32, body: &[&[u8]]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = body.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = word(body.len() as u32 + 12);
    [&word(kind)[..], &length, &body, &length].concat()
}

/// A section with two interfaces (2^-10 s with an offset, and ns) and one packet of each kind.
fn section(big: bool) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let long = |n: u64| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let head = block(big, 0x0a0d_0d0a, &[&word(0x1a2b_3c4d), &half(1), &half(0), &[0xff; 8]]);
    let resolution = [&half(9)[..], &half(1), &[0x8a, 0, 0, 0]].concat();
    let offset = [&half(14)[..], &half(8), &long(100)].concat();
    let first = block(big, 1, &[&half(1), &half(0), &word(4), &resolution, &offset, &half(0), &half(0)]);
    let second = block(big, 1, &[&half(101), &half(0), &word(0), &half(9), &half(1), &[9, 0, 0, 0]]);
    let enhanced = block(big, 6, &[&word(1), &word(1), &word(5), &word(3), &word(90), b"abc"]);
    let simple = block(big, 3, &[&word(6), b"defg"]);
    let obsolete = block(big, 2, &[&half(0), &half(3), &word(0), &word(1536), &word(2), &word(2), b"hi"]);
    let unknown = block(big, 0xbad, &[&[1, 2, 3]]);
    [head, first, second, enhanced, unknown, simple, obsolete].concat()
}

#[test]
fn pcapng_sections_of_both_orders_in_one_file() {
    let file = [section(true), section(false)].concat();
    for piece in [1, 7, 4_096] {
        let (records, damage) = read_all(&file, piece);
        assert_eq!(damage, None);
        let expected = [
            (Some(Timestamp::from_nanos((1 << 32) + 5)), LinkType(101), 90, b"abc".to_vec()),
            (None, LinkType(1), 6, b"defg".to_vec()),
            (Some(Timestamp::from_nanos(101_500_000_000)), LinkType(1), 2, b"hi".to_vec()),
        ];
        assert_eq!(records, [&expected[..], &expected[..]].concat());
    }
}

#[test]
fn damaged_blocks_are_named() {
    let good = section(false);
    let head = 28 + 44;
    let damaged = |at: usize, value: u32| {
        let mut file = good.clone();
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        read_all(&file, 4_096).1.unwrap().kind
    };
    assert_eq!(damaged(28 + 4, 13), DamageKind::BlockLength(13));
    assert_eq!(damaged(28 + 4, 0xffff_fff0), DamageKind::BlockLength(0xffff_fff0));
    assert_eq!(damaged(head - 4, 7), DamageKind::TrailingLength { leading: 44, trailing: 7 });
    assert_eq!(damaged(head + 28 + 8, 9), DamageKind::Interface(9), "of the enhanced packet block");
    assert_eq!(damaged(8, 1), DamageKind::UnknownFormat([1, 0, 0, 0]));
}

#[test]
fn a_file_of_interfaces_is_not_read_without_end() {
    let one = block(false, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0]]);
    let file = [section(false), one.repeat(5_000)].concat();
    assert_eq!(read_all(&file, 1 << 16).1.unwrap().kind, DamageKind::TooManyInterfaces);
}

fn ether(header: &[u8]) -> Vec<u8> {
    [&[0; 12][..], header, &[0x45, 0, 0, 20]].concat()
}

#[test]
fn vlans_and_pppoe_are_followed_and_told_apart() {
    let plain = ether(&[8, 0]);
    let vlan = ether(&[0x81, 0, 0xe0, 42, 8, 0]);
    let qinq_pppoe = ether(&[0x88, 0xa8, 0, 10, 0x81, 0, 0, 20, 0x88, 0x64, 0x11, 0, 0, 7, 0, 22, 0, 0x21]);
    let tags: Vec<u64> = [(&plain, 14), (&vlan, 18), (&qinq_pppoe, 30)]
        .map(|(frame, header)| {
            let network = network(LinkType(1), frame).unwrap();
            assert_eq!(network.link_header_bytes, header);
            assert_eq!(network.bytes, [0x45, 0, 0, 20]);
            network.tag
        })
        .to_vec();
    assert_eq!(network(LinkType(1), &qinq_pppoe).unwrap().room_bytes, Some(20), "22 less the PPP protocol");
    assert_eq!(network(LinkType(1), &vlan).unwrap().room_bytes, None);
    assert_eq!(tags[0], 0);
    assert!(tags[1] != 0 && tags[2] != 0 && tags[1] != tags[2]);
    let endless = ether(&[0x81, 0, 0, 1].repeat(9));
    assert_eq!(network(LinkType(1), &endless), Err(LinkError::VlanTags));
}

#[test]
fn each_link_type_leads_to_the_ip_packet() {
    let packet: &[u8] = &[0x60, 1, 2, 3];
    let frame = |header: &[u8]| [header, packet].concat();
    for (link, header) in [
        (0, &[30, 0, 0, 0][..]),
        (0, &[0, 0, 0, 24]),
        (108, &[0, 0, 0, 2]),
        (12, &[]),
        (14, &[]),
        (101, &[]),
        (228, &[]),
        (229, &[]),
        (9, &[0xff, 3, 0, 0x57]),
        (9, &[0x21]),
        (50, &[0x0f, 0, 0x86, 0xdd]),
        (51, &[0x11, 0, 0, 1, 0, 6, 0, 0x57]),
        (104, &[0x0f, 0, 8, 0]),
        (113, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x86, 0xdd]),
        (276, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        (1, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
    ] {
        let frame = frame(header);
        assert_eq!(network(LinkType(link), &frame).map(|n| n.bytes), Ok(packet), "link type {link}");
        for cut in 0..header.len() {
            let cut = network(LinkType(link), &frame[..cut]);
            assert!(cut.is_err() || link == 9, "link type {link}");
        }
    }
}

#[test]
fn what_is_not_understood_is_named_not_guessed() {
    let name = |link, frame: &[u8]| network(LinkType(link), frame).unwrap_err().to_string();
    assert_eq!(name(127, &[0x45; 60]), "unsupported link type 127 (IEEE802_11_RADIOTAP)");
    assert_eq!(name(9_999, &[]), "unsupported link type 9999");
    assert_eq!(name(1, &ether(&[8, 6])), "ARP");
    assert_eq!(name(1, &ether(&[0x88, 0x47])), "EtherType 0x8847");
    assert_eq!(name(1, &ether(&[0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0])), "LLC without EtherType");
    assert_eq!(name(9, &[0xff, 3, 0xc0, 0x21]), "PPP protocol 0xc021");
    assert_eq!(name(0, &[16, 0, 0, 0]), "address family 16");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_or_hang(
        bytes in prop::collection::vec(any::<u8>(), 0..400), start in 0..4_usize, piece in 1..50_usize,
    ) {
        let magic: [&[u8]; 4] =
            [&[], &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], &[10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0],
             &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4]];
        read_all(&[magic[start], &bytes].concat(), piece);
    }

    #[test]
    fn a_changed_file_never_panics_and_keeps_the_packets_before_the_change(
        at in any::<prop::sample::Index>(), value: u8, cut in any::<prop::sample::Index>(), piece in 1..200_usize,
    ) {
        let good = [section(false), section(true)].concat();
        let mut file = good.clone();
        let (at, cut) = (at.index(file.len()), cut.index(file.len() + 1));
        file[at] = value;
        read_all(&file[..cut], piece);
        let before = read_all(&good[..at], piece).0;
        prop_assert!(read_all(&file, piece).0.starts_with(&before));
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(piece in 1..500_usize) {
        let file = [section(false), section(true)].concat();
        prop_assert_eq!(read_all(&file, piece), read_all(&file, file.len()));
    }

    #[test]
    fn no_frame_makes_the_link_layer_panic(link in 0..300_u16, frame in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(network) = network(LinkType(link), &frame) {
            prop_assert_eq!(network.bytes.len() + network.link_header_bytes as usize, frame.len());
        }
    }
}
