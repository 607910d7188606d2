//! Two namespaces on one wire, and TCP uploads across it.

use platform::links::{Links, VethEnd};
use platform::namespace::Namespace;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub const INTERFACE: &str = "up0";
pub const SERVER: &str = "198.18.0.2";

pub struct World {
    pub client: Namespace,
    pub server: Namespace,
}

impl World {
    pub fn new() -> Self {
        let (client, server) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        let ends = [
            VethEnd { namespace: &client, name: INTERFACE, mac: [2, 0, 0, 0, 0, 1] },
            VethEnd { namespace: &server, name: "down0", mac: [2, 0, 0, 0, 0, 2] },
        ];
        client.run(|| Links::open().unwrap().create_veth(ends, 1500).unwrap());
        for (namespace, name, address) in [(&client, INTERFACE, "198.18.0.1"), (&server, "down0", SERVER)] {
            namespace.run(|| {
                let mut links = Links::open().unwrap();
                links.set_up(name).unwrap();
                links.add_address(name, address.parse().unwrap(), 24).unwrap();
            });
        }
        Self { client, server }
    }
}

/// Uploads that go on until they are stopped.
pub struct Uploads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Uploads {
    pub fn start(world: &World, flows: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for _ in 0..flows {
            let listener = world.server.run(|| TcpListener::bind((SERVER, 0)).unwrap());
            let address = listener.local_addr().unwrap();
            threads.push(std::thread::spawn(move || sink(&listener)));
            let stop = Arc::clone(&stop);
            threads.push(world.client.spawn("upload", move || upload(address, &stop)));
        }
        Self { stop, threads }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn sink(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut buffer = vec![0; 1 << 18];
    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
}

fn upload(address: SocketAddr, stop: &AtomicBool) {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
    let chunk = vec![7; 1 << 17];
    while !stop.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {}
}
