use super::*;
use crate::links::{Links, Mac, VethEnd, segmentation_off};
use crate::namespace::{Namespace, in_test};
use crate::poll::wait_readable;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// The longest wait for a frame.
const TEST_PATIENCE: Duration = Duration::from_secs(5);

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];

/// Two namespaces joined by a veth pair, a0 with 198.18.0.1 and b0 with 198.18.0.2.
fn pair() -> [Namespace; 2] {
    let [a, b] = [Namespace::create().unwrap(), Namespace::create().unwrap()];
    let ends = [VethEnd { name: "a0", mac: A, namespace: &a }, VethEnd { name: "b0", mac: B, namespace: &b }];
    a.run(|| Links::open().unwrap().create_veth(ends, 1500)).unwrap();
    for (namespace, name, own, other, mac) in
        [(&a, "a0", "198.18.0.1", "198.18.0.2", B), (&b, "b0", "198.18.0.2", "198.18.0.1", A)]
    {
        namespace.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up(name).unwrap();
            links.add_address(name, own.parse().unwrap(), 30).unwrap();
            links.add_neighbour(name, other.parse().unwrap(), mac).unwrap();
            segmentation_off(name).unwrap();
        });
    }
    [a, b]
}

fn options(interface: &str) -> RingOptions<'_> {
    RingOptions { interface, slots: 64, outgoing: false, vnet_header: true, filter: Filter::All }
}

/// Copies of the frames that come until `enough` says so.
fn receive_until(ring: &mut PacketRing, enough: impl Fn(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let deadline = clock::now() + TEST_PATIENCE;
    let mut frames = Vec::new();
    while !enough(&frames) {
        while ring.receive(|received| frames.push(received.bytes.to_vec())) {}
        assert!(enough(&frames) || clock::now() < deadline, "only {} frames came", frames.len());
        wait_readable(ring.as_fd(), clock::now() + Duration::from_millis(10)).unwrap();
    }
    frames
}

fn send_datagrams(from: &Namespace, count: u8) {
    from.run(|| {
        let socket = UdpSocket::bind("198.18.0.1:9").unwrap();
        for n in 0..count {
            socket.send_to(&[n; 100], "198.18.0.2:9").unwrap();
        }
    });
}

#[test]
fn frames_arrive_in_order_with_their_time_and_their_pending_checksum() {
    in_test(|| {
        let [a, b] = pair();
        let mut ring = b.run(|| PacketRing::open(options("b0"))).unwrap();
        let before = clock::now();
        send_datagrams(&a, 10);
        let after = clock::now();
        let mut seen = 0;
        while ring.receive(|received| {
            let slack = Duration::from_millis(5);
            assert!(received.arrival + slack >= before && received.arrival <= after + slack);
            assert!(!received.outgoing && !received.is_cut());
            assert_eq!(received.frame_bytes, 14 + 20 + 8 + 100);
            assert_eq!(&received.frame()[..12], [B, A].concat());
            assert_eq!(
                received.bytes[0], 1,
                "VIRTIO_NET_HDR_F_NEEDS_CSUM: the stack left the checksum to us"
            );
            assert_eq!(received.frame()[42], seen);
        }) {
            seen += 1;
        }
        assert_eq!((seen, ring.dropped()), (10, 0));
    });
}

#[test]
fn a_frame_sent_on_is_accepted_by_the_other_stack() {
    in_test(|| {
        let [a, b] = pair();
        let [c, d] = pair();
        // a -> b0 (ring) .. a0 of the other pair (sender) -> d
        let mut ring = b.run(|| PacketRing::open(options("b0"))).unwrap();
        let sender = c.run(|| PacketSender::open("a0", true)).unwrap();
        let socket = d.run(|| UdpSocket::bind("198.18.0.2:9")).unwrap();
        socket.set_read_timeout(Some(TEST_PATIENCE)).unwrap();
        send_datagrams(&a, 100);
        let frames = receive_until(&mut ring, |frames| frames.len() >= 64);
        assert_eq!(sender.send(&frames).unwrap(), BATCH);
        let mut buffer = [0; 200];
        for n in 0..64 {
            assert_eq!(socket.recv(&mut buffer).unwrap(), 100);
            assert_eq!(buffer[0], n);
        }
    });
}

#[test]
fn a_full_ring_counts_what_it_drops() {
    in_test(|| {
        let [a, b] = pair();
        let mut ring = b.run(|| PacketRing::open(options("b0"))).unwrap();
        send_datagrams(&a, 100);
        assert_eq!(ring.dropped(), 36);
        assert_eq!(ring.dropped(), 36);
        assert_eq!(std::iter::from_fn(|| ring.receive(|_| ()).then_some(())).count(), 64);
        send_datagrams(&a, 10);
        assert_eq!(std::iter::from_fn(|| ring.receive(|_| ()).then_some(())).count(), 10);
    });
}

#[test]
fn the_filter_passes_handshakes_of_both_directions_and_nothing_else() {
    in_test(|| {
        let [a, b] = pair();
        let filtered = RingOptions { outgoing: true, filter: Filter::TcpSyn, ..options("a0") };
        let mut ring = a.run(|| PacketRing::open(filtered)).unwrap();
        let listener = b.run(|| TcpListener::bind("198.18.0.2:7")).unwrap();
        send_datagrams(&a, 3);
        drop(a.run(|| TcpStream::connect("198.18.0.2:7")).unwrap());
        drop(listener);
        let mut flags = Vec::new();
        while ring.receive(|received| flags.push((received.outgoing, received.frame()[14 + 20 + 13] & 0x12)))
        {
        }
        assert_eq!(flags, [(true, 0x02), (false, 0x12)]);
    });
}

#[test]
fn super_packets_are_cut_before_the_line() {
    in_test(|| {
        use std::io::{Read, Write};
        let [a, b] = pair();
        let mut ring = b.run(|| PacketRing::open(RingOptions { slots: 4096, ..options("b0") })).unwrap();
        let listener = b.run(|| TcpListener::bind("198.18.0.2:7")).unwrap();
        let mut client = a.run(|| TcpStream::connect("198.18.0.2:7")).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || server.read_to_end(&mut Vec::new()).unwrap());
        client.write_all(&vec![0; 1 << 20]).unwrap();
        drop(client);
        assert_eq!(reader.join().unwrap(), 1 << 20);
        let mut largest = 0;
        while ring.receive(|received| largest = largest.max(received.frame_bytes)) {}
        assert_eq!(largest, 14 + 1500);
    });
}

#[test]
fn an_unknown_interface_is_refused() {
    in_test(|| {
        let namespace = Namespace::create().unwrap();
        let error = namespace.run(|| PacketRing::open(options("nowhere0"))).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    });
}
