//! The first address of a host that answers a handshake (RFC 8305, "Happy Eyeballs").

use platform::clock;
use platform::poll::{Interest, Poller};
use platform::tcp::TcpSocket;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Timestamp;

/// The next address is tried when the one before has not answered for this long (RFC 8305, section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Addresses tried of one host.
const MAX_ATTEMPTS: usize = 8;
/// How soon a cancellation is noticed.
const CANCEL_CHECK: Duration = Duration::from_millis(50);

/// The address that won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// It answered first.
    pub address: SocketAddr,
    /// How long the whole race took.
    pub took: Duration,
}

/// No address answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|(address, why)| format!("{address}: {why}")).collect::<Vec<_>>().join("; "))]
pub struct Unreached(
    /// Each address that was tried, and what became of it.
    pub Vec<(SocketAddr, String)>,
);

/// Shakes hands with the addresses, the families taking turns, one every 250 ms or as soon as the one before has
/// failed, until one answers or `deadline` has passed. A fall-back from a silent family thus takes 250 ms and the other
/// family's round trip.
///
/// # Errors
/// When none has answered, with what became of each.
pub fn race(addresses: &[SocketAddr], deadline: Timestamp, cancel: &AtomicBool) -> Result<Race, Unreached> {
    let started = clock::now();
    let mut attempts = Attempts { waiting: interleave(addresses), ..Attempts::new()? };
    let mut next_start = started;
    loop {
        let now = clock::now();
        if now >= deadline || cancel.load(Ordering::Relaxed) {
            return Err(attempts.give_up());
        }
        if now >= next_start && attempts.start_next() {
            next_start = now + ATTEMPT_DELAY;
        }
        if attempts.is_over() {
            return Err(attempts.give_up());
        }
        let failed_before = attempts.failed.len();
        let wake = if attempts.waiting.is_empty() { deadline } else { next_start.min(deadline) };
        if let Some(address) = attempts.wait(wake.min(now + CANCEL_CHECK)) {
            return Ok(Race { address, took: clock::now() - started });
        }
        if attempts.failed.len() > failed_before {
            next_start = clock::now();
        }
    }
}

/// The families by turns, that of the first address first (RFC 8305, section 4).
fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == first_is_v6);
    let mut order = Vec::new();
    while !(first.is_empty() && second.is_empty()) {
        order.extend((!first.is_empty()).then(|| first.remove(0)));
        order.extend((!second.is_empty()).then(|| second.remove(0)));
    }
    order.truncate(MAX_ATTEMPTS);
    order
}

struct Attempts {
    poller: Poller,
    /// Not tried yet, in order.
    waiting: Vec<SocketAddr>,
    /// By token; `None` once it has failed.
    running: Vec<Option<(SocketAddr, TcpSocket)>>,
    failed: Vec<(SocketAddr, String)>,
}

impl Attempts {
    fn new() -> Result<Self, Unreached> {
        let poller = Poller::new().map_err(|_| Unreached(Vec::new()))?;
        Ok(Self { poller, waiting: Vec::new(), running: Vec::new(), failed: Vec::new() })
    }

