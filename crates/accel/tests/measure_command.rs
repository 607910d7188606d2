//! `accel measure` against `accel serve` from outside: over loopback, and across an emulated line whose truth is known.

use accel::emulator::{Emulator, EmulatorConfig, Handshake, HandshakeCapture};
use lab::{LinkConfig, QueueLimit};
use platform::namespace::{Namespace, in_test};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use units::{Rate, Ratio};

const TOKEN: &str = "0123456789abcdef";

fn accel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_accel"));
    command.args(arguments).stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("ACCEL_TOKEN");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Without the line breaks and frames that the width has brought.
fn flat(stdout: &str) -> String {
    stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A file that goes away with the test.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("accel-measure-{name}-{}.json", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn read(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(&self.0).unwrap()).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(listen: &str) -> Self {
        let mut child =
            accel(&["serve", "--listen", listen, "--token", TOKEN]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The arguments of a short run against `server` and nobody else.
fn arguments<'a>(server: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all =
        vec!["measure", "--load", server, "--no-default-targets", "--no-gateway", "--yes", "--no-dns"];
    all.extend(more);
    all
}

fn phase<'a>(run: &'a Value, name: &str) -> &'a Value {
    run["phases"].as_array().unwrap().iter().find(|p| p["phase"] == name).unwrap()
}

fn row<'a>(phase: &'a Value, kind: &str) -> &'a Value {
    phase["rows"].as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap()
}

/// No number in a document may be NaN; JSON has none, so that a null is what to look for where a value must be.
fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

#[test]
fn a_line_of_known_rate_delay_and_queue_is_measured_as_what_it_is() {
    in_test(|| {
        let link = |rate, seed| LinkConfig {
            rate: Some(Rate::mbit_per_s(rate)),
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            loss: Ratio::ZERO,
            queue: QueueLimit::Time(Duration::from_millis(100)),
            seed,
        };
        let emulator = Emulator::start(&EmulatorConfig { up: link(10, 1), down: link(30, 2) }).unwrap();
        let server = emulator.server().run(|| Server::start("198.19.0.2:0"));
        let (address, file) = (server.address.to_string(), File::new("line"));
        let more =
            ["--token", TOKEN, "--cc", "cubic", "--seconds", "3", "--ramp", "2s", "--json", file.path()];
        let mut capture = HandshakeCapture::start(emulator.client(), Emulator::CLIENT_INTERFACE).unwrap();
        let output = in_namespace(emulator.client(), &arguments(&address, &more));
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{stdout}{stderr}");
        let run = file.read();
        check_truth(&run);
        check_against_the_wire(&run, capture.collect());
        check_text(&stdout);
        // What the emulator saw: never more than the line carries, and what was reported as received went through it.
        let counters = emulator.counters();
        let moved: f64 =
            ["upload", "bidirectional"].map(|name| number(phase(&run, name), "/data_mb")).iter().sum();
        assert!(moved * 1e6 < (counters.up.link.delivered_bytes + counters.down.link.delivered_bytes) as f64);
        eprintln!("{stdout}");
    });
}

#[test]
fn a_line_is_measured_over_ipv6_too() {
    in_test(|| {
        let link = |seed| LinkConfig {
            rate: Some(Rate::mbit_per_s(50)),
            delay: Duration::from_millis(5),
            jitter: Duration::ZERO,
            loss: Ratio::ZERO,
            queue: QueueLimit::Time(Duration::from_millis(50)),
            seed,
        };
        let emulator = Emulator::start(&EmulatorConfig { up: link(3), down: link(4) }).unwrap();
        let listen = format!("[{}]:0", Emulator::SERVER_V6);
        let server = emulator.server().run(|| Server::start(&listen));
        let (address, file) = (server.address.to_string(), File::new("v6"));
        let more = [
            "--token",
            TOKEN,
            "--cc",
            "cubic",
            "--phases",
            "idle,upload",
            "--seconds",
            "2",
            "--ramp",
            "1s",
            "-6",
        ];
        let mut arguments = arguments(&address, &more);
        arguments.extend(["--json", file.path()]);
        let output = in_namespace(emulator.client(), &arguments);
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        let run = file.read();
        let up = number(phase(&run, "upload"), "/up/mbps");
        assert!((35.0..47.7).contains(&up), "50 Mbit/s less the headers of IPv6: {up}");
        assert_eq!(number(row(phase(&run, "idle"), "datagram_full"), "/ways/ip_bytes"), 1_448.0);
        assert!(text(&output.stdout).contains("(IPv6)"));
    });
}

