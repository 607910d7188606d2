//! Client and server against each other and against odd peers, over loopback.

use super::hello::{Hello, Role};
use super::report::ReportReader;
use super::*;
use crate::probe::Window;
use platform::clock;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use units::{Bytes, Rate, Timestamp};

const PATIENCE: Duration = Duration::from_secs(20);

fn server(address: &str) -> Server {
    Server::start(address.parse().unwrap()).unwrap()
}

fn plan(server: &Server, up_flows: usize, down_flows: usize) -> LoadPlan {
    LoadPlan { server: server.address(), up_flows, down_flows, congestion: "reno".to_owned() }
}

/// Waits until `is_so`, for a bounded time.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE;
    while !is_so() {
        assert!(clock::now() < deadline, "{what} has not come about");
        clock::sleep_until(clock::now() + Duration::from_millis(10));
    }
}

/// An ordinary blocking connection that has said hello.
fn peer(server: &Server, role: Role) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&Hello { role, congestion: String::new() }.encode()).unwrap();
    stream
}

fn always() -> Window {
    Window { start: Timestamp::ZERO, end: Timestamp::MAX }
}

#[test]
fn an_upload_is_counted_to_the_byte_and_reported() {
    let server = server("127.0.0.1:0");
    let mut peer = peer(&server, Role::Sink);
    peer.write_all(&vec![7; 3_000_001]).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).unwrap();
    let mut last = Bytes::ZERO;
    ReportReader::default().push(&answer, |report| last = report.received);
    assert_eq!(last, Bytes::new(3_000_001));
    assert_eq!(server.stop().unwrap().latest().received, Bytes::new(3_000_001));
}

#[test]
fn both_directions_run_at_once_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let server = server(address);
        let mut client = Client::start(plan(&server, 2, 3)).unwrap();
        assert!(client.wait_established(clock::now() + PATIENCE).unwrap());
        eventually("a second of points", || client.record().uploads.goodput_steps(always()).len() >= 3);
        let (client, server) = (client.stop().unwrap(), server.stop().unwrap());
        let (down, up) = (client.own.latest(), server.latest());
        assert!(down.received > Bytes::ZERO && up.received > Bytes::ZERO);
        assert!(up.sent.segments > 0 && down.sent.segments > 0, "{up:?} {down:?}");
        assert!(client.uploads.latest().received > Bytes::ZERO);
        assert!(client.uploads.latest().received <= up.received, "reported before it was received");
        for series in [&client.own, &client.uploads, &server] {
            assert!(series.goodput(always()).unwrap() > Rate::mbit_per_s(1));
        }
    }
}

#[test]
fn reports_agree_with_the_servers_own_series() {
    let server = server("127.0.0.1:0");
    let mut client = Client::start(plan(&server, 2, 0)).unwrap();
    client.wait_established(clock::now() + PATIENCE).unwrap();
    eventually("ten reports", || client.record().uploads.goodput_steps(always()).len() >= 10);
    let (reported, own) = (client.stop().unwrap().uploads, server.stop().unwrap());
    let received: Vec<Bytes> = own.points().map(|(_, counters)| counters.received).collect();
    for (_, counters) in reported.points() {
        assert!(received.contains(&counters.received), "{counters:?} is no point of the server's");
    }
}

#[test]
fn an_unknown_congestion_control_is_refused_with_the_list() {
    let server = server("127.0.0.1:0");
    let plan = LoadPlan { congestion: "warp9".to_owned(), ..plan(&server, 1, 0) };
    let message = Client::start(plan).unwrap_err().to_string();
    assert!(message.contains("'warp9' is not known"), "{message}");
    for name in available_congestion_controls().unwrap() {
        assert!(message.contains(&name), "{message} lacks {name}");
    }
}

#[test]
fn a_server_that_goes_away_is_an_error_and_no_hang() {
    for (up, down, flow) in [(1, 0, "upload 1"), (0, 1, "download 1")] {
        let server = server("127.0.0.1:0");
        let mut client = Client::start(plan(&server, up, down)).unwrap();
        client.wait_established(clock::now() + PATIENCE).unwrap();
        drop(server);
        let mut failure = None;
        eventually("the failure", || {
            failure = client.check().err();
            failure.is_some()
        });
        let message = failure.unwrap().to_string();
        assert!(message.contains(flow) && message.contains("broke off"), "{message}");
    }
}

#[test]
fn a_closed_port_is_an_error_that_names_the_server() {
    let gone = server("127.0.0.1:0");
    let plan = plan(&gone, 1, 1);
    drop(gone);
    let error = Client::start(plan.clone()).unwrap().wait_established(clock::now() + PATIENCE).unwrap_err();
    assert!(matches!(&error, LoadError::Connect { server, .. } if *server == plan.server), "{error}");
}

#[test]
fn a_stop_is_quick_and_leaves_nothing_running() {
    let server = server("127.0.0.1:0");
    let mut client = Client::start(plan(&server, 4, 4)).unwrap();
    client.wait_established(clock::now() + PATIENCE).unwrap();
    let before = clock::now();
    client.stop().unwrap();
    // 0.05 s of sleep at most; the rest is room for a busy machine.
    assert!(clock::now() < before + Duration::from_secs(2));
    let mut last = server.series().latest();
    eventually("the server's rest", || {
        clock::sleep_until(clock::now() + 3 * TICK);
        let previous = std::mem::replace(&mut last, server.series().latest());
        previous == last
    });
}

#[test]
fn garbage_and_silence_are_turned_away_while_service_goes_on() {
    let server = server("127.0.0.1:0");
    let _silent: Vec<_> = (0..20).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut garbage = TcpStream::connect(server.address()).unwrap();
    garbage.set_read_timeout(Some(PATIENCE)).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let answer = garbage.read(&mut [0; 16]);
    assert!(matches!(answer, Ok(0) | Err(_)), "{answer:?}");
    assert!(!matches!(&answer, Err(error) if error.kind() == io::ErrorKind::WouldBlock), "not turned away");
    let mut source = peer(&server, Role::Source);
    source.read_exact(&mut [0; 100_000]).unwrap();
}

#[test]
fn a_congestion_control_that_the_server_lacks_ends_the_download() {
    let server = server("127.0.0.1:0");
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&Hello { role: Role::Source, congestion: "warp9".to_owned() }.encode()).unwrap();
    let answer = stream.read(&mut [0; 16]);
    assert!(matches!(&answer, Ok(0)) || answer.unwrap_err().kind() == io::ErrorKind::ConnectionReset);
}

#[test]
fn two_servers_cannot_share_a_port() {
    let first = server("127.0.0.1:0");
    let message = Server::start(first.address()).unwrap_err().to_string();
    assert!(message.contains(&first.address().to_string()), "{message}");
}
