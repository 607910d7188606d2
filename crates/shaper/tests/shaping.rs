//! What is shaped leaves at the rate; what is not to be shaped is not.

mod support;

use platform::namespace::in_test;
use platform::nfqueue::kernel_counters;
use std::net::UdpSocket;
use std::time::Duration;
use support::{FAR, NEAR, World, now, wait_until};

#[test]
fn an_upload_leaves_at_the_rate_over_ipv4_and_ipv6() {
    in_test(|| {
        for address in FAR {
            let world = World::new();
            let shaper = world.shaper(&["--rate-mbps", "10"]);
            let sink = world.sink(address);
            let upload = world.upload(&sink, 3_000_000);
            wait_until("the start", || sink.received() > 200_000);
            let (from, start) = (sink.received(), now());
            wait_until("the end", || sink.received() > 2_700_000);
            let mbps = (sink.received() - from) as f64 * 8e-6 / start.elapsed().as_secs_f64();
            eprintln!("{address}: goodput {mbps:.3} Mbit/s at a rate of 10");
            // 1448 of 1500 bytes are payload (IPv6: 1428). A loaded machine can only make it slower.
            assert!(mbps < 9.75 && mbps > 5.0, "{mbps}");
            upload.join().unwrap();
            assert_eq!(sink.finish(), 3_000_000);
            assert!(shaper.end().success());
        }
    });
}

#[test]
fn a_flood_of_datagrams_leaves_at_the_rate() {
    in_test(|| {
        let world = World::new();
        let shaper = world.shaper(&["--rate-mbps", "10"]);
        let server = world.server.run(|| UdpSocket::bind((FAR[0], 7)).unwrap());
        server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let flood = world.client.spawn("flood", || {
            let client = UdpSocket::bind("0.0.0.0:0").unwrap();
            let start = now();
            while start.elapsed() < Duration::from_secs(2) {
                // A full send buffer makes it wait, as the kernel does with every sender that is faster than its device.
                client.send_to(&[7; 1172], (FAR[0], 7)).unwrap();
            }
        });
        let (mut packets, mut buffer) = (0, [0; 2000]);
        server.recv(&mut buffer).unwrap();
        let (start, mut last) = (now(), Duration::ZERO);
        while server.recv(&mut buffer).is_ok() {
            packets += 1;
            last = start.elapsed();
        }
        let mbps = f64::from(packets) * 1200.0 * 8e-6 / last.as_secs_f64();
        eprintln!("{packets} datagrams of 1200 bytes: {mbps:.3} Mbit/s at a rate of 10");
        assert!(mbps < 10.2 && mbps > 5.0, "{mbps}");
        flood.join().unwrap();
        assert!(shaper.end().success());
    });
}

/// Packets that the kernel has queued so far.
fn queued(world: &World, number: u16) -> u64 {
    world.client.run(|| kernel_counters(number).unwrap().last_id)
}

fn send_datagrams(world: &World, address: &'static str) {
    world.client.run(|| {
        let local = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(local).unwrap();
        for _ in 0..20 {
            // Nobody listens: some sends report the refusal of earlier ones.
            drop(socket.send_to(&[7; 100], (address, 9)));
        }
    });
}

#[test]
fn the_own_network_and_multicast_are_not_queued_unless_asked_for() {
    in_test(|| {
        let world = World::new();
        let shaper = world.shaper(&["--rate-mbps", "10"]);
        let number = shaper.queue();
        let before = queued(&world, number);
        for address in [NEAR[0], NEAR[1], "239.1.2.3", "127.0.0.1"] {
            send_datagrams(&world, address);
            assert_eq!(queued(&world, number), before, "{address}");
        }
        for address in FAR {
            let before = queued(&world, number);
            send_datagrams(&world, address);
            assert!(queued(&world, number) >= before + 20, "{address}");
        }
        assert!(shaper.end().success());

        let shaper = world.shaper(&["--rate-mbps", "10", "--shape-lan"]);
        let number = shaper.queue();
        for address in [NEAR[0], NEAR[1], "239.1.2.3"] {
            let before = queued(&world, number);
            send_datagrams(&world, address);
            assert!(queued(&world, number) >= before + 20, "{address}");
        }
    });
}
