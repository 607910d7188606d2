//! What makes two packets the same flow, and its salted hash.

use core::net::IpAddr;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Addresses, ports and protocol (RFC 8290 section 4.1). Fragments and protocols without ports have ports 0.
/// A tunnel is one flow, by its outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port, or 0.
    pub source_port: u16,
    /// Destination port, or 0.
    pub destination_port: u16,
    /// IP protocol number of the transport.
    pub protocol: u8,
}

/// The secret that keeps a remote host from choosing ports which collide with another flow's queue
/// (RFC 8290 section 4.1). Drawn once at start by the program; the same salt gives the same hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub [u64; 2]);

impl FlowKey {
    /// The flow's 64-bit hash under `salt`: SipHash-1-3 over the whole key.
    #[inline]
    pub fn hash(&self, salt: &Salt) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(salt.0[0], salt.0[1]);
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                hasher.write_u32(source.to_bits());
                hasher.write_u32(destination.to_bits());
            }
            (source, destination) => {
                hasher.write(&octets(source));
                hasher.write(&octets(destination));
            }
        }
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        hasher.write_u64(u64::from(self.protocol) << 32 | ports);
        hasher.finish()
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SALT: Salt = Salt([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);

    fn key(last: u8, source_port: u16, destination_port: u16) -> FlowKey {
        FlowKey {
            source: IpAddr::from([198, 18, 0, 1]),
            destination: IpAddr::from([198, 18, 0, last]),
            source_port,
            destination_port,
            protocol: 6,
        }
    }

    #[test]
    fn the_salt_decides_and_nothing_else() {
        let flow = key(2, 40_000, 443);
        assert_eq!(flow.hash(&SALT), flow.hash(&SALT));
        assert_ne!(flow.hash(&SALT), flow.hash(&Salt([1, 2])));
        assert_ne!(flow.hash(&SALT), flow.hash(&Salt([SALT.0[0], 0])));
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let flow = key(2, 40_000, 443);
        let swapped = FlowKey { source: flow.destination, destination: flow.source, ..flow };
        let v6 =
            FlowKey { source: "fd00::1".parse().unwrap(), destination: "fd00::2".parse().unwrap(), ..flow };
        let others = [
            key(3, 40_000, 443),
            key(2, 40_001, 443),
            key(2, 443, 40_000),
            FlowKey { protocol: 17, ..flow },
            swapped,
            v6,
            FlowKey { source: v6.destination, destination: v6.source, ..v6 },
        ];
        let hashes: BTreeSet<u64> = others.iter().chain([&flow]).map(|k| k.hash(&SALT)).collect();
        assert_eq!(hashes.len(), others.len() + 1);
    }

    #[test]
    fn ports_counted_up_spread_evenly_over_the_low_bits() {
        let mut buckets = [0_u32; 128];
        for port in 0..12_800 {
            buckets[key(2, port, 443).hash(&SALT) as usize % 128] += 1;
        }
        // 100 expected in each; six standard deviations of a Poisson count are 60.
        assert!(buckets.iter().all(|n| (40..=160).contains(n)), "{buckets:?}");
    }
}
