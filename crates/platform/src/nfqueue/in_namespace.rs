//! Rules and queue against the running kernel, in two namespaces joined by a veth pair.

use super::{NfQueue, QueueOptions, Verdict, kernel_counters};
use crate::links::{Links, VethEnd};
use crate::namespace::{Namespace, in_test};
use crate::nft::{CE_COOKIE, RulePlan, Rules, list_tables};
use crate::poll::wait_readable;
use crate::route::{Prefix, connected_prefixes, default_interface, interfaces, link_speed};
use crate::{clock, privilege};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;
use units::Rate;

const OPTIONS: QueueOptions = QueueOptions { number: None, gso: false, max_packets: 1000 };
const ECT_0: i32 = 2;
const CE: u8 = 3;

struct Pair {
    client: Namespace,
    server: Namespace,
}

const SERVER: [&str; 2] = ["198.18.0.2", "fd00::2"];

/// Client (`up0`) and server (`down0`) on one wire; the server is also the client's gateway.
fn pair() -> Pair {
    let (client, server) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    let ends = [
        VethEnd { namespace: &client, name: "up0", mac: [2, 0, 0, 0, 0, 1] },
        VethEnd { namespace: &server, name: "down0", mac: [2, 0, 0, 0, 0, 2] },
    ];
    client.run(|| Links::open().unwrap().create_veth(ends, 1500).unwrap());
    for (namespace, name, addresses) in
        [(&client, "up0", ["198.18.0.1", "fd00::1"]), (&server, "down0", SERVER)]
    {
        namespace.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up(name).unwrap();
            for (address, bits) in addresses.into_iter().zip([24, 64]) {
                links.add_address(name, address.parse().unwrap(), bits).unwrap();
            }
        });
    }
    client.run(|| {
        let mut links = Links::open().unwrap();
        for gateway in SERVER {
            links.add_default_route("up0", gateway.parse().unwrap()).unwrap();
        }
    });
    Pair { client, server }
}

fn plan(queue: u16, bypass: Vec<Prefix>) -> RulePlan {
    RulePlan { table: "accel_test_up0".to_owned(), interface: "up0".to_owned(), queue, bypass }
}

/// Takes packets until one comes, for at most ten seconds.
fn receive_one(queue: &mut NfQueue) -> (u32, u32) {
    let deadline = clock::now() + Duration::from_secs(10);
    let mut first = None;
    while first.is_none() && wait_readable(queue.fd(), deadline).unwrap() {
        queue.receive(|packet| first = Some((packet.id, packet.bytes))).unwrap();
    }
    first.expect("a packet within ten seconds")
}

fn server_socket(pair: &Pair, address: &str) -> UdpSocket {
    let address: IpAddr = address.parse().unwrap();
    let socket = pair.server.run(|| UdpSocket::bind(SocketAddr::new(address, 7)).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn send(address: &str, payload: &[u8]) {
    let local = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(local).unwrap();
    let (level, option) = if address.contains(':') {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS)
    };
    set_option(&socket, level, option, ECT_0);
    socket.send_to(payload, SocketAddr::new(address.parse().unwrap(), 7)).unwrap();
}

fn set_option(socket: &UdpSocket, level: i32, option: i32, value: i32) {
    // SAFETY: `value` lives through the call and its true length is passed.
    let rc = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), 4) };
    assert_eq!(rc, 0);
}

/// Receives one datagram with its TOS or traffic class (IP_RECVTOS, IPV6_RECVTCLASS set before).
fn receive_with_tos(socket: &UdpSocket) -> (usize, u8) {
    let mut payload = [0u8; 2000];
    let mut control = [0u64; 16];
    let mut vector = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: every pointer in `header` is valid and writable for the length beside it.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    assert!(got >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel filled `control`; the first header, if any, is followed by at least one byte of data.
    let tos = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        assert!(!first.is_null());
        *libc::CMSG_DATA(first)
    };
    (got as usize, tos)
}

