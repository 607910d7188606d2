//! Client and server against each other and against odd peers, over loopback.

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

/// Says hello and waits for the answer; `None` when the server hangs up instead.
fn say_hello(stream: &mut TcpStream, role: Role, congestion: &str, token: &str) -> Option<Answer> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let hello = Hello { role, congestion: congestion.to_owned(), token: token.into() };
    stream.write_all(&hello.encode()).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).ok()?;
    Some(Answer::of(answer[0]).unwrap())
}

/// An ordinary blocking connection that has been accepted.
fn peer(server: &Server, role: Role) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(say_hello(&mut stream, role, "", ""), Some(Answer::Accepted));
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
fn what_a_server_does_not_have_is_said() {
    let server = server("127.0.0.1:0");
    for (role, congestion, expected) in [
        (Role::Source, "warp9", Answer::NoCongestion),
        (Role::Echo, "", Answer::NotOffered),
        (Role::Datagrams, "", Answer::NotOffered),
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        assert_eq!(say_hello(&mut stream, role, congestion, ""), Some(expected));
        assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0, "and the connection ends");
    }
}

#[test]
fn only_who_shows_the_token_is_served() {
    let token: Token = "correct-horse".parse().unwrap();
    let policy = Policy { token: Some(token.clone()), ..Policy::default() };
    let server = Server::start_with("127.0.0.1:0".parse().unwrap(), policy, None).unwrap();
    for wrong in ["", "correct-horsf", "correct-hors", "correct-horse-battery"] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        assert_eq!(say_hello(&mut stream, Role::Source, "", wrong), Some(Answer::WrongToken), "{wrong}");
    }
    let mut refused = Client::start(plan(&server, 1, 1)).unwrap();
    let error = refused.wait_established(clock::now() + PATIENCE).unwrap_err().to_string();
    assert!(error.contains("--token") && !error.contains("horse"), "{error}");
    let mut client = Client::start_with(plan(&server, 1, 1), Some(&token), u64::MAX).unwrap();
    assert!(client.wait_established(clock::now() + PATIENCE).unwrap());
}

#[test]
fn a_client_has_its_limits() {
    let policy =
        Policy { connections_per_client: 2, rate_per_client: Some(Rate::mbit_per_s(8)), ..Policy::default() };
    let server = Server::start_with("127.0.0.1:0".parse().unwrap(), policy, None).unwrap();
    let mut streams: Vec<_> = (0..3).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let answers: Vec<_> = streams.iter_mut().map(|s| say_hello(s, Role::Source, "", "").unwrap()).collect();
    assert_eq!(answers, [Answer::Accepted, Answer::Accepted, Answer::TooMany]);
    // 1 MB/s for both together: a megabyte each takes about two seconds, never much less.
    let before = clock::now();
    let mut readers = Vec::new();
    for mut stream in streams.drain(..2) {
        readers.push(std::thread::spawn(move || stream.read_exact(&mut vec![0; 1_000_000])));
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap().unwrap());
    let took = clock::now() - before;
    assert!(took > Duration::from_millis(1_500), "{took:?}");
}

#[test]
fn a_load_ends_with_the_data_it_may_move() {
    let server = server("127.0.0.1:0");
    let mut client = Client::start_with(plan(&server, 2, 2), None, 1_000_000).unwrap();
    client.wait_established(clock::now() + PATIENCE).unwrap();
    eventually("the end of its data", || client.is_used_up());
    clock::sleep_until(clock::now() + 2 * TICK);
    client.check().unwrap();
    // A turn of each flow beyond the limit, at most.
    assert!(client.moved_bytes() < 1_000_000 + 4 * 4 * 131_072, "{}", client.moved_bytes());
}

#[test]
fn thousands_of_silent_connections_bar_nobody() {
    let server = server("127.0.0.1:0");
    let mut silent = std::collections::VecDeque::new();
    for _ in 0..3_000 {
        silent.push_back(TcpStream::connect(server.address()).unwrap());
        // The test's own descriptors are limited.
        if silent.len() > 400 {
            silent.pop_front();
        }
    }
    let mut source = peer(&server, Role::Source);
    source.read_exact(&mut [0; 100_000]).unwrap();
}

#[test]
fn a_downloads_retransmissions_come_back_with_its_data() {
    let server = server("127.0.0.1:0");
    let mut client = Client::start(plan(&server, 0, 2)).unwrap();
    client.wait_established(clock::now() + PATIENCE).unwrap();
    let sent = |record: &ClientRecord| record.sent(always()).segments;
    eventually("the server's count", || sent(&client.record()) > 1_000);
    let (client, server) = (client.stop().unwrap(), server.stop().unwrap());
    assert_eq!(client.downloads.len(), 2);
    assert!(sent(&client) <= server.latest().sent.segments, "no more than was sent");
}

#[test]
fn two_servers_cannot_share_a_port() {
    let first = server("127.0.0.1:0");
    let message = Server::start(first.address()).unwrap_err().to_string();
    assert!(message.contains(&first.address().to_string()), "{message}");
}
