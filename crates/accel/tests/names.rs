//! Name resolution timed against a resolver of the test's own, in a namespace without any way out.

use accel::measurement::NameKind;
use accel::names::NameProbe;
use accel::probe::Window;
use platform::clock;
use platform::links::Links;
use platform::namespace::{Namespace, in_test};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the resolver takes for a name that it has to ask for.
const RECURSION: Duration = Duration::from_millis(40);

/// The resolver that this system asks first; its address is lent to the namespace's loopback interface.
fn system_resolver() -> Option<Ipv4Addr> {
    let file = std::fs::read_to_string("/etc/resolv.conf").ok()?;
    let address = file.lines().find_map(|line| line.strip_prefix("nameserver"))?;
    address.trim().parse().ok()
}

/// Answers every question, A and AAAA alike, with "no such name" (RFC 1035 section 4.1.1: RCODE 3).
fn serve(socket: &UdpSocket, stop: &AtomicBool) -> Vec<Vec<u8>> {
    let mut asked = Vec::new();
    let mut buffer = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        if length < 12 {
            continue;
        }
        asked.push(buffer[12..length].to_vec());
        clock::sleep_until(clock::now() + RECURSION);
        // Response, recursion available; no records but the question.
        (buffer[2], buffer[3]) = (0x81, 0x83);
        buffer[6..12].fill(0);
        // An additional record of the question (EDNS) is cut off by its count; the rest is ignored.
        drop(socket.send_to(&buffer[..length], from));
    }
    asked
}

#[test]
fn an_uncached_name_costs_what_the_resolver_takes() {
    let Some(address) = system_resolver().filter(|address| !address.is_loopback()) else {
        eprintln!("SKIPPED: an_uncached_name_costs_what_the_resolver_takes: no IPv4 resolver is set here");
        return;
    };
    in_test(|| {
        let host = Namespace::create().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (series, asked) = host.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("lo").unwrap();
            links.add_address("lo", IpAddr::from(address), 32).unwrap();
            let socket = UdpSocket::bind((address, 53)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let stopped = Arc::clone(&stop);
            let server = std::thread::spawn(move || serve(&socket, &stopped));
            let start = clock::now();
            let window = Window { start, end: start + Duration::from_secs(3) };
            let probe = NameProbe::start(NameKind::Uncached, "domain.example", window, 1).unwrap();
            clock::sleep_until(window.end);
            let (_, series) = probe.finish(clock::now() + Duration::from_secs(10));
            stop.store(true, Ordering::Relaxed);
            (series, server.join().unwrap())
        });
        assert_eq!(series.begun.len() + series.missed, 6, "{series:?}");
        assert_eq!(series.failure, None, "\"no such name\" is an answer");
        assert!(series.took.iter().flatten().all(|took| *took >= RECURSION), "{series:?}");
        // Every question was for a label of its own.
        let mut labels: Vec<_> = asked.iter().map(|question| question[..17].to_vec()).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), series.begun.len(), "{asked:?}");
        assert!(
            asked.iter().all(|question| question[17..].starts_with(b"\x06domain\x07example\0")),
            "{asked:?}"
        );
    });
}
