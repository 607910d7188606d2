//! Which interface carries the traffic to the Internet, and what is known about it (rtnetlink, `man 7 rtnetlink`).

use crate::netlink::{Message, Netlink, NetlinkError, Protocol, Reply, attribute};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod link_speed;
pub use link_speed::link_speed;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index, unique within its network namespace.
    pub index: u32,
    /// Name, such as `eth0`.
    pub name: String,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// Whether there is one peer at the other end and no network (PPP, most tunnels).
    pub is_point_to_point: bool,
    /// Kind of a virtual interface (`veth`, `wireguard`, `tun`, `bridge`), `None` for hardware.
    pub kind: Option<String>,
    /// Hardware type (ARPHRD_*): 1 Ethernet, 512 PPP, 65534 none.
    hardware_type: u16,
}

impl Interface {
    /// Whether packets sent here travel inside packets of another interface. PPP is not one: a PPPoE link is the
    /// uplink itself.
    pub fn is_tunnel(&self) -> bool {
        const TUNNELS: [&str; 14] = [
            "tun",
            "wireguard",
            "ipip",
            "gre",
            "gretap",
            "ip6gre",
            "ip6gretap",
            "ip6tnl",
            "sit",
            "vti",
            "vti6",
            "xfrm",
            "vxlan",
            "geneve",
        ];
        const ARPHRD_TUNNEL: u16 = 768;
        const ARPHRD_TUNNEL6: u16 = 769;
        self.kind.as_deref().is_some_and(|kind| TUNNELS.contains(&kind))
            || matches!(self.hardware_type, ARPHRD_TUNNEL | ARPHRD_TUNNEL6)
    }
}

/// An address and the number of its leading bits that name the network; the other bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The network of `address` with `bits` leading bits; more bits than the family has count as all of them.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        let bits = bits.min(if address.is_ipv4() { 32 } else { 128 });
        let address = match (address, mask(address, bits)) {
            (IpAddr::V4(a), IpAddr::V4(m)) => (a & m).into(),
            (IpAddr::V6(a), IpAddr::V6(m)) => (a & m).into(),
            _ => unreachable!("mask() keeps the family"),
        };
        Self { address, bits }
    }

    /// The first address of the network.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The mask, of the address's family.
    pub fn mask(self) -> IpAddr {
        mask(self.address, self.bits)
    }
}

fn mask(family: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match family {
        IpAddr::V4(_) => Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits).unwrap_or(0)).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(u128::MAX.checked_shl(128 - bits).unwrap_or(0)).into(),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// All interfaces of the caller's network namespace, by index.
///
/// # Errors
/// When the kernel refuses the listing.
pub fn interfaces() -> Result<Vec<Interface>, NetlinkError> {
    let mut netlink = Netlink::open(Protocol::Route)?;
    let links = netlink.dump("list interfaces", Message::new(libc::RTM_GETLINK, 0, &[0; 16]))?;
    let mut interfaces: Vec<_> = links.iter().filter_map(read_interface).collect();
    interfaces.sort_by_key(|interface| interface.index);
    Ok(interfaces)
}

/// `struct ifinfomsg` (family, pad, type, index, flags, change) and attributes.
fn read_interface(link: &Reply) -> Option<Interface> {
    let (header, attrs) = link.body.split_at_checked(16)?;
    let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let flags = word(8).cast_signed();
    let kind = attribute(attrs, libc::IFLA_LINKINFO).and_then(|info| attribute(info, libc::IFLA_INFO_KIND));
    Some(Interface {
        index: word(4),
        name: text(attribute(attrs, libc::IFLA_IFNAME)?),
        mtu_bytes: number(attribute(attrs, libc::IFLA_MTU)?)?,
        is_up: flags & libc::IFF_UP != 0,
        is_loopback: flags & libc::IFF_LOOPBACK != 0,
        is_point_to_point: flags & libc::IFF_POINTOPOINT != 0,
        kind: kind.map(text),
        hardware_type: u16::from_ne_bytes([header[2], header[3]]),
    })
}

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    destination: Prefix,
    interface: u32,
    has_gateway: bool,
    /// Whether the kernel made it by itself, from an address of the interface.
    is_connected: bool,
    metric: u32,
}

