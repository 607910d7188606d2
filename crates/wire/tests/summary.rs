//! Summaries of packets that another implementation (etherparse) built, and of bytes that nobody built.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{Ecn, FlowKey, Salt, Summary, TcpFlags, WireError, protocol, summarize, summarize_sized};

/// What the shaper asks the kernel for.
const CAPTURE_BYTES: usize = 128;

/// What the tests vary.
#[derive(Clone, Debug)]
struct Recipe {
    source: [u8; 16],
    destination: [u8; 16],
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    window: u16,
    tos: u8,
    payload: usize,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let addresses = (any::<[u8; 16]>(), any::<[u8; 16]>());
    (addresses, any::<(u16, u16)>(), any::<(u32, u32, u16)>(), any::<u8>(), 0..1400_usize).prop_map(
        |((source, destination), ports, (seq, ack, window), tos, payload)| Recipe {
            source,
            destination,
            ports,
            seq,
            ack,
            window,
            tos,
            payload,
        },
    )
}

fn v4(octets: [u8; 16]) -> [u8; 4] {
    [octets[0], octets[1], octets[2], octets[3]]
}

impl Recipe {
    fn ipv4(&self, protocol_payload: u16) -> etherparse::Ipv4Header {
        let mut header = etherparse::Ipv4Header::new(
            protocol_payload,
            64,
            etherparse::IpNumber::TCP,
            v4(self.source),
            v4(self.destination),
        )
        .unwrap();
        header.dscp = etherparse::IpDscp::try_new(self.tos >> 2).unwrap();
        header.ecn = etherparse::IpEcn::try_new(self.tos & 3).unwrap();
        header
    }

    fn ipv6(&self) -> etherparse::Ipv6Header {
        etherparse::Ipv6Header {
            traffic_class: self.tos,
            flow_label: 0xf_ffff_u32.try_into().unwrap(),
            payload_length: 0,
            next_header: etherparse::IpNumber::TCP,
            hop_limit: 64,
            source: self.source,
            destination: self.destination,
        }
    }

    fn ip_header(&self, version: u8) -> etherparse::IpHeaders {
        match version {
            4 => etherparse::IpHeaders::Ipv4(self.ipv4(0), Default::default()),
            _ => etherparse::IpHeaders::Ipv6(self.ipv6(), Default::default()),
        }
    }

    fn tcp(&self, version: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ip(self.ip_header(version))
            .tcp(self.ports.0, self.ports.1, self.seq, self.window)
            .ack(self.ack)
            .psh()
            .options(&[etherparse::TcpOptionElement::Timestamp(1, 2)])
            .unwrap()
            .write(&mut bytes, &vec![0xa5; self.payload])
            .unwrap();
        bytes
    }

    fn udp(&self, version: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ip(self.ip_header(version))
            .udp(self.ports.0, self.ports.1)
            .write(&mut bytes, &vec![0xa5; self.payload])
            .unwrap();
        bytes
    }

    fn flow(&self, version: u8, protocol: u8) -> FlowKey {
        let address = |octets: [u8; 16]| match version {
            4 => IpAddr::V4(Ipv4Addr::from(v4(octets))),
            _ => IpAddr::V6(Ipv6Addr::from(octets)),
        };
        FlowKey {
            source: address(self.source),
            destination: address(self.destination),
            source_port: self.ports.0,
            destination_port: self.ports.1,
            protocol,
        }
    }
}