#[test]
fn datagrams_tell_which_way_the_line_loses() {
    in_test(|| {
        let link = |loss, seed| LinkConfig {
            rate: None,
            delay: Duration::from_millis(5),
            jitter: Duration::ZERO,
            loss: Ratio::from_percent(loss).unwrap(),
            queue: QueueLimit::Packets(1_000),
            seed,
        };
        // Both ways of the connections' handshakes would suffer from more.
        let emulator = Emulator::start(&EmulatorConfig { up: link(8.0, 5), down: link(0.0, 6) }).unwrap();
        let server = emulator.server().run(|| Server::start("198.19.0.2:0"));
        let (address, file) = (server.address.to_string(), File::new("ways"));
        let more = [
            "--token",
            TOKEN,
            "--phases",
            "idle",
            "--seconds",
            "4",
            "--period",
            "10ms",
            "--json",
            file.path(),
        ];
        let output = in_namespace(emulator.client(), &arguments(&address, &more));
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        let run = file.read();
        let small = row(phase(&run, "idle"), "datagram_small");
        let (up, down) =
            (number(small, "/ways/up/loss/value_pct"), number(small, "/ways/down/loss/value_pct"));
        // 400 datagrams at 8 %: 32 lost, standard deviation 5.4.
        assert!((3.0..14.0).contains(&up), "8 % are lost on the way up: {up}");
        assert_eq!(down, 0.0, "and none on the way down");
        let (lo, hi) = (number(small, "/ways/up/loss/lo_pct"), number(small, "/ways/up/loss/hi_pct"));
        assert!(lo <= up && up <= hi && hi < 25.0, "{lo} {up} {hi}");
        let delay = number(small, "/latency_ms/p50/value");
        assert!((10.0..12.0).contains(&delay), "5 ms each way: {delay}");
        let handshakes = row(phase(&run, "idle"), "handshake");
        assert!(number(handshakes, "/loss/value_pct") > 0.0, "some SYNs are lost too");
    });
}

fn in_namespace(namespace: &Namespace, arguments: &[&str]) -> Output {
    namespace.run(|| accel(arguments).output().unwrap())
}

fn check_truth(run: &Value) {
    let median = |name, kind| number(row(phase(run, name), kind), "/latency_ms/p50/value");
    let idle = median("idle", "handshake");
    assert!((20.0..23.0).contains(&idle), "the line's delay is 20 ms both ways: {idle}");
    let up = number(phase(run, "upload"), "/up/mbps");
    // 1448 of 1500 bytes are payload at most.
    assert!((8.0..9.66).contains(&up), "10 Mbit/s up: {up}");
    let down = number(phase(run, "download"), "/down/mbps");
    assert!((24.0..28.97).contains(&down), "30 Mbit/s down: {down}");
    let loaded = median("upload", "handshake");
    assert!((45.0..122.0).contains(&loaded), "a FIFO of 100 ms on top of 20: {loaded}");
    let resent = number(phase(run, "download"), "/bulk_retransmit_pct");
    assert!(resent > 0.0, "the FIFO overflows, and the server tells of what it sent again");
    let letter = run["grade"]["overall"]["letter"].as_str().unwrap();
    assert!(["B", "C"].contains(&letter), "{letter}");
    assert_eq!((run["command"].as_str(), run["interrupted"].as_bool()), (Some("measure"), Some(false)));
}

/// Every measured handshake, in its order, against the packets at the client's interface, which also show the
/// handshakes of the load and of the look-ups.
fn check_against_the_wire(run: &Value, mut wire: Vec<Handshake>) {
    const WITHIN_MS: f64 = 0.1;
    const LOOK_AHEAD: usize = 40;
    wire.sort_by_key(|handshake| handshake.sent);
    let measured = run["phases"].as_array().unwrap().iter().flat_map(|phase| {
        row(phase, "handshake")["samples"]["kernel_ms"].as_array().unwrap().iter().filter_map(Value::as_f64)
    });
    let (mut next, mut found, mut all) = (0, 0, 0);
    for ms in measured {
        all += 1;
        let is_it = |h: &Handshake| h.retransmits == 0 && (units::as_ms(h.rtt) - ms).abs() < WITHIN_MS;
        if let Some(at) = wire.iter().skip(next).take(LOOK_AHEAD).position(is_it) {
            (next, found) = (next + at + 1, found + 1);
        }
    }
    eprintln!("{found} of {all} handshakes within {WITHIN_MS} ms of the wire");
    // A machine that is busy with other tests may delay the kernel itself now and then.
    assert!(all > 400 && found * 100 >= all * 90, "{found} of {all} are within {WITHIN_MS} ms of the wire");
}

