//! Hosts of registries, and networks in lists of hosts: `10.0.0.0/8`.

use std::net::IpAddr;

/// Addresses that share their leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressRange {
    address: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Parses `ADDRESS/BITS`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        Some(Self { address: address.parse().ok()?, bits: bits.parse().ok()? })
    }

    /// Returns true if the network contains an address.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

/// `HOST` of `HOST[:PORT]`.
pub(super) fn host_name(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(host, _)| host)
}

/// Returns true if the registry is on this machine. The grammar of references excludes IPv6 addresses.
pub(super) fn is_local(host: &str) -> bool {
    let host = host_name(host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_bits_decide() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.168.1.7/32", "192.168.1.7", true),
            ("192.168.1.7/32", "192.168.1.6", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "10.0.0.1", false),
        ] {
            assert_eq!(
                AddressRange::parse(network).unwrap().contains(address.parse().unwrap()),
                inside,
                "{network} {address}"
            );
        }
        assert_eq!(AddressRange::parse("10.0.0.0"), None);
    }

    #[test]
    fn loopback_is_local() {
        for (host, local) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("127.0.0.2:80", true),
            ("docker.io", false),
            ("localhost.example", false),
            ("10.0.0.1:5000", false),
        ] {
            assert_eq!(is_local(host), local, "{host}");
        }
    }
}
