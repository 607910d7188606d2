//! Interfaces of the calling thread's network namespace: veth pairs, addresses, routes, neighbours, offloads.
//!
//! rtnetlink (man 7 rtnetlink) for all but the offloads, which are ethtool's.

mod offload;

use crate::namespace::Namespace;
use crate::netlink::{Message, Netlink, NetlinkError, Protocol, Reply, attribute};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

pub use offload::{OffloadError, segmentation_off};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// One end of a veth pair to be made.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Interface name, at most 15 bytes.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Where it comes to life.
    pub namespace: &'a Namespace,
}

/// Requests about the interfaces of the namespace that the calling thread was in at [`open`](Self::open).
#[derive(Debug)]
pub struct Links {
    netlink: Netlink,
}

/// Sizes of the fixed headers: struct ifinfomsg, ifaddrmsg, rtmsg, ndmsg (linux/rtnetlink.h, if_addr.h, neighbour.h).
const LINK_HEADER_BYTES: usize = 16;
const ADDRESS_HEADER_BYTES: usize = 8;
const ROUTE_HEADER_BYTES: usize = 12;
const NEIGHBOUR_HEADER_BYTES: usize = 12;

const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;

impl Links {
    /// Opens the socket.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { netlink: Netlink::open(Protocol::Route)? })
    }

    /// Makes a veth pair of `mtu` bytes with its ends in the two namespaces. No link-local IPv6 address is made
    /// (RFC 7217 addr_gen_mode none), so nothing is sent on it that nobody asked for.
    ///
    /// # Errors
    /// EOPNOTSUPP when the kernel has no veth; EEXIST when a name is taken.
    pub fn create_veth(&mut self, ends: [VethEnd<'_>; 2], mtu: u32) -> Result<(), NetlinkError> {
        const VETH_INFO_PEER: u16 = 1;
        let [here, peer] = ends;
        let described = |message: Message, end: VethEnd<'_>| {
            message
                .attr_str(libc::IFLA_IFNAME, end.name)
                .attr(libc::IFLA_ADDRESS, &end.mac)
                .attr_u32(libc::IFLA_MTU, mtu)
                .attr_u32(libc::IFLA_NET_NS_FD, end.namespace.as_fd().as_raw_fd() as u32)
        };
        let message = Message::new(libc::RTM_NEWLINK, CREATE, &[0; LINK_HEADER_BYTES]);
        let message = described(message, here).nested(libc::IFLA_LINKINFO, |info| {
            info.attr_str(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |m| described(m.raw(&[0; LINK_HEADER_BYTES]), peer))
            })
        });
        let operation = format!("make the veth pair {} - {}", here.name, peer.name);
        self.netlink.request(&operation, message).map(drop)
    }

    /// Brings an interface up. Without a link-local IPv6 address, except on loopback.
    ///
    /// # Errors
    /// ENODEV when it does not exist here.
    pub fn set_up(&mut self, name: &str) -> Result<(), NetlinkError> {
        const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
        const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
        let index = self.index(name)?;
        if name != "lo" {
            let quiet = Message::new(libc::RTM_SETLINK, 0, &link_header(index, 0)).nested(
                libc::IFLA_AF_SPEC,
                |families| {
                    families.nested(libc::AF_INET6 as u16, |inet6| {
                        inet6.attr(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
                    })
                },
            );
            // A kernel without IPv6 refuses this, and then needs it not.
            drop(self.netlink.request("switch link-local addresses off", quiet));
        }
        let up = Message::new(libc::RTM_NEWLINK, 0, &link_header(index, libc::IFF_UP as u32));
        self.netlink.request(&format!("bring {name} up"), up).map(drop)
    }

    /// Adds an address with its prefix length; IPv6 without duplicate address detection (usable at once).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix: u8) -> Result<(), NetlinkError> {
        let mut header = [0; ADDRESS_HEADER_BYTES];
        (header[0], header[1]) = (family(address), prefix);
        header[4..8].copy_from_slice(&self.index(name)?.to_ne_bytes());
        let bytes = octets(address);
        let mut message = Message::new(libc::RTM_NEWADDR, CREATE, &header)
            .attr(libc::IFA_LOCAL, &bytes)
            .attr(libc::IFA_ADDRESS, &bytes);
        if address.is_ipv6() {
            message = message.attr_u32(libc::IFA_FLAGS, libc::IFA_F_NODAD);
        }
        self.netlink.request(&format!("add {address}/{prefix} to {name}"), message).map(drop)
    }

    /// Adds the default route of the gateway's address family.
    ///
    /// # Errors
    /// ENETUNREACH when the gateway is not on an interface's network.
    pub fn add_default_route(&mut self, name: &str, gateway: IpAddr) -> Result<(), NetlinkError> {
        let mut header = [0; ROUTE_HEADER_BYTES];
        header[0] = family(gateway);
        header[4] = libc::RT_TABLE_MAIN;
        header[5] = libc::RTPROT_STATIC;
        header[6] = libc::RT_SCOPE_UNIVERSE;
        header[7] = libc::RTN_UNICAST;
        let index = self.index(name)?;
        let message = Message::new(libc::RTM_NEWROUTE, CREATE, &header)
            .attr(libc::RTA_GATEWAY, &octets(gateway))
            .attr_u32(libc::RTA_OIF, index as u32);
        self.netlink.request(&format!("add the default route by {gateway}"), message).map(drop)
    }

    /// Fixes the Ethernet address of a neighbour, so that it is never asked for.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn add_neighbour(&mut self, name: &str, address: IpAddr, mac: Mac) -> Result<(), NetlinkError> {
        let mut header = [0; NEIGHBOUR_HEADER_BYTES];
        header[0] = family(address);
        header[4..8].copy_from_slice(&self.index(name)?.to_ne_bytes());
        header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWNEIGH, CREATE, &header)
            .attr(libc::NDA_DST, &octets(address))
            .attr(libc::NDA_LLADDR, &mac);
        self.netlink.request(&format!("fix the neighbour {address}"), message).map(drop)
    }

    /// The names of all interfaces here, in the kernel's order.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn names(&mut self) -> Result<Vec<String>, NetlinkError> {
        let message = Message::new(libc::RTM_GETLINK, 0, &[0; LINK_HEADER_BYTES]);
        let links = self.netlink.dump("list the interfaces", message)?;
        Ok(links.iter().filter_map(|link| link_name(&link.body)).collect())
    }

    /// The interface's number.
    ///
    /// # Errors
    /// ENODEV when it does not exist here.
    pub fn index(&mut self, name: &str) -> Result<i32, NetlinkError> {
        let message = Message::new(libc::RTM_GETLINK, 0, &[0; LINK_HEADER_BYTES]);
        let replies =
            self.netlink.request(&format!("look up {name}"), message.attr_str(libc::IFLA_IFNAME, name))?;
        replies.iter().find_map(link_index).ok_or_else(|| NetlinkError {
            operation: format!("look up {name}"),
            source: std::io::Error::from_raw_os_error(libc::ENODEV),
            text: None,
        })
    }
}

