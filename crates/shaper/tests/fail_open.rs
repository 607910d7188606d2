//! Whatever dies, traffic flows and nothing is left behind.

mod support;

use platform::namespace::in_test;
use platform::nfqueue::kernel_counters;
use std::io::{PipeWriter, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;
use support::{FAR, PATIENCE, World, is_running, now, pause, signal, wait_until};

const RATE: [&str; 4] = ["--rate-mbps", "20", "--interface", "up0"];
/// Three seconds at 20 Mbit/s.
const TRANSFER: usize = 7_500_000;

/// Lets a transfer get under way, applies `blow`, and returns the time until bytes arrive again.
fn gap_after(sink: &support::Sink, blow: impl FnOnce()) -> Duration {
    wait_until("the transfer to get under way", || sink.received() > 500_000);
    blow();
    // What is on its way already arrives within this time; what comes later comes through the queue.
    pause(Duration::from_millis(100));
    let (before, start) = (sink.received(), now());
    wait_until("bytes after the blow", || sink.received() > before || before == TRANSFER as u64);
    start.elapsed() + Duration::from_millis(100)
}

#[test]
fn a_killed_worker_is_replaced_and_the_transfer_goes_on() {
    in_test(|| {
        let world = World::new();
        let shaper = world.shaper(&RATE);
        let sink = world.sink(FAR[0]);
        let upload = world.upload(&sink, TRANSFER);
        let worker = shaper.worker().unwrap();
        let gap = gap_after(&sink, || signal("KILL", worker));
        eprintln!("kill -9 of the worker: bytes again after {gap:?}");
        assert!(is_running(shaper.next_worker(worker)));
        upload.join().unwrap();
        assert_eq!(sink.finish(), TRANSFER as u64);
        assert_eq!(world.tables().len(), 2);
        assert!(shaper.end().success());
        assert!(world.tables().is_empty());
    });
}

#[test]
fn a_second_failure_ends_shaping_and_traffic_flows() {
    in_test(|| {
        let world = World::new();
        let mut shaper = world.shaper(&RATE);
        let first = shaper.worker().unwrap();
        signal("KILL", first);
        signal("KILL", shaper.next_worker(first));
        assert_eq!(shaper.child.wait().unwrap().code(), Some(6));
        assert!(world.tables().is_empty());
        let sink = world.sink(FAR[0]);
        world.upload(&sink, 1_000_000).join().unwrap();
        assert_eq!(sink.finish(), 1_000_000);
    });
}

#[test]
fn a_killed_supervisor_takes_rules_and_worker_along_and_the_transfer_goes_on() {
    in_test(|| {
        let world = World::new();
        let mut shaper = world.shaper(&RATE);
        let sink = world.sink(FAR[0]);
        let upload = world.upload(&sink, TRANSFER);
        let worker = shaper.worker().unwrap();
        let gap = gap_after(&sink, || shaper.child.kill().unwrap());
        eprintln!("kill -9 of the supervisor: bytes again after {gap:?}");
        upload.join().unwrap();
        assert_eq!(sink.finish(), TRANSFER as u64);
        shaper.child.wait().unwrap();
        wait_until("the worker's end", || !is_running(worker));
        assert!(world.tables().is_empty());
    });
}

#[test]
fn a_hung_worker_is_killed_and_traffic_flows_again() {
    in_test(|| {
        let world = World::new();
        let shaper = world.shaper(&RATE);
        let sink = world.sink(FAR[0]);
        let upload = world.upload(&sink, TRANSFER);
        let worker = shaper.worker().unwrap();
        let gap = gap_after(&sink, || signal("STOP", worker));
        eprintln!("SIGSTOP of the worker: bytes again after {gap:?}");
        assert!(gap < Duration::from_secs(10), "{gap:?}");
        assert!(is_running(shaper.next_worker(worker)));
        assert!(!is_running(worker));
        upload.join().unwrap();
        assert_eq!(sink.finish(), TRANSFER as u64);
    });
}

/// What the program says must never decide whether it works.
#[test]
fn a_killed_worker_is_replaced_even_where_nobody_reads_standard_error() {
    in_test(|| {
        let world = World::new();
        for is_gone in [true, false] {
            let (reader, writer) = std::io::pipe().unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_shaper"));
            command.args(RATE).stderr(writer.try_clone().unwrap());
            let reader = if is_gone {
                None
            } else {
                fill(&writer);
                Some(reader)
            };
            let shaper = world.start(command);
            let worker = shaper.worker().unwrap();
            signal("KILL", worker);
            assert!(is_running(shaper.next_worker(worker)), "reader gone: {is_gone}");
            assert!(shaper.end().success(), "reader gone: {is_gone}");
            drop(reader);
        }
    });
}

/// Leaves no room in the pipe. It holds 64 KB.
fn fill(mut writer: &PipeWriter) {
    writer.write_all(&vec![b'x'; 1 << 16]).unwrap();
}

#[test]
fn at_the_end_every_held_packet_is_let_go() {
    in_test(|| {
        let world = World::new();
        // 1000 bytes take 125 ms, so at most a few of the seven are sent by the pacer.
        let shaper = world.shaper(&["--rate-mbps", "64kbit", "--interface", "up0"]);
        let server = world.server.run(|| UdpSocket::bind((FAR[0], 7)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let server_address: SocketAddr = server.local_addr().unwrap();
        world.client.run(|| {
            let client = UdpSocket::bind("0.0.0.0:0").unwrap();
            for number in 0..7 {
                client.send_to(&[number; 972], server_address).unwrap();
            }
        });
        let number = shaper.queue();
        let held = || world.client.run(|| kernel_counters(number).unwrap().held_packets);
        wait_until("held packets", || held() > 2);
        let start = now();
        assert_eq!(shaper.end().code(), Some(0));
        eprintln!("ended {:?} after SIGTERM", start.elapsed());
        for number in 0..7 {
            let mut payload = [0; 2000];
            assert_eq!(server.recv(&mut payload).unwrap(), 972);
            assert_eq!(payload[0], number, "all packets, in order");
        }
        assert!(world.tables().is_empty());
    });
}
