//! The kernel looks for a packet in its list of held ones from the oldest on: what does that cost?

use crate::bulk::{INTERFACE, SERVER, World};
use platform::clock;
use platform::nfqueue::{NfQueue, QueueOptions, Verdict};
use platform::nft::{RulePlan, Rules};
use std::net::UdpSocket;

/// A socket may have this many small datagrams under way before its send buffer is full.
const DATAGRAMS_PER_SOCKET: usize = 100;

/// Lets `packets` datagrams be held, then drops them all in one order; the time for each in ns.
pub fn nanos_per_verdict(packets: usize, newest_first: bool) -> f64 {
    let world = World::new();
    world.client.run(|| {
        let options = QueueOptions { number: None, gso: false, max_packets: 20_000 };
        let mut queue = NfQueue::bind(options).unwrap();
        let plan = RulePlan {
            table: "accel_bench".to_owned(),
            interface: INTERFACE.to_owned(),
            queue: queue.number(),
            bypass: Vec::new(),
        };
        let rules = Rules::install(&plan).unwrap();
        let mut ids = Vec::new();
        let mut sockets = Vec::new();
        while ids.len() < packets {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for _ in 0..DATAGRAMS_PER_SOCKET.min(packets - ids.len()) {
                socket.send_to(&[7; 64], (SERVER, 9)).unwrap();
            }
            while queue.receive(|packet| ids.push(packet.id)).unwrap() > 0 {}
            sockets.push(socket);
        }
        if newest_first {
            ids.reverse();
        }
        let start = clock::now();
        for &id in &ids {
            queue.verdict(id, Verdict::Drop);
        }
        queue.flush();
        let nanos = (clock::now() - start).as_nanos() as f64 / ids.len() as f64;
        rules.remove().unwrap();
        nanos
    })
}