    /// Starts the next attempt; whether there was one.
    fn start_next(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let address = self.waiting.remove(0);
        let token = self.running.len() as u64;
        let started = TcpSocket::open(address).and_then(|socket| {
            socket.connect(address)?;
            self.poller.add(&socket, token, Interest::WRITE)?;
            Ok(socket)
        });
        match started {
            Ok(socket) => self.running.push(Some((address, socket))),
            Err(error) => {
                self.running.push(None);
                self.failed.push((address, why(&error)));
            }
        }
        true
    }

    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.running.iter().all(Option::is_none)
    }

    /// The winner, if there is one before `wake`.
    fn wait(&mut self, wake: Timestamp) -> Option<SocketAddr> {
        let events = self.poller.wait(wake).map(<[_]>::to_vec).unwrap_or_default();
        for event in events {
            let attempt = self.running.get_mut(usize::try_from(event.token).ok()?)?;
            let Some((address, socket)) = attempt.take() else { continue };
            match socket.take_error() {
                Ok(None) => return Some(address),
                Ok(Some(error)) | Err(error) => self.failed.push((address, why(&error))),
            }
        }
        None
    }

    fn give_up(mut self) -> Unreached {
        let silent = self.running.into_iter().flatten().map(|(address, _)| (address, "no answer".to_owned()));
        self.failed.extend(silent);
        Unreached(self.failed)
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::NetworkUnreachable => "no route".to_owned(),
        io::ErrorKind::HostUnreachable => "host unreachable".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::links::{Links, VethEnd};
    use platform::namespace::{Namespace, in_test};

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn soon() -> Timestamp {
        clock::now() + Duration::from_secs(3)
    }

    #[test]
    fn families_take_turns() {
        let [a, b, c, d] = ["[fd00::1]:1", "[fd00::2]:1", "198.18.0.1:1", "198.18.0.2:1"].map(address);
        assert_eq!(interleave(&[a, b, c, d]), [a, c, b, d]);
        assert_eq!(interleave(&[c, a, b]), [c, a, b]);
        assert_eq!(interleave(&[]), []);
        assert_eq!(interleave(&[a; 20]).len(), MAX_ATTEMPTS);
    }

    #[test]
    fn a_closed_port_loses_at_once_to_an_open_one() {
        let listener = TcpSocket::listen(address("127.0.0.1:0"), 8).unwrap();
        let open = listener.local_address().unwrap();
        let closed = {
            let gone = TcpSocket::listen(address("[::1]:0"), 8).unwrap();
            gone.local_address().unwrap()
        };
        let race = race(&[closed, open], soon(), &GO_ON).unwrap();
        assert_eq!(race.address, open);
        let error = super::race(&[closed], soon(), &GO_ON).unwrap_err();
        assert_eq!(error.to_string(), format!("{closed}: connection refused"));
        assert_eq!(super::race(&[], soon(), &GO_ON).unwrap_err(), Unreached(Vec::new()));
    }

    #[test]
    fn a_cancelled_race_ends() {
        // Its deadline is far; the port answers nobody, since nothing runs at 127.0.0.1 after the cancellation.
        let cancelled = AtomicBool::new(true);
        let never = Timestamp::MAX;
        assert!(race(&[address("127.0.0.1:9")], never, &cancelled).is_err());
    }

    #[test]
    fn a_silent_family_costs_less_than_a_second() {
        in_test(|| {
            let host = Namespace::create().unwrap();
            let open = address("198.18.0.2:80");
            let far = Namespace::create().unwrap();
            host.run(|| {
                let end = |name, last, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, last], namespace };
                let mut links = Links::open().unwrap();
                links.create_veth([end("near", 1, &host), end("far", 2, &far)], 1_500).unwrap();
                links.add_address("near", "198.18.0.1".parse().unwrap(), 24).unwrap();
                links.set_up("near").unwrap();
                // IPv6 is there, and what it is sent to does not exist.
                links.add_address("near", "fd00::1".parse().unwrap(), 64).unwrap();
                links.add_neighbour("near", "fd00::9".parse().unwrap(), [2, 0, 0, 0, 0, 9]).unwrap();
            });
            let listener = far.run(|| {
                let mut links = Links::open().unwrap();
                links.add_address("far", "198.18.0.2".parse().unwrap(), 24).unwrap();
                links.set_up("far").unwrap();
                TcpSocket::listen(open, 8).unwrap()
            });
            let silent = address("[fd00::9]:80");
            let race = host.run(|| race(&[silent, open], soon(), &GO_ON)).unwrap();
            assert_eq!(race.address, open);
            assert!(race.took >= ATTEMPT_DELAY && race.took < Duration::from_secs(1), "{race:?}");
            drop(listener);
        });
    }
}
