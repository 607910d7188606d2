//! Two namespaces on one wire, and the real program on the client's side.
#![expect(dead_code, reason = "each test program uses its part")]

use platform::links::{Links, VethEnd};
use platform::namespace::Namespace;
use platform::nft::list_tables;
use platform::process::terminate;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing here takes so long, however loaded the machine is.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The server on the client's own network, and behind it as behind a gateway.
pub const NEAR: [&str; 2] = ["198.18.0.2", "fd00::2"];
pub const FAR: [&str; 2] = ["198.18.1.1", "fd00:1::1"];

pub struct World {
    pub client: Namespace,
    pub server: Namespace,
}

impl World {
    /// Client (`up0`) and server (`down0`); the server is the client's gateway to [`FAR`].
    pub fn new() -> Self {
        let (client, server) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        let ends = [
            VethEnd { namespace: &client, name: "up0", mac: [2, 0, 0, 0, 0, 1] },
            VethEnd { namespace: &server, name: "down0", mac: [2, 0, 0, 0, 0, 2] },
        ];
        client.run(|| Links::open().unwrap().create_veth(ends, 1500).unwrap());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        client.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("up0").unwrap();
            links.add_address("up0", address("198.18.0.1"), 24).unwrap();
            links.add_address("up0", address("fd00::1"), 64).unwrap();
        });
        server.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("down0").unwrap();
            for (text, bits) in NEAR.into_iter().zip([24, 64]).chain(FAR.into_iter().zip([32, 128])) {
                links.add_address("down0", address(text), bits).unwrap();
            }
        });
        client.run(|| {
            let mut links = Links::open().unwrap();
            NEAR.iter().for_each(|gateway| links.add_default_route("up0", address(gateway)).unwrap());
        });
        Self { client, server }
    }

    /// Starts the program in the client's namespace and waits until it is ready.
    pub fn shaper(&self, arguments: &[&str]) -> Shaper {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shaper"));
        command.args(arguments);
        self.start(command)
    }

    /// The same for a command that runs the program in its own way.
    pub fn start(&self, mut command: Command) -> Shaper {
        let mut child = self.client.run(move || command.stdout(Stdio::piped()).spawn().unwrap());
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        let mut shaper = Shaper { child, lines, ready: String::new() };
        shaper.ready = shaper.line();
        assert!(shaper.ready.starts_with("ready interface=up0 rate_mbps="), "{}", shaper.ready);
        shaper
    }

    /// Runs the program to its end in the client's namespace.
    pub fn shaper_output(&self, arguments: &[&str]) -> Output {
        self.client.run(|| Command::new(env!("CARGO_BIN_EXE_shaper")).args(arguments).output().unwrap())
    }

    /// Tables of packet rules in the client's namespace.
    pub fn tables(&self) -> Vec<String> {
        self.client.run(|| list_tables().unwrap())
    }

    /// A server that counts what one connection sends it.
    pub fn sink(&self, address: &str) -> Sink {
        let address = SocketAddr::new(address.parse().unwrap(), 0);
        let listener = self.server.run(|| TcpListener::bind(address).unwrap());
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return,
                    n => counter.fetch_add(n as u64, Ordering::Relaxed),
                };
            }
        });
        Sink { address, received, thread }
    }

    /// Sends `bytes` to the sink from a thread of its own.
    pub fn upload(&self, sink: &Sink, bytes: usize) -> JoinHandle<()> {
        let address = sink.address;
        self.client.spawn("upload", move || {
            let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&vec![7; bytes]).unwrap();
        })
    }
}

pub struct Sink {
    pub address: SocketAddr,
    received: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Sink {
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until the sender has closed; returns all bytes received.
    pub fn finish(self) -> u64 {
        self.thread.join().unwrap();
        self.received.load(Ordering::Relaxed)
    }
}

/// The running program; ended by SIGTERM when dropped.
pub struct Shaper {
    pub child: Child,
    lines: mpsc::Receiver<String>,
    pub ready: String,
}

impl Shaper {
    /// The next line of its standard output.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line on standard output")
    }

    /// The queue's number, from the ready line.
    pub fn queue(&self) -> u16 {
        self.ready.rsplit_once("queue=").unwrap().1.parse().unwrap()
    }

    /// The process numbers of its children: of the worker.
    pub fn worker(&self) -> Option<u32> {
        children(self.child.id()).first().copied()
    }

    /// Waits for a worker that is not `old`.
    pub fn next_worker(&self, old: u32) -> u32 {
        let mut next = None;
        wait_until("another worker", || {
            next = self.worker().filter(|&pid| pid != old);
            next.is_some()
        });
        next.unwrap()
    }

    /// Sends SIGTERM and waits for the end.
    pub fn end(mut self) -> ExitStatus {
        terminate(&mut self.child).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        if terminate(&mut self.child).is_ok() {
            drop(self.child.wait());
        }
    }
}

fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

/// The fourth field of /proc/PID/stat; the second is a name in brackets. Dead processes that nobody waited for count
/// as gone.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.next()?.parse().ok()
}

pub fn is_running(pid: u32) -> bool {
    parent_of(pid).is_some()
}

/// Sends a signal by its name to one process, by its number.
pub fn signal(name: &str, pid: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        pause(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of the real program runs in real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a test of the real program runs in real time")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}