fn check_text(stdout: &str) {
    for words in [
        "Targets, pinned: 198.19.0.2:",
        " cubic flows per direction",
        "95 % CI",
        "Grade of latency under load: ",
        "harsher",
        "DSLReports",
        "Cloudflare AIM",
        "Instrument, p99",
        "loopback control",
        "too few samples",
    ] {
        assert!(flat(stdout).contains(words), "{words} is missing in:\n{stdout}");
    }
    assert!(!stdout.contains("NaN") && !stdout.contains("inf "), "{stdout}");
    let widest = stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest} columns:\n{stdout}");
}

#[test]
fn without_a_load_server_the_idle_line_is_measured_and_the_rest_explained() {
    let server = Server::start("127.0.0.1:0");
    let address = server.address.to_string();
    let output =
        accel(&["measure", &address, "--seconds", "1", "--no-gateway", "--no-dns"]).output().unwrap();
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    assert!(
        flat(&stdout).contains("accel measure --load HOST --token TOKEN") && stdout.contains("idle, 1.0 s"),
        "{stdout}"
    );
    assert!(!stdout.contains("upload, "), "{stdout}");
}

#[test]
fn ctrl_c_prints_what_was_measured_so_far() {
    let server = Server::start("127.0.0.1:0");
    let (address, file) = (server.address.to_string(), File::new("interrupted"));
    let more = ["--token", TOKEN, "--seconds", "1", "--ramp", "30s", "--json", file.path()];
    let mut child =
        accel(&arguments(&address, &more)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("download")));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stdout}");
    assert!(
        stdout.contains("idle, 1.0 s") && flat(&stdout).contains("not measured: upload, bidirectional"),
        "{stdout}"
    );
    let run = file.read();
    assert_eq!(run["interrupted"], true);
    assert_eq!(phase(&run, "download")["cut_short"], "interrupted");
}

#[test]
fn a_server_that_goes_away_costs_the_rest_and_not_what_was_measured() {
    let server = Server::start("127.0.0.1:0");
    let address = server.address.to_string();
    let more = ["--token", TOKEN, "--seconds", "1", "--ramp", "30s"];
    let mut child =
        accel(&arguments(&address, &more)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("download")));
    drop(server);
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}{said:?}");
    assert!(said.iter().any(|line| line.contains("load: ")), "{said:?}");
    assert!(stdout.contains("idle, 1.0 s") && flat(&stdout).contains("not measured: download"), "{stdout}");
}

#[test]
fn the_data_allowed_is_not_exceeded() {
    let server = Server::start("127.0.0.1:0");
    let (address, file) = (server.address.to_string(), File::new("data"));
    let more =
        ["--token", TOKEN, "--seconds", "5", "--ramp", "0s", "--max-data", "1MB", "--json", file.path()];
    let output = accel(&arguments(&address, &more)).output().unwrap();
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    assert!(flat(&stdout).contains("the data allowed by --max-data was used up"), "{stdout}");
    assert!(
        number(phase(&file.read(), "download"), "/data_mb") < 4.0,
        "a turn of each flow beyond it at most"
    );
    assert!(file.read()["duration_s"].as_f64().unwrap() < 15.0);
}

#[test]
fn mistakes_are_explained_before_anything_runs() {
    let server = Server::start("127.0.0.1:0");
    let address = server.address.to_string();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["measure", "a b"], 2, "is not a target"),
        (&["measure", "--phases", "upload"], 2, "--load HOST --token"),
        (
            &["measure", "--load", &address, "--token", TOKEN, "--no-default-targets", "--no-gateway"],
            2,
            "add --yes",
        ),
        (&["measure", "--max-data", "2"], 2, "is not a size"),
        (&["measure", "127.0.0.1:9", "--no-gateway", "--no-dns"], 1, "connection refused"),
        (&["measure", "--load", "127.0.0.1:9", "--yes", "--no-default-targets"], 1, "accel serve"),
        (&["measure", "-6", "127.0.0.1:9", "--no-gateway"], 1, "has no IPv6 address"),
        (&["measure", "127.0.0.1:9", "--json", "/nonexistent/x"], 4, "No such file"),
    ];
    for (arguments, code, message) in cases {
        let output = accel(arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    let wrong = accel(&arguments(&address, &["--token", "wrong-token"])).output().unwrap();
    assert!(text(&wrong.stderr).contains("wants another token"), "{}", text(&wrong.stderr));
}