fn ip_header_bytes(version: u8) -> u16 {
    if version == 4 { 20 } else { 40 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parsing_a_built_tcp_packet_gives_its_parts(recipe in recipe(), version in prop::sample::select(vec![4_u8, 6])) {
        let bytes = recipe.tcp(version);
        let summary = summarize(&bytes[..bytes.len().min(CAPTURE_BYTES)]).unwrap();
        prop_assert_eq!(summary.flow, recipe.flow(version, protocol::TCP));
        prop_assert_eq!(summary.ecn, Ecn::from_bits(recipe.tos));
        prop_assert_eq!(summary.packet_bytes as usize, bytes.len());
        prop_assert_eq!(summary.header_bytes, ip_header_bytes(version) + 32);
        prop_assert!(!summary.fragment);
        let tcp = summary.tcp.unwrap();
        prop_assert_eq!((tcp.seq, tcp.ack, tcp.window), (recipe.seq, recipe.ack, recipe.window));
        prop_assert!(tcp.flags.has(TcpFlags::ACK) && tcp.flags.has(TcpFlags::PSH) && !tcp.flags.has(TcpFlags::SYN));
        prop_assert_eq!(tcp.payload_bytes as usize, recipe.payload);
    }

    #[test]
    fn parsing_a_built_udp_packet_gives_its_parts(recipe in recipe(), version in prop::sample::select(vec![4_u8, 6])) {
        let bytes = recipe.udp(version);
        let summary = summarize(&bytes[..bytes.len().min(CAPTURE_BYTES)]).unwrap();
        prop_assert_eq!(summary, Summary {
            flow: recipe.flow(version, protocol::UDP),
            ecn: Ecn::from_bits(recipe.tos),
            packet_bytes: bytes.len() as u32,
            header_bytes: ip_header_bytes(version) + 8,
            protocol: protocol::UDP,
            tcp: None,
            fragment: false,
        });
    }

    #[test]
    fn no_bytes_whatsoever_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0..3_u8) {
        if let (Some(first), 1..) = (bytes.first_mut(), version) {
            *first = *first & 0x0f | (version * 2 + 2) << 4; // else hardly any input gets past the version
        }
        if let Ok(summary) = summarize(&bytes) {
            prop_assert!(u32::from(summary.header_bytes) <= summary.packet_bytes);
            summary.flow.hash(&Salt([1, 2]));
        }
        let _ = summarize_sized(&bytes, u32::MAX);
    }

    #[test]
    fn a_capture_cut_anywhere_behind_the_ip_header_is_no_error(recipe in recipe(), cut in 40..150_usize) {
        for version in [4, 6] {
            let bytes = recipe.tcp(version);
            let summary = summarize(&bytes[..cut.min(bytes.len())]).unwrap();
            prop_assert_eq!(summary.packet_bytes as usize, bytes.len());
            prop_assert_eq!(summary.flow.source, recipe.flow(version, 6).source);
            prop_assert_eq!(summary.flow.destination, recipe.flow(version, 6).destination);
        }
    }
}

/// An IPv4 packet of `protocol` with the given fragment word and 40 bytes behind the header.
fn ipv4(protocol: u8, fragment_word: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
    bytes[6..8].copy_from_slice(&fragment_word.to_be_bytes());
    bytes.extend(1..=40);
    bytes
}

/// An IPv6 packet whose extension headers are `chain` (type, bytes after its first one) and end in `last`.
fn ipv6(chain: &[(u8, &[u8])], last: u8) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, chain.first().map_or(last, |(kind, _)| *kind), 64];
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    for (at, (_, rest)) in chain.iter().enumerate() {
        bytes.push(chain.get(at + 1).map_or(last, |(kind, _)| *kind));
        bytes.extend_from_slice(rest);
    }
    bytes.extend(1..=40);
    let payload = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    bytes
}

#[test]
fn all_ipv4_fragments_of_a_packet_are_one_flow_without_ports() {
    let whole = summarize(&ipv4(protocol::UDP, 0x4000)).unwrap(); // Don't Fragment
    assert_eq!((whole.flow.source_port, whole.fragment), (0x0102, false));
    let first = summarize(&ipv4(protocol::UDP, 0x2000)).unwrap();
    let last = summarize(&ipv4(protocol::UDP, 0x00b9)).unwrap();
    assert_eq!(first.flow, last.flow);
    assert_eq!((first.flow.source_port, first.flow.destination_port), (0, 0));
    assert!(first.fragment && last.fragment);
    assert_eq!(first.header_bytes, 20);
    assert_eq!(summarize(&ipv4(protocol::TCP, 0x2000)).unwrap().tcp, None);
}

#[test]
fn ipv6_extension_headers_are_followed_to_the_transport() {
    let options: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
    let long_options: &[u8] = &[[1].as_slice(), &[0; 14]].concat();
    let authentication: &[u8] = &[[4].as_slice(), &[0; 22]].concat(); // (4 + 2) * 4 = 24 bytes
    let atomic_fragment: &[u8] = &[0, 0, 0, 0, 0, 0, 7];
    let bytes = ipv6(
        &[(0, options), (43, options), (60, long_options), (51, authentication), (44, atomic_fragment)],
        protocol::UDP,
    );
    let summary = summarize(&bytes).unwrap();
    assert_eq!((summary.flow.source_port, summary.flow.destination_port), (0x0102, 0x0304));
    assert_eq!(summary.protocol, protocol::UDP);
    assert_eq!(summary.header_bytes, 40 + 8 + 8 + 16 + 24 + 8 + 8);
    assert_eq!(summary.packet_bytes as usize, bytes.len());
    assert!(!summary.fragment);
}