#[test]
fn a_queued_packet_waits_for_its_verdict_and_can_get_a_ce_mark() {
    in_test(|| {
        let pair = pair();
        let mut queue = pair.client.run(|| NfQueue::bind(OPTIONS).unwrap());
        let number = queue.number();
        // Neighbour discovery must pass while we wait for the datagram that caused it.
        let multicast = vec![Prefix::new("ff00::".parse().unwrap(), 8)];
        let mut rules = pair.client.run(|| Rules::install(&plan(number, multicast)).unwrap());
        assert!(rules.are_owned());
        let receive_options =
            [(libc::IPPROTO_IP, libc::IP_RECVTOS), (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS)];
        for ((address, header_bytes), (level, option)) in
            SERVER.into_iter().zip([28, 48]).zip(receive_options)
        {
            let socket = server_socket(&pair, address);
            set_option(&socket, level, option, 1);
            for (verdict, ecn) in [
                (Verdict::Drop, None),
                (Verdict::Accept, Some(ECT_0 as u8)),
                (Verdict::AcceptMarked(CE_COOKIE), Some(CE)),
            ] {
                pair.client.run(|| send(address, &[7; 1000]));
                let (id, bytes) = receive_one(&mut queue);
                assert_eq!(bytes, 1000 + header_bytes, "the whole packet's size, not the copied part's");
                queue.verdict(id, verdict);
                queue.flush();
                if let Some(ecn) = ecn {
                    assert_eq!(receive_with_tos(&socket), (1000, ecn), "{address} {verdict:?}");
                }
            }
            assert_eq!(queue.errors(), super::QueueErrors::default());
        }
        assert!(rules.counters().unwrap().queued_packets >= 6);
        let counters = pair.client.run(|| kernel_counters(number).unwrap());
        assert_eq!((counters.held_packets, counters.socket_dropped), (0, 0));
    });
}

#[test]
fn rules_of_others_never_see_the_mark_that_asks_for_ce() {
    in_test(|| {
        let pair = pair();
        let mut queue = pair.client.run(|| NfQueue::bind(OPTIONS).unwrap());
        let plan = plan(queue.number(), Vec::new());
        let foreign = |name: &str| Rules::install_foreign_counter(name, CE_COOKIE).unwrap();
        // Of chains at the same priority the kernel runs the younger first, so there must be one of either age.
        let mut older = pair.client.run(|| foreign("older"));
        let _rules = pair.client.run(|| Rules::install(&plan).unwrap());
        let mut younger = pair.client.run(|| foreign("younger"));
        let mut unmarked = pair.client.run(|| Rules::install_foreign_counter("unmarked", 0).unwrap());
        let socket = server_socket(&pair, SERVER[0]);
        pair.client.run(|| send(SERVER[0], &[7; 1000]));
        let (id, _) = receive_one(&mut queue);
        queue.verdict(id, Verdict::AcceptMarked(CE_COOKIE));
        queue.flush();
        assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), 1000);
        assert_eq!(older.counters().unwrap().queued_packets, 0);
        assert_eq!(younger.counters().unwrap().queued_packets, 0);
        assert!(unmarked.counters().unwrap().queued_packets > 0, "the foreign rules do see packets");
    });
}

#[test]
fn bypassed_destinations_and_a_queue_without_listener_let_packets_pass() {
    in_test(|| {
        let pair = pair();
        let queue = pair.client.run(|| NfQueue::bind(OPTIONS).unwrap());
        let number = queue.number();
        let near = vec![Prefix::new(SERVER[0].parse().unwrap(), 24)];
        let mut rules = pair.client.run(|| Rules::install(&plan(number, near)).unwrap());
        let socket = server_socket(&pair, SERVER[0]);
        pair.client.run(|| send(SERVER[0], b"bypassed"));
        assert_eq!(socket.recv(&mut [0; 100]).unwrap(), 8);
        assert_eq!(rules.counters().unwrap().bypassed_packets, 1);

        rules.set_bypass(Vec::new()).unwrap();
        drop(queue);
        pair.client.run(|| send(SERVER[0], b"nobody listens"));
        assert_eq!(socket.recv(&mut [0; 100]).unwrap(), 14);
        assert!(rules.counters().unwrap().queued_packets >= 1);
        rules.remove().unwrap();
        assert!(pair.client.run(|| list_tables().unwrap()).is_empty());
    });
}