/// The interface of the default route: IPv4 before IPv6, lowest metric first. Where that is a tunnel (a VPN), the
/// interface that carries the tunnel: another default route, else the route to a gateway with the longest prefix
/// (VPN clients add one to their endpoint).
///
/// # Errors
/// When the kernel refuses the listing. `Ok(None)` when nothing leads out.
pub fn default_interface() -> Result<Option<Interface>, NetlinkError> {
    let interfaces = interfaces()?;
    let mut routes = routes(libc::AF_INET)?;
    routes.extend(routes_if_any(libc::AF_INET6));
    Ok(carrier(&interfaces, &routes).cloned())
}

fn routes_if_any(family: i32) -> Vec<Route> {
    // A kernel without IPv6 refuses the family; then there is nothing to list.
    routes(family).unwrap_or_default()
}

fn carrier<'a>(interfaces: &'a [Interface], routes: &[Route]) -> Option<&'a Interface> {
    let interface = |route: &Route| interfaces.iter().find(|i| i.index == route.interface);
    let is_candidate = |route: &&Route| {
        (route.destination.bits == 0 || route.has_gateway)
            && interface(route).is_some_and(|i| !i.is_loopback && i.is_up)
    };
    let rank = |route: &&Route| {
        let is_tunnel = interface(route).is_some_and(Interface::is_tunnel);
        let not_default = (route.destination.bits != 0).then_some(std::cmp::Reverse(route.destination.bits));
        (is_tunnel, not_default, route.destination.address.is_ipv6(), route.metric)
    };
    let has_default = routes.iter().filter(is_candidate).any(|r| r.destination.bits <= 1);
    let best = routes.iter().filter(is_candidate).min_by_key(rank)?;
    has_default.then(|| interface(best)).flatten()
}

/// The networks that are reached on the interface without a router. A gateway is one, and so is the peer of a
/// point-to-point link: there only what the kernel derives from the interface's own addresses is local (the peer
/// itself), not a route that somebody added without naming a gateway.
///
/// # Errors
/// When the kernel refuses the listing.
pub fn connected_prefixes(interface: &Interface) -> Result<Vec<Prefix>, NetlinkError> {
    let mut routes = routes(libc::AF_INET)?;
    routes.extend(routes_if_any(libc::AF_INET6));
    Ok(local_prefixes(interface, &routes))
}

fn local_prefixes(interface: &Interface, routes: &[Route]) -> Vec<Prefix> {
    let mut prefixes: Vec<_> = (routes.iter())
        .filter(|r| r.interface == interface.index && !r.has_gateway && r.destination.bits > 1)
        .filter(|r| r.is_connected || !interface.is_point_to_point)
        .map(|r| r.destination)
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

fn routes(family: i32) -> Result<Vec<Route>, NetlinkError> {
    let mut header = [0u8; 12];
    header[0] = family as u8;
    let mut netlink = Netlink::open(Protocol::Route)?;
    let replies = netlink.dump("list routes", Message::new(libc::RTM_GETROUTE, 0, &header))?;
    Ok(replies.iter().flat_map(read_routes).collect())
}

/// `struct rtmsg` (family, dst_len, src_len, tos, table, protocol, scope, type, flags) and attributes. One reply
/// is several routes when it has several next hops.
fn read_routes(reply: &Reply) -> Vec<Route> {
    let Some((header, attrs)) = reply.body.split_at_checked(12) else { return Vec::new() };
    let table = attribute(attrs, libc::RTA_TABLE).and_then(number).unwrap_or_else(|| header[4].into());
    if table != u32::from(libc::RT_TABLE_MAIN) || header[7] != libc::RTN_UNICAST {
        return Vec::new();
    }
    let unspecified: IpAddr = if i32::from(header[0]) == libc::AF_INET {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let address = attribute(attrs, libc::RTA_DST).and_then(ip_address).unwrap_or(unspecified);
    let route = |interface: u32, has_gateway: bool| Route {
        destination: Prefix::new(address, header[1]),
        interface,
        has_gateway,
        is_connected: header[5] == libc::RTPROT_KERNEL,
        metric: attribute(attrs, libc::RTA_PRIORITY).and_then(number).unwrap_or(0),
    };
    if let Some(hops) = attribute(attrs, libc::RTA_MULTIPATH) {
        return next_hops(hops).map(|(interface, has_gateway)| route(interface, has_gateway)).collect();
    }
    let interface = attribute(attrs, libc::RTA_OIF).and_then(number);
    interface.map(|index| route(index, leads_to_gateway(attrs))).into_iter().collect()
}

/// `struct rtnexthop` (len, flags, hops, ifindex) and attributes, one after the other.
fn next_hops(mut rest: &[u8]) -> impl Iterator<Item = (u32, bool)> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(rest.get(0..2)?.try_into().ok()?));
        let hop = rest.get(..len)?;
        let (index, attrs) = (number(hop.get(4..8)?)?, hop.get(8..)?);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((index, leads_to_gateway(attrs)))
    })
}

