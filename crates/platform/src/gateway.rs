//! The first router on the way out (rtnetlink, `man 7 rtnetlink`).

use crate::netlink::{Message, Netlink, NetlinkError, Protocol, Reply, attribute};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The gateways of the default routes, IPv4 first, lowest metric first within a family. The port is 0; an IPv6
/// link-local address carries its interface.
///
/// # Errors
/// When the kernel refuses the listing.
pub fn default_gateways() -> Result<Vec<SocketAddr>, NetlinkError> {
    let mut gateways = list(libc::AF_INET)?;
    // A kernel without IPv6 refuses the family; then there is nothing to list.
    gateways.extend(list(libc::AF_INET6).unwrap_or_default());
    Ok(gateways)
}

fn list(family: i32) -> Result<Vec<SocketAddr>, NetlinkError> {
    let mut header = [0_u8; 12];
    header[0] = family as u8;
    let mut netlink = Netlink::open(Protocol::Route)?;
    let replies = netlink.dump("list routes", Message::new(libc::RTM_GETROUTE, 0, &header))?;
    let mut found: Vec<(u32, SocketAddr)> = replies.iter().filter_map(read_default).collect();
    found.sort_by_key(|&(metric, _)| metric);
    found.dedup_by_key(|&mut (_, address)| address);
    Ok(found.into_iter().map(|(_, address)| address).collect())
}

/// `struct rtmsg` (family, dst_len, src_len, tos, table, protocol, scope, type, flags) and attributes: metric and
/// gateway of a default route of the main table.
fn read_default(reply: &Reply) -> Option<(u32, SocketAddr)> {
    let (header, attributes) = reply.body.split_at_checked(12)?;
    let word = |kind| Some(u32::from_ne_bytes(attribute(attributes, kind)?.try_into().ok()?));
    let table = word(libc::RTA_TABLE).unwrap_or_else(|| header[4].into());
    if header[1] != 0 || table != u32::from(libc::RT_TABLE_MAIN) || header[7] != libc::RTN_UNICAST {
        return None;
    }
    let gateway = attribute(attributes, libc::RTA_GATEWAY)?;
    let address = match gateway.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(gateway).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(gateway).ok()?)),
        _ => return None,
    };
    let address = match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            SocketAddrV6::new(v6, 0, 0, word(libc::RTA_OIF)?).into()
        }
        other => SocketAddr::new(other, 0),
    };
    Some((word(libc::RTA_PRIORITY).unwrap_or(0), address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::{Namespace, in_test};

    #[test]
    fn a_host_without_routes_has_no_gateway() {
        in_test(|| {
            let host = Namespace::create().unwrap();
            assert_eq!(host.run(|| default_gateways().unwrap()), []);
        });
    }

    #[test]
    fn link_local_gateways_carry_their_interface() {
        let mut body = vec![10, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let gateway: Ipv6Addr = "fe80::1".parse().unwrap();
        for (kind, data) in [
            (libc::RTA_GATEWAY, gateway.octets().to_vec()),
            (libc::RTA_OIF, 7_u32.to_ne_bytes().to_vec()),
            (libc::RTA_PRIORITY, 100_u32.to_ne_bytes().to_vec()),
        ] {
            body.extend((4 + data.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(data);
        }
        let reply = Reply { kind: libc::RTM_NEWROUTE, body };
        let (metric, address) = read_default(&reply).unwrap();
        assert_eq!((metric, address.to_string()), (100, "[fe80::1%7]:0".to_owned()));
    }
}
