//! The gateway as a target: the first hop, whose latency tells the home's own network from what lies beyond.

use super::Family;
use super::race::race;
use platform::{clock, gateway::default_gateways};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where home routers listen: their web page, their resolver.
pub const GATEWAY_PORTS: [u16; 3] = [80, 443, 53];
/// A gateway is near: what has not answered by then does not.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// An address of the gateway that answers a handshake: one where it does, `Ok(None)` where there is no gateway.
///
/// # Errors
/// In words, when there is a gateway and it answers on none of [`GATEWAY_PORTS`].
pub fn gateway(family: Family, cancel: &AtomicBool) -> Result<Option<SocketAddr>, String> {
    let gateways = default_gateways().map_err(|error| error.to_string())?;
    let Some(gateway) = gateways.into_iter().find(|address| family.allows(address)) else { return Ok(None) };
    let addresses = GATEWAY_PORTS.map(|port| {
        let mut address = gateway;
        address.set_port(port);
        address
    });
    match race(&addresses, clock::now() + PATIENCE, cancel) {
        Ok(race) => Ok(Some(race.address)),
        Err(_) => Err(format!(
            "the gateway {} takes no connection (ports {}), so it is no target",
            gateway.ip(),
            GATEWAY_PORTS.map(|port| port.to_string()).join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::links::{Links, VethEnd};
    use platform::namespace::{Namespace, in_test};
    use platform::tcp::TcpSocket;
    use std::net::IpAddr;

    #[test]
    fn a_gateway_is_a_target_where_it_answers() {
        in_test(|| {
            let (host, router) = (Namespace::create().unwrap(), Namespace::create().unwrap());
            let [own, other]: [IpAddr; 2] = ["198.18.0.2", "198.18.0.1"].map(|text| text.parse().unwrap());
            host.run(|| {
                let end = |name, last, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, last], namespace };
                let mut links = Links::open().unwrap();
                links.create_veth([end("near", 1, &host), end("far", 2, &router)], 1_500).unwrap();
                links.add_address("near", own, 24).unwrap();
                links.set_up("near").unwrap();
                links.add_default_route("near", other).unwrap();
            });
            let cancel = AtomicBool::new(false);
            let listener = router.run(|| {
                let mut links = Links::open().unwrap();
                links.add_address("far", other, 24).unwrap();
                links.set_up("far").unwrap();
                TcpSocket::listen((other, 443).into(), 8).unwrap()
            });
            assert_eq!(host.run(|| gateway(Family::Any, &cancel)), Ok(Some((other, 443).into())));
            assert_eq!(host.run(|| gateway(Family::V6, &cancel)), Ok(None));
            drop(listener);
            let why = host.run(|| gateway(Family::V4, &cancel)).unwrap_err();
            assert!(why.contains("198.18.0.1 takes no connection"), "{why}");
        });
    }

    #[test]
    fn a_host_without_a_route_has_none() {
        in_test(|| {
            let host = Namespace::create().unwrap();
            let cancel = AtomicBool::new(false);
            assert_eq!(host.run(|| gateway(Family::Any, &cancel)), Ok(None));
        });
    }
}
