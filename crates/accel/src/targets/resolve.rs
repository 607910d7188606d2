//! From names to the addresses that a run is pinned to.

use super::race::{Race, Unreached, race};
use super::{Family, HostPort};
use platform::clock;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Longest wait for one name: the time that the system's resolver gives its first server.
const NAME_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a handshake: room for one SYN that was sent again.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(2_500);
/// How soon a cancellation is noticed.
const CANCEL_CHECK: Duration = Duration::from_millis(50);

/// A host that answers, with its address for the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// As typed.
    pub name: String,
    /// Pinned.
    pub address: SocketAddr,
    /// Addresses that the name has beside it.
    pub others: usize,
    /// From the start of the first handshake to the answer.
    pub took: Duration,
}

/// Why a host is left out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// The resolver says no.
    #[error("{host}: {reason}")]
    Name {
        /// What was asked for.
        host: HostPort,
        /// The system's answer.
        reason: String,
    },
    /// The name has no address of the family asked for.
    #[error("{host}: has no {family} address")]
    NoSuchFamily {
        /// What was asked for.
        host: HostPort,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// No address answers a handshake.
    #[error("{host}: does not answer ({why})")]
    Unreached {
        /// What was asked for.
        host: HostPort,
        /// What became of each address.
        why: Unreached,
    },
    /// A signal came.
    #[error("{host}: interrupted")]
    Interrupted {
        /// What was asked for.
        host: HostPort,
    },
}

/// Resolves all hosts side by side, in the order given, each to the first address that answers. `default_port` is that
/// of hosts which name none. Takes 8 s at most.
pub fn resolve_all(
    hosts: &[HostPort],
    default_port: Option<u16>,
    family: Family,
    cancel: &AtomicBool,
) -> Vec<Result<Resolved, ResolveError>> {
    thread::scope(|scope| {
        let resolve = |host| scope.spawn(move || resolve(host, default_port, family, cancel));
        let threads: Vec<_> = hosts.iter().map(resolve).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

fn resolve(
    host: &HostPort,
    default_port: Option<u16>,
    family: Family,
    cancel: &AtomicBool,
) -> Result<Resolved, ResolveError> {
    let port = host.port.or(default_port).unwrap_or_else(|| host.port());
    let all = addresses(host, port, cancel)?;
    let mut usable: Vec<SocketAddr> = all.into_iter().filter(|address| family.allows(address)).collect();
    usable.dedup();
    if usable.is_empty() {
        let family = if family == Family::V6 { "IPv6" } else { "IPv4" };
        return Err(ResolveError::NoSuchFamily { host: host.clone(), family });
    }
    let Race { address, took } = race(&usable, clock::now() + HANDSHAKE_TIMEOUT, cancel)
        .map_err(|why| ResolveError::Unreached { host: host.clone(), why })?;
    Ok(Resolved { name: host.to_string(), address, others: usable.len() - 1, took })
}

/// All addresses by the system's resolver. It cannot be interrupted: when it takes too long, its thread is left to end
/// by itself.
fn addresses(host: &HostPort, port: u16, cancel: &AtomicBool) -> Result<Vec<SocketAddr>, ResolveError> {
    let (sender, receiver) = mpsc::channel();
    let name = Arc::<str>::from(host.host.as_str());
    let asked = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        let answer = (&*name, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // Nobody waits any more when it took too long.
        drop(sender.send(answer));
    });
    let refused = |reason: String| ResolveError::Name { host: host.clone(), reason };
    asked.map_err(|error| refused(error.to_string()))?;
    let deadline = clock::now() + NAME_TIMEOUT;
    loop {
        match receiver.recv_timeout(CANCEL_CHECK) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => return Err(refused(error.to_string())),
            Err(RecvTimeoutError::Disconnected) => return Err(refused("the resolver broke down".to_owned())),
            Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                return Err(ResolveError::Interrupted { host: host.clone() });
            }
            Err(RecvTimeoutError::Timeout) if clock::now() >= deadline => {
                return Err(refused(format!("no answer from the resolver in {} s", NAME_TIMEOUT.as_secs())));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::tcp::TcpSocket;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn listen(address: &str) -> (TcpSocket, SocketAddr) {
        let listener = TcpSocket::listen(address.parse().unwrap(), 16).unwrap();
        let address = listener.local_address().unwrap();
        (listener, address)
    }

    fn host(address: SocketAddr) -> HostPort {
        address.to_string().parse().unwrap()
    }

    #[test]
    fn each_host_gets_its_answer_in_order() {
        let ((_v4, v4), (_v6, v6)) = (listen("127.0.0.1:0"), listen("[::1]:0"));
        let (gone, closed) = listen("127.0.0.1:0");
        drop(gone);
        let all = resolve_all(&[host(v4), host(closed), host(v6)], None, Family::Any, &GO_ON);
        let (first, last) = (all[0].as_ref().unwrap(), all[2].as_ref().unwrap());
        assert_eq!((first.address, last.address, first.others), (v4, v6, 0));
        let error = all[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("does not answer") && error.contains("refused"), "{error}");
    }

    #[test]
    fn the_family_and_the_default_port_are_kept_to() {
        let (_v4, v4) = listen("127.0.0.1:0");
        let named = HostPort { host: "127.0.0.1".to_owned(), port: None };
        let found = resolve_all(std::slice::from_ref(&named), Some(v4.port()), Family::V4, &GO_ON);
        assert_eq!(found[0].as_ref().unwrap().address, v4);
        let none = resolve_all(&[named], Some(v4.port()), Family::V6, &GO_ON);
        assert!(none[0].as_ref().unwrap_err().to_string().contains("no IPv6 address"));
    }

    #[test]
    fn a_cancelled_run_waits_for_nobody() {
        let cancelled = AtomicBool::new(true);
        let (_v4, v4) = listen("127.0.0.1:0");
        assert!(resolve_all(&[host(v4)], None, Family::Any, &cancelled)[0].is_err());
    }
}
