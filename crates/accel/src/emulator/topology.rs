//! Namespaces, veth pairs, addresses and routes of the emulated line.

use super::{Emulator, EmulatorError};
use platform::links::{Links, Mac, VethEnd, segmentation_off};
use platform::namespace::{Namespace, NamespaceError, Step, set_sysctl};
use platform::netlink::NetlinkError;
use std::net::IpAddr;

/// Bytes of IP in one packet, as on Ethernet.
const MTU_BYTES: u32 = 1500;

/// The relay's interface to the client.
pub(super) const CLIENT_LINE: &str = "line0";
/// The relay's interface to the server.
pub(super) const SERVER_LINE: &str = "line1";

// Locally administered addresses (IEEE 802: second bit of the first byte).
pub(super) const CLIENT_MAC: Mac = [2, 0, 0, 0, 0, 1];
pub(super) const SERVER_MAC: Mac = [2, 0, 0, 0, 0, 2];
const CLIENT_LINE_MAC: Mac = [2, 0, 0, 0, 1, 1];
const SERVER_LINE_MAC: Mac = [2, 0, 0, 0, 1, 2];

/// The three namespaces, joined.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) client: Namespace,
    pub(super) server: Namespace,
    pub(super) relay: Namespace,
    /// Whether both hosts have IPv6.
    pub(super) ipv6: bool,
}

/// One host at an end of the line.
struct Host<'a> {
    namespace: &'a Namespace,
    interface: &'a str,
    mac: Mac,
    /// Name and Ethernet address of the relay's interface to it.
    line: (&'a str, Mac),
    addresses: [IpAddr; 2],
    /// The gateway's Ethernet address. It is the other host's, so that the relay passes frames on unchanged; the
    /// relay's own stack ignores them, since they are not addressed to its interfaces.
    gateway_mac: Mac,
}

impl Topology {
    pub(super) fn build() -> Result<Self, EmulatorError> {
        let [client, server, relay] = [Namespace::create()?, Namespace::create()?, Namespace::create()?];
        let mut topology = Self { client, server, relay, ipv6: false };
        let mut ipv6 = true;
        for host in topology.hosts() {
            topology.join(&host)?;
            ipv6 &= host.configure()?;
        }
        topology.ipv6 = ipv6;
        Ok(topology)
    }

    fn hosts(&self) -> [Host<'_>; 2] {
        [
            Host {
                namespace: &self.client,
                interface: Emulator::CLIENT_INTERFACE,
                mac: CLIENT_MAC,
                line: (CLIENT_LINE, CLIENT_LINE_MAC),
                addresses: [Emulator::CLIENT_V4.into(), Emulator::CLIENT_V6.into()],
                gateway_mac: SERVER_MAC,
            },
            Host {
                namespace: &self.server,
                interface: "eth0",
                mac: SERVER_MAC,
                line: (SERVER_LINE, SERVER_LINE_MAC),
                addresses: [Emulator::SERVER_V4.into(), Emulator::SERVER_V6.into()],
                gateway_mac: CLIENT_MAC,
            },
        ]
    }

    /// Lays the veth pair between a host and the relay.
    fn join(&self, host: &Host<'_>) -> Result<(), EmulatorError> {
        let (name, mac) = host.line;
        self.relay.run(|| {
            let mut links = Links::open()?;
            let near = VethEnd { name, mac, namespace: &self.relay };
            let far = VethEnd { name: host.interface, mac: host.mac, namespace: host.namespace };
            links
                .create_veth([near, far], MTU_BYTES)
                .map_err(|error| NamespaceError::new(Step::Veth, error.source))?;
            // The relay's own stack has nothing to say on the line; a kernel without IPv6 has no such setting.
            drop(set_sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1"));
            links.set_up(name)?;
            Ok(segmentation_off(name)?)
        })
    }
}

impl Host<'_> {
    /// Gives the host its addresses and routes; whether IPv6 is among them (the kernel may be without it).
    fn configure(&self) -> Result<bool, EmulatorError> {
        self.namespace.run(|| {
            let mut links = Links::open()?;
            links.set_up(self.interface)?;
            segmentation_off(self.interface)?;
            let [v4, v6] = self.addresses;
            self.add(&mut links, v4)?;
            // A host may have inherited that IPv6 is off; where there is no such setting, adding fails below.
            drop(set_sysctl(&format!("net/ipv6/conf/{}/disable_ipv6", self.interface), "0"));
            Ok(self.add(&mut links, v6).is_ok())
        })
    }

    fn add(&self, links: &mut Links, address: IpAddr) -> Result<(), NetlinkError> {
        links.add_address(self.interface, address, prefix(address))?;
        links.add_neighbour(self.interface, gateway(address), self.gateway_mac)?;
        links.add_default_route(self.interface, gateway(address))
    }
}

/// Networks so small that the other host is beyond the gateway: a shaper lets on-link destinations pass unshaped.
fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 30 } else { 64 }
}

/// The first address of a host's network, for which nobody answers: its neighbour entry is fixed.
fn gateway(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            [a, b, c, 1].into()
        }
        IpAddr::V6(v6) => {
            let mut segments = v6.segments();
            segments[7] = 1;
            segments.into()
        }
    }
}
