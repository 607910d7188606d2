use super::*;
use lab::QueueLimit;
use platform::clock;
use platform::namespace::in_test;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;
use units::{Rate, Ratio};

const PATIENCE: Duration = Duration::from_secs(10);

fn line(rate: Option<Rate>) -> EmulatorConfig {
    let link = LinkConfig {
        rate,
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: Ratio::ZERO,
        queue: QueueLimit::Time(Duration::from_millis(500)),
        seed: 1,
    };
    EmulatorConfig { up: link, down: link }
}

/// Sends `bytes` from the client to the server over a connection to `server`.
fn transfer(emulator: &Emulator, server: IpAddr, bytes: usize) {
    let listener = emulator.server().run(|| TcpListener::bind((server, 7))).unwrap();
    let mut client = emulator.client().run(|| TcpStream::connect((server, 7))).unwrap();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        received
    });
    let sent: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(reader.join().unwrap() == sent, "the line changed the data");
}

/// The counters, once they satisfy `enough`.
fn counters_when(emulator: &Emulator, enough: impl Fn(&EmulatorCounters) -> bool) -> EmulatorCounters {
    let deadline = clock::now() + PATIENCE;
    loop {
        let counters = emulator.counters();
        if enough(&counters) {
            return counters;
        }
        assert!(clock::now() < deadline, "{:?} {:?}", counters.up.link, counters.down.link);
        clock::sleep_until(clock::now() + PUBLISH_PERIOD);
    }
}

#[test]
fn data_crosses_the_line_unchanged_over_both_protocols() {
    in_test(|| {
        let emulator = Emulator::start(&line(Some(Rate::mbit_per_s(100)))).unwrap();
        transfer(&emulator, Emulator::SERVER_V4.into(), 300_000);
        assert!(emulator.has_ipv6(), "this test needs a kernel with IPv6");
        transfer(&emulator, Emulator::SERVER_V6.into(), 300_000);
        let counters = counters_when(&emulator, |c| c.up.link.delivered == c.up.link.pushed);
        assert!(counters.up.link.delivered_bytes > 600_000);
        assert_eq!(counters.up.lateness.count(), counters.up.link.delivered);
        for direction in [counters.up, counters.down] {
            let errors = (direction.ring_drops, direction.send_drops, direction.oversized);
            assert_eq!(errors, (0, 0, 0));
            assert_eq!((direction.link.queue_drops, direction.link.losses), (0, 0));
        }
    });
}

#[test]
fn a_handshake_takes_no_less_than_the_round_trip() {
    in_test(|| {
        let emulator = Emulator::start(&line(Some(Rate::mbit_per_s(20)))).unwrap();
        let mut capture = HandshakeCapture::start(emulator.client(), Emulator::CLIENT_INTERFACE).unwrap();
        transfer(&emulator, Emulator::SERVER_V4.into(), 10);
        transfer(&emulator, Emulator::SERVER_V6.into(), 10);
        let handshakes = capture.collect();
        assert_eq!((handshakes.len(), capture.missed()), (2, 0));
        // 1 us for the slew of the wall clock, which stamps; the link itself is exact.
        assert!(handshakes.iter().all(|h| h.rtt >= Duration::from_micros(19_999)), "{handshakes:?}");
        assert_eq!(handshakes[0].server, (Emulator::SERVER_V4, 7).into());
        assert_eq!(handshakes[1].client.ip(), IpAddr::from(Emulator::CLIENT_V6));
    });
}

#[test]
fn a_lossy_line_loses_and_says_so() {
    in_test(|| {
        let mut config = line(None);
        config.up.loss = Ratio::new(0.05).unwrap();
        let emulator = Emulator::start(&config).unwrap();
        transfer(&emulator, Emulator::SERVER_V4.into(), 300_000);
        let counters = counters_when(&emulator, |c| c.up.link.losses > 0);
        assert_eq!(counters.down.link.losses, 0);
    });
}

#[test]
fn the_server_is_not_on_the_clients_network() {
    in_test(|| {
        let emulator = Emulator::start(&line(None)).unwrap();
        let routes =
            emulator.client().run(|| std::fs::read_to_string("/proc/thread-self/net/route").unwrap());
        let destinations: Vec<_> = routes.lines().skip(1).map(|l| l.split('\t').nth(1).unwrap()).collect();
        // The default route and 198.18.0.0, in the kernel's byte order.
        assert_eq!(destinations, ["00000000", &format!("{:08X}", u32::from_ne_bytes([198, 18, 0, 0]))]);
    });
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    in_test(|| {
        let emulator = Emulator::start(&line(None)).unwrap();
        let own = [emulator.client(), emulator.server()].map(|ns| format!("net:[{}]", ns.number().unwrap()));
        let during = visible_namespaces();
        assert!(own.iter().all(|name| during.contains(name)), "{during:?}");
        drop(emulator);
        let deadline = clock::now() + PATIENCE;
        // Other tests of this process have namespaces of their own: only ours must be gone.
        while visible_namespaces().iter().any(|name| own.contains(name)) {
            assert!(clock::now() < deadline, "{:?}", visible_namespaces());
            clock::sleep_until(clock::now() + PUBLISH_PERIOD);
        }
    });
}

/// Network namespaces that threads or descriptors of this process hold, and those that are mounted somewhere.
fn visible_namespaces() -> Vec<String> {
    let link = |path: std::path::PathBuf| Some(std::fs::read_link(path).ok()?.to_string_lossy().into_owned());
    let list = |directory: &str, inside: &str| -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.filter_map(|entry| link(format!("{}{inside}", entry.ok()?.path().display()).into())).collect()
    };
    let mut found = list("/proc/self/task", "/ns/net");
    found.extend(list("/proc/self/fd", ""));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.split_whitespace().map(str::to_owned));
    found.retain(|name| name.starts_with("net:["));
    found
}

#[test]
fn starting_is_quick_and_repeatable() {
    in_test(|| {
        let start = clock::now();
        for _ in 0..3 {
            drop(Emulator::start(&line(None)).unwrap());
        }
        assert!(clock::now() - start < PATIENCE);
    });
}
