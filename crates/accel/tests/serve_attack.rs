//! `accel serve` as a program under attack, over loopback: its memory stays bounded and it goes on serving.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef";
const PATIENCE: Duration = Duration::from_secs(20);
/// What the server may have taken on beside its start, after all of it.
const GROWTH_LIMIT_KB: u64 = 32 * 1024;

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_accel"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more).env_remove("ACCEL_TOKEN");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        Self { child, address }
    }

    fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Says hello in `role`; the stream and the server's answer, `None` when it hung up.
    fn hello(&self, role: u8, token: &str) -> (TcpStream, Option<u8>) {
        let mut stream = self.connect();
        let mut hello = vec![role, 0, token.len() as u8];
        hello.extend(token.as_bytes());
        stream.write_all(&hello).unwrap();
        let mut answer = [0];
        let answered = stream.read_exact(&mut answer).is_ok();
        (stream, answered.then_some(answer[0]))
    }

    /// Everything it is for still works.
    fn check_service(&self) {
        let (mut source, answer) = self.hello(b'D', TOKEN);
        assert_eq!(answer, Some(b'+'));
        source.read_exact(&mut vec![0; 300_000]).unwrap();
        let (mut echo, answer) = self.hello(b'E', TOKEN);
        assert_eq!(answer, Some(b'+'));
        echo.write_all(&[7; 64]).unwrap();
        let mut frame = [0; 64];
        echo.read_exact(&mut frame).unwrap();
        assert_eq!(frame, [7; 64]);
        let (mut control, answer) = self.hello(b'P', TOKEN);
        assert_eq!(answer, Some(b'+'));
        let mut datagram = [0; 64];
        control.read_exact(&mut datagram[..16]).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_read_timeout(Some(PATIENCE)).unwrap();
        udp.send_to(&datagram, self.address).unwrap();
        let mut answer = [0; 2_000];
        assert_eq!(udp.recv_from(&mut answer).unwrap().0, 64);
        assert_eq!(answer[..16], datagram[..16]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A xorshift of its own: the test must not depend on a generator's version.
fn random_bytes(state: &mut u64, length: usize) -> Vec<u8> {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn memory_stays_bounded_and_service_goes_on() {
    let server = Server::start(&["--token", TOKEN]);
    server.check_service();
    let before = server.resident_kb();

    // 10,000 connections that say nothing; the test's own descriptors are limited.
    let mut idle = VecDeque::new();
    for _ in 0..10_000 {
        idle.push_back(server.connect());
        if idle.len() > 500 {
            idle.pop_front();
        }
    }
    server.check_service();
    drop(idle);

    // Garbage, half hellos, wrong tokens.
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for round in 0..500_usize {
        let mut stream = server.connect();
        let length = 1 + round % 200;
        drop(stream.write_all(&random_bytes(&mut state, length)));
        assert_ne!(server.hello(b"UDEP"[round % 4], "wrong-token-here").1, Some(b'+'));
    }
    server.check_service();

    // Readers that never read, writers that never end, echoes that are never taken back.
    let slow: Vec<_> = (0..20).map(|_| server.hello(b'D', TOKEN)).collect();
    let mut echoes: Vec<_> = (0..20).map(|_| server.hello(b'E', TOKEN).0).collect();
    for echo in &mut echoes {
        echo.set_nonblocking(true).unwrap();
        while echo.write(&[1; 65_536]).is_ok() {}
    }
    server.check_service();
    drop((slow, echoes));

    let after = server.resident_kb();
    eprintln!("resident: {before} kB before, {after} kB after");
    assert!(after < before + GROWTH_LIMIT_KB, "{before} kB before, {after} kB after");
}

#[test]
fn fuzzed_datagrams_get_no_answer_but_that_of_a_session() {
    let server = Server::start(&["--token", TOKEN]);
    let (mut control, _) = server.hello(b'P', TOKEN);
    let mut session = [0; 16];
    control.read_exact(&mut session).unwrap();
    let before = server.resident_kb();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let (mut state, mut sent, mut received) = (42, 0_usize, 0_usize);
    let mut buffer = [0; 2_000];
    // A longer attack: ACCEL_FUZZ_SECONDS=60.
    let seconds = std::env::var("ACCEL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let end = platform::clock::now() + Duration::from_secs(seconds);
    while platform::clock::now() < end {
        let length = random_bytes(&mut state, 2).iter().map(|b| usize::from(*b)).sum::<usize>() * 3;
        let mut datagram = random_bytes(&mut state, length);
        // Every third is of a real session, so that its fields are fuzzed too.
        if length >= 16 && length % 3 == 0 {
            datagram[..16].copy_from_slice(&session);
        }
        sent += udp.send_to(&datagram, server.address).unwrap_or(0);
        while let Ok((bytes, _)) = udp.recv_from(&mut buffer) {
            assert_eq!(buffer[..16], session, "an answer without a session");
            received += bytes;
        }
    }
    assert!(received > 0 && received < sent, "{received} of {sent} bytes");
    server.check_service();
    assert!(server.resident_kb() < before + GROWTH_LIMIT_KB);
    // A session ends with its connection.
    drop(control);
    platform::clock::sleep_until(platform::clock::now() + Duration::from_millis(300));
    while udp.recv_from(&mut buffer).is_ok() {}
    let mut datagram = [0; 64];
    datagram[..16].copy_from_slice(&session);
    udp.send_to(&datagram, server.address).unwrap();
    udp.set_nonblocking(false).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(udp.recv_from(&mut buffer).is_err());
}

#[test]
fn a_signal_ends_it_cleanly_and_a_taken_port_is_explained() {
    let mut server = Server::start(&[]);
    let again = Command::new(env!("CARGO_BIN_EXE_accel"))
        .args(["serve", "--listen", &server.address.to_string()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&server.address.to_string()) && stderr.contains("another program"), "{stderr}");
    let kill = format!("kill -TERM {}", server.child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    server.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(rest.contains("stopped; "), "{rest}");
}