/// struct ifinfomsg that names an interface and sets `flags`.
fn link_header(index: i32, flags: u32) -> [u8; LINK_HEADER_BYTES] {
    let mut header = [0; LINK_HEADER_BYTES];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

fn link_index(reply: &Reply) -> Option<i32> {
    (reply.kind == libc::RTM_NEWLINK)
        .then(|| reply.body.get(4..8)?.try_into().ok().map(i32::from_ne_bytes))
        .flatten()
}

fn link_name(body: &[u8]) -> Option<String> {
    let text = attribute(body.get(LINK_HEADER_BYTES..)?, libc::IFLA_IFNAME)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::in_test;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    fn pair() -> [Namespace; 2] {
        let [a, b] = [Namespace::create().unwrap(), Namespace::create().unwrap()];
        let ends =
            [VethEnd { name: "a0", mac: A, namespace: &a }, VethEnd { name: "b0", mac: B, namespace: &b }];
        a.run(|| Links::open().unwrap().create_veth(ends, 1500)).unwrap();
        [a, b]
    }

    fn configure(namespace: &Namespace, name: &str, address: &str, other: (&str, Mac)) {
        namespace.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up(name).unwrap();
            for text in [address, &format!("fd00:0:0:1::{}", &address[address.len() - 1..])] {
                links
                    .add_address(name, text.parse().unwrap(), if text.contains(':') { 64 } else { 30 })
                    .unwrap();
            }
            links.add_neighbour(name, other.0.parse().unwrap(), other.1).unwrap();
            segmentation_off(name).unwrap();
        });
    }

    #[test]
    fn a_pair_carries_tcp_over_both_protocols() {
        in_test(|| {
            let [a, b] = pair();
            configure(&a, "a0", "198.18.0.1", ("198.18.0.2", B));
            configure(&b, "b0", "198.18.0.2", ("198.18.0.1", A));
            for address in ["198.18.0.2:7", "[fd00:0:0:1::2]:7"] {
                let listener = b.run(|| TcpListener::bind(address)).unwrap();
                let mut client = a.run(|| TcpStream::connect(address)).unwrap();
                client.write_all(b"hello").unwrap();
                let mut got = [0; 5];
                listener.accept().unwrap().0.read_exact(&mut got).unwrap();
                assert_eq!(&got, b"hello");
            }
        });
    }

    #[test]
    fn routes_lead_by_the_gateway() {
        in_test(|| {
            let [a, _b] = pair();
            configure(&a, "a0", "198.18.0.1", ("198.18.0.2", B));
            let mut links = a.run(Links::open).unwrap();
            links.add_default_route("a0", "198.18.0.2".parse().unwrap()).unwrap();
            links.add_default_route("a0", "fd00:0:0:1::9".parse().unwrap()).unwrap();
            let from = a.run(|| {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
                socket.connect("198.19.0.2:9")?;
                socket.local_addr()
            });
            assert_eq!(from.unwrap().ip().to_string(), "198.18.0.1");
            let error = links.add_default_route("a0", "198.19.9.9".parse().unwrap()).unwrap_err();
            assert!(error.to_string().contains("198.19.9.9"), "{error}");
        });
    }

    #[test]
    fn pairs_die_with_their_namespaces() {
        in_test(|| {
            let [a, b] = pair();
            assert_eq!(a.run(|| Links::open().unwrap().names().unwrap()), ["lo", "a0"]);
            drop(b);
            // The kernel takes a namespace down in its own time: bounded wait.
            let names = || a.run(|| Links::open().unwrap().names().unwrap());
            let gone = (0..200).any(|_| {
                crate::clock::sleep_until(crate::clock::now() + std::time::Duration::from_millis(20));
                names() == ["lo"]
            });
            assert!(gone, "{:?}", names());
        });
    }

    #[test]
    fn an_unknown_interface_is_named() {
        let error = Links::open().unwrap().set_up("nowhere0").unwrap_err();
        assert_eq!(error.errno(), libc::ENODEV);
        assert!(error.to_string().contains("nowhere0"), "{error}");
    }
}