fn leads_to_gateway(attrs: &[u8]) -> bool {
    attribute(attrs, libc::RTA_GATEWAY).is_some() || attribute(attrs, libc::RTA_VIA).is_some()
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(index: u32, kind: Option<&str>) -> Interface {
        Interface {
            index,
            name: format!("if{index}"),
            mtu_bytes: 1500,
            is_up: true,
            is_loopback: false,
            is_point_to_point: false,
            kind: kind.map(str::to_owned),
            hardware_type: 1,
        }
    }

    fn route(prefix: &str, interface: u32, has_gateway: bool, metric: u32) -> Route {
        let (address, bits) = prefix.split_once('/').unwrap();
        let destination = Prefix::new(address.parse().unwrap(), bits.parse().unwrap());
        Route { destination, interface, has_gateway, is_connected: false, metric }
    }

    fn chosen(routes: &[Route]) -> Option<u32> {
        let interfaces = [interface(1, None), interface(2, None), interface(3, Some("wireguard"))];
        carrier(&interfaces, routes).map(|interface| interface.index)
    }

    #[test]
    fn the_default_route_with_the_lowest_metric_wins() {
        let routes = [route("0.0.0.0/0", 1, true, 600), route("0.0.0.0/0", 2, true, 100)];
        assert_eq!(chosen(&routes), Some(2));
        assert_eq!(chosen(&[route("198.18.0.0/15", 1, false, 0)]), None);
        assert_eq!(chosen(&[route("::/0", 1, true, 1), route("0.0.0.0/0", 2, true, 600)]), Some(2));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn with_a_vpn_the_interface_below_it_is_chosen() {
        // A VPN as second default route, and one that covers the default route by two halves.
        let second = [route("0.0.0.0/0", 3, false, 50), route("0.0.0.0/0", 1, true, 600)];
        assert_eq!(chosen(&second), Some(1));
        let halves = [route("0.0.0.0/1", 3, true, 0), route("0.0.0.0/0", 2, true, 600)];
        assert_eq!(chosen(&halves), Some(2));
        // No other default route: the route to the endpoint tells, not the one to an inner network.
        let endpoint = [
            route("0.0.0.0/0", 3, false, 50),
            route("198.18.0.0/16", 1, true, 0),
            route("198.19.0.9/32", 2, true, 0),
        ];
        assert_eq!(chosen(&endpoint), Some(2));
        assert_eq!(chosen(&endpoint[..1]), Some(3));
    }

    #[test]
    fn behind_the_peer_of_a_point_to_point_link_nothing_is_local() {
        let peer = Route { is_connected: true, ..route("198.18.0.1/32", 1, false, 0) };
        let routes = [
            peer,
            route("0.0.0.0/0", 1, false, 0),
            route("0.0.0.0/1", 1, false, 0),
            route("198.19.0.9/32", 1, false, 0),
            route("198.19.0.0/16", 1, false, 0),
            route("198.18.5.0/24", 2, false, 0),
        ];
        let names = |interface: &Interface| -> Vec<_> {
            local_prefixes(interface, &routes).iter().map(ToString::to_string).collect()
        };
        let ethernet = interface(1, None);
        assert_eq!(names(&ethernet), ["198.18.0.1/32", "198.19.0.0/16", "198.19.0.9/32"]);
        let ppp = Interface { is_point_to_point: true, ..ethernet };
        assert_eq!(names(&ppp), ["198.18.0.1/32"]);
    }

    #[test]
    fn prefixes_have_no_host_bits() {
        let prefix = |text: &str, bits| Prefix::new(text.parse().unwrap(), bits);
        assert_eq!(prefix("198.18.7.9", 16).to_string(), "198.18.0.0/16");
        assert_eq!(prefix("198.18.7.9", 0).mask().to_string(), "0.0.0.0");
        assert_eq!(prefix("198.18.7.9", 99).to_string(), "198.18.7.9/32");
        assert_eq!(prefix("fd00::1:2", 112).to_string(), "fd00::1:0/112");
        assert_eq!(prefix("::1", 0).mask().to_string(), "::");
    }
}