#[test]
fn all_ipv6_fragments_of_a_packet_are_one_flow() {
    let first = ipv6(&[(0, &[0; 7]), (44, &[0, 0, 1, 0, 0, 0, 7]), (60, &[0; 7])], protocol::UDP);
    let later = ipv6(&[(0, &[0; 7]), (44, &[0, 5, 0xa8, 0, 0, 0, 7])], 60);
    let (first, later) = (summarize(&first).unwrap(), summarize(&later).unwrap());
    assert_eq!(first.flow, later.flow);
    assert!(first.fragment && later.fragment);
    assert_eq!(first.flow.source_port, 0);
}

#[test]
fn a_chain_cut_by_the_capture_belongs_to_its_addresses() {
    let bytes = ipv6(&[(0, &[[30].as_slice(), &[0; 246]].concat())], protocol::TCP);
    let summary = summarize(&bytes[..CAPTURE_BYTES]).unwrap();
    assert_eq!((summary.flow.source_port, summary.tcp), (0, None));
    assert_eq!(summary.packet_bytes as usize, bytes.len());
    assert_eq!(summary.protocol, protocol::TCP);
}

#[test]
fn icmp_tunnels_and_unknown_protocols_are_flows_of_their_addresses() {
    for number in [protocol::ICMP, protocol::ICMPV6, 4, 41, 47, 50, 59, 253] {
        for bytes in [ipv4(number, 0), ipv6(&[], number)] {
            let summary = summarize(&bytes).unwrap();
            assert_eq!(
                (summary.flow.source_port, summary.flow.destination_port),
                (0, 0),
                "protocol {number}"
            );
            assert_eq!(summary.protocol, number);
        }
    }
}

#[test]
fn a_super_packet_has_the_length_that_the_caller_knows() {
    let mut bytes = ipv4(protocol::TCP, 0);
    bytes[2..4].copy_from_slice(&[0, 0]); // beyond 64 KB the header states none
    assert_eq!(summarize(&bytes).unwrap().packet_bytes as usize, bytes.len());
    let summary = summarize_sized(&bytes, 90_000).unwrap();
    assert_eq!(summary.packet_bytes, 90_000);
    let tcp = summary.tcp.unwrap();
    assert_eq!(tcp.payload_bytes, 90_000 - u32::from(summary.header_bytes));
}

#[test]
fn what_is_no_ip_packet_is_named() {
    assert_eq!(summarize(&[]), Err(WireError::Truncated { needed: 20, have: 0 }));
    assert_eq!(summarize(&[0x45; 19]), Err(WireError::Truncated { needed: 20, have: 19 }));
    assert_eq!(summarize(&[0x60; 39]), Err(WireError::Truncated { needed: 40, have: 39 }));
    assert_eq!(summarize(&[0x10; 64]), Err(WireError::Version(1)));
    assert_eq!(summarize(&[0x44; 64]), Err(WireError::HeaderLength { bytes: 16 }));
    let mut bytes = ipv4(protocol::TCP, 0);
    bytes[2..4].copy_from_slice(&[0, 19]);
    assert_eq!(summarize(&bytes), Err(WireError::PacketLength { stated: 19, header: 20 }));
    assert!(WireError::Version(1).to_string().contains("neither 4 nor 6"));
}

#[test]
fn a_pure_ack_acknowledges_and_nothing_else() {
    let header = || PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64).tcp(40_000, 443, 1_000, 900);
    let is_pure =
        |builder: etherparse::PacketBuilderStep<etherparse::TcpHeader>, payload: &[u8], padding: usize| {
            let mut packet = Vec::new();
            builder.write(&mut packet, payload).unwrap();
            packet.resize(packet.len() + padding, 0);
            summarize(&packet).unwrap().tcp.unwrap().is_pure_ack()
        };
    assert!(is_pure(header().ack(7), &[], 0));
    assert!(is_pure(header().ack(7), &[], 6), "a frame padded to 60 bytes");
    assert!(is_pure(header().ack(7).ece(), &[], 0) && is_pure(header().ack(7).psh(), &[], 0));
    let sack = etherparse::TcpOptionElement::SelectiveAcknowledgement((10, 20), [None; 3]);
    assert!(is_pure(header().ack(7).options(&[sack]).unwrap(), &[], 0));
    assert!(!is_pure(header().ack(7), &[1], 0), "data, if only a keep-alive's byte");
    assert!(!is_pure(header().ack(7).syn(), &[], 0));
    assert!(!is_pure(header().ack(7).fin(), &[], 0));
    assert!(!is_pure(header().ack(7).rst(), &[], 0));
    assert!(!is_pure(header(), &[], 0), "no acknowledgement at all");
}
