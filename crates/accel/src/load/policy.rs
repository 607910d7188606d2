//! Whom a server serves and how much, and the books about it. Pure.

use super::TICK;
use super::token::Token;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use units::Rate;

/// Whom a server serves, and how much.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What a client must show; `None` = nothing.
    pub token: Option<Token>,
    /// Connections served at once; more are turned away.
    pub connections: usize,
    /// The same for one client.
    pub connections_per_client: usize,
    /// Payload each way for one client; `None` = as much as the line takes.
    pub rate_per_client: Option<Rate>,
}

impl Default for Policy {
    /// Everybody, without a limit for one client: for a server inside of one's own machine.
    fn default() -> Self {
        Self { token: None, connections: 512, connections_per_client: 512, rate_per_client: None }
    }
}

/// Who a client is: an IPv4 address, or the 64 bits of an IPv6 address that a network is given (RFC 6177).
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Which way bytes go, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    connections: usize,
    /// Bytes it may still move in and out until the next tick; negative after more.
    budgets: [i64; 2],
}

/// The clients that have connections. As many entries as there are connections, at most.
#[derive(Debug, Default)]
pub(super) struct Clients {
    accounts: BTreeMap<IpAddr, Account>,
    /// Bytes for one tick; `None` = no limit.
    per_tick: Option<i64>,
}

impl Clients {
    pub(super) fn new(policy: &Policy) -> Self {
        let per_tick = |rate: Rate| {
            let bytes = u128::from(rate.as_bits_per_s()) * TICK.as_millis() / 8_000;
            i64::try_from(bytes).unwrap_or(i64::MAX / 4).max(1)
        };
        Self { accounts: BTreeMap::new(), per_tick: policy.rate_per_client.map(per_tick) }
    }

    /// Counts one more connection of a client; whether it may have it.
    pub(super) fn admit(&mut self, client: IpAddr, policy: &Policy) -> bool {
        let all: usize = self.accounts.values().map(|account| account.connections).sum();
        let account = self.accounts.get(&client).copied();
        let own = account.map_or(0, |account| account.connections);
        if all >= policy.connections || own >= policy.connections_per_client {
            return false;
        }
        let budgets = account.map_or([self.per_tick.unwrap_or(0); 2], |account| account.budgets);
        self.accounts.insert(client, Account { connections: own + 1, budgets });
        true
    }

    /// One connection of the client has ended.
    pub(super) fn release(&mut self, client: IpAddr) {
        if let Some(account) = self.accounts.get_mut(&client) {
            account.connections -= 1;
            if account.connections == 0 {
                self.accounts.remove(&client);
            }
        }
    }

    /// The client has moved so many bytes.
    pub(super) fn spend(&mut self, client: IpAddr, way: Way, bytes: u64) {
        if self.per_tick.is_some()
            && let Some(account) = self.accounts.get_mut(&client)
        {
            let budget = &mut account.budgets[way as usize];
            *budget = budget.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Most bytes that the client may move at once; zero until a later tick.
    pub(super) fn budget(&self, client: IpAddr, way: Way) -> usize {
        let Some(_) = self.per_tick else { return usize::MAX };
        let budget = self.accounts.get(&client).map_or(0, |account| account.budgets[way as usize]);
        usize::try_from(budget).unwrap_or(0)
    }

    /// A tick has passed: everybody may move more, what was left over not beyond one more tick.
    pub(super) fn on_tick(&mut self) {
        let Some(per_tick) = self.per_tick else { return };
        for budget in self.accounts.values_mut().flat_map(|account| &mut account.budgets) {
            *budget = budget.saturating_add(per_tick).min(2 * per_tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        client_of(text.parse().unwrap())
    }

    #[test]
    fn neighbours_in_a_network_of_64_bits_are_one_client() {
        assert_eq!(ip("fd00::1"), ip("fd00::ffff"));
        assert_ne!(ip("fd00::1"), ip("fd00:0:0:1::1"));
        assert_ne!(ip("198.18.0.1"), ip("198.18.0.2"));
        assert_eq!(ip("::ffff:198.18.0.1"), ip("198.18.0.1"));
    }

    #[test]
    fn connections_are_counted_by_client_and_in_all() {
        let policy = Policy { connections: 3, connections_per_client: 2, ..Policy::default() };
        let mut clients = Clients::new(&policy);
        let (a, b) = (ip("198.18.0.1"), ip("198.18.0.2"));
        let admitted: Vec<bool> = [a, a, a, b, b].map(|client| clients.admit(client, &policy)).into();
        assert_eq!(admitted, [true, true, false, true, false]);
        clients.release(a);
        assert!(clients.admit(b, &policy));
        clients.release(a);
        clients.release(b);
        clients.release(b);
        assert!(clients.accounts.is_empty(), "nothing is kept of those who are gone");
    }

    #[test]
    fn a_rate_is_kept_over_time() {
        let policy = Policy { rate_per_client: Some(Rate::mbit_per_s(8)), ..Policy::default() };
        let (mut clients, a) = (Clients::new(&policy), ip("198.18.0.1"));
        clients.admit(a, &policy);
        let mut moved = 0;
        for _ in 0..100 {
            clients.on_tick();
            while clients.budget(a, Way::In) > 0 {
                let bytes = clients.budget(a, Way::In).min(30_000) as u64;
                moved += bytes;
                clients.spend(a, Way::In, bytes);
            }
        }
        // 10 s at 1 MB/s and the first tick's budget.
        assert!((10_000_000..=10_200_000).contains(&moved), "{moved}");
        clients.spend(a, Way::Out, 5_000_000);
        clients.on_tick();
        assert_eq!(clients.budget(a, Way::Out), 0, "a debt is paid first");
        assert!(clients.budget(a, Way::In) > 0, "each way has its own");
    }
}