#[test]
fn rules_vanish_with_their_owner_and_nobody_else_can_take_their_name() {
    in_test(|| {
        let client = Namespace::create().unwrap();
        client.run(|| {
            let rules = Rules::install(&plan(1, Vec::new())).unwrap();
            assert_eq!(list_tables().unwrap(), ["accel_test_up0", "accel_test_up0"]);
            Rules::install(&plan(1, Vec::new())).unwrap_err();
            drop(rules);
            assert!(list_tables().unwrap().is_empty());
        });
    });
}

#[test]
fn a_taken_queue_number_is_refused_and_a_free_one_is_found() {
    in_test(|| {
        Namespace::create().unwrap().run(|| {
            let first = NfQueue::bind(OPTIONS).unwrap();
            let second = NfQueue::bind(OPTIONS).unwrap();
            assert_ne!(first.number(), second.number());
            let error = NfQueue::bind(QueueOptions { number: Some(first.number()), ..OPTIONS }).unwrap_err();
            assert!([libc::EBUSY, libc::EPERM].contains(&error.errno()), "{error}");
            assert_eq!(kernel_counters(1), None);
        });
    });
}

#[test]
fn the_uplink_and_its_networks_are_found() {
    in_test(|| {
        let pair = pair();
        pair.client.run(|| {
            privilege::check_packet_rules().unwrap();
            let uplink = default_interface().unwrap().unwrap();
            assert_eq!((uplink.name.as_str(), uplink.mtu_bytes, uplink.is_up), ("up0", 1500, true));
            assert_eq!(uplink.kind.as_deref(), Some("veth"));
            let near: Vec<_> = connected_prefixes(&uplink).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(near, ["198.18.0.0/24", "fd00::/64"]);
            assert!(link_speed(&uplink).is_none_or(|speed| speed > Rate::mbit_per_s(1)));
        });
        Namespace::create().unwrap().run(|| {
            assert_eq!(default_interface().unwrap(), None);
            assert!(interfaces().unwrap()[0].is_loopback);
        });
    });
}

#[test]
fn rules_of_a_kernel_without_owner_tables_outlive_their_socket_until_removed_or_replaced() {
    in_test(|| {
        let pair = pair();
        let mut queue = pair.client.run(|| NfQueue::bind(OPTIONS).unwrap());
        let multicast = vec![Prefix::new("ff00::".parse().unwrap(), 8)];
        let plan = plan(queue.number(), multicast);
        let socket = server_socket(&pair, SERVER[0]);
        let has_table = || pair.client.run(|| list_tables().unwrap().contains(&plan.table));

        let killed = pair.client.run(|| Rules::install_unowned(&plan).unwrap());
        assert!(!killed.are_owned());
        drop(killed);
        assert!(has_table(), "nobody removes the table of an old kernel when its maker is killed");
        let stale = pair.client.run(|| Rules::install_unowned(&plan).unwrap());
        pair.client.run(|| send(SERVER[0], &[7; 100]));
        let (id, _) = receive_one(&mut queue);
        queue.verdict(id, Verdict::Accept);
        queue.flush();
        assert_eq!(socket.recv(&mut [0; 200]).unwrap(), 100);
        drop(stale);
        drop(queue);
        pair.client.run(|| send(SERVER[0], &[7; 50]));
        assert_eq!(
            socket.recv(&mut [0; 200]).unwrap(),
            50,
            "the bypass flag lets packets pass without a listener"
        );

        let replaced = pair.client.run(|| Rules::install(&plan).unwrap());
        assert!(replaced.are_owned(), "a stale table is replaced in the best way there is");
        drop(replaced);
        assert!(!has_table());
        pair.client.run(|| Rules::install_unowned(&plan).unwrap().remove().unwrap());
        assert!(!has_table());
    });
}
