//! Addresses with ports (`ncclSocketGetAddrFromString` in `src/misc/socket.cc`) and ranges of addresses
//! (`envIbAddrRange` in `src/transport/net_ib/connect.cc`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::Version;

use super::Misreading;
use super::policies::atoi;

/// The first release that looks whether a range has a slash.
const CHECKS_SLASH: &str = "2.23.4";

const FORMAT: &str = "NCCL stops: the format is IPV4:PORT, [IPV6]:PORT or HOSTNAME:PORT";

/// The address of NCCL's root. NCCL does not start without one.
pub(super) fn address(value: &str) -> Option<Misreading> {
    let refused = || Some(Misreading::stops(FORMAT));
    if value.len() < 2 {
        return refused();
    }
    let Some(bracketed) = value.strip_prefix('[') else { return named(value) };
    // NCCL looks for the end of the brackets only, and takes the port two characters after it.
    let Some((host, rest)) = bracketed.split_once(']') else { return refused() };
    let host = host.split('%').next().unwrap_or_default();
    if host.parse::<Ipv6Addr>().is_err() {
        return Some(Misreading::ignored(format!("{host} is not an IPv6 address")));
    }
    port(rest.get(1..).unwrap_or_default())
}

/// `IPV4:PORT` or `HOSTNAME:PORT`: the first entry of a list that has a name.
fn named(value: &str) -> Option<Misreading> {
    let entry = value.split(',').find(|entry| !entry.is_empty() && !entry.starts_with(':'));
    let Some(entry) = entry else { return Some(Misreading::stops(FORMAT)) };
    let (host, number) = entry.split_once(':').map_or((entry, None), |(host, port)| (host, Some(port)));
    if !is_host(host) {
        return Some(Misreading::stops(FORMAT));
    }
    match number {
        _ if entry.len() != value.len() => {
            Some(Misreading::ignored(format!("NCCL reads {entry} and ignores the rest")))
        }
        Some(number) => port(number),
        None => Some(Misreading::ignored("it has no port, so NCCL takes 65535")),
    }
}

/// A host name, or an IPv4 address with four numbers; what consists of digits and dots is not a name.
fn is_host(host: &str) -> bool {
    let is_numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_name = || host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if is_numeric { is_ipv4(host) } else { is_name() }
}

/// The forms of inet_aton(3): the last number fills the bytes that are left.
fn is_ipv4(host: &str) -> bool {
    let numbers: Option<Vec<u32>> = host.split('.').map(|part| part.parse().ok()).collect();
    let Some((last, bytes)) = numbers.as_deref().and_then(<[u32]>::split_last) else { return false };
    let most = u32::MAX.checked_shr(u32::try_from(8 * bytes.len()).unwrap_or(u32::MAX)).unwrap_or(0);
    bytes.len() < 4 && bytes.iter().all(|byte| *byte <= 255) && *last <= most
}

fn port(text: &str) -> Option<Misreading> {
    let read = atoi(text).unwrap_or(0);
    let kept = read.rem_euclid(1 << 16);
    (read != kept || kept == 0 || !text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| Misreading::ignored(format!("NCCL reads port {kept}")))
}

/// `ADDRESS/LENGTH` of the family in `NCCL_IB_ADDR_FAMILY`; NCCL ignores what it cannot read.
pub(super) fn range(value: &str, version: &Version) -> Option<Misreading> {
    let crashes = Version::parse(CHECKS_SLASH).is_some_and(|first| *version < first);
    let ignored = |why: String| Some(Misreading::ignored(format!("NCCL ignores it: {why}")));
    let Some((address, length)) = value.split_once('/') else {
        let crash = || Some(Misreading::stops("NCCL crashes: a range is ADDRESS/LENGTH"));
        return if crashes { crash() } else { ignored("a range is ADDRESS/LENGTH".to_owned()) };
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Ipv4Addr::BITS,
        Ok(IpAddr::V6(_)) => Ipv6Addr::BITS,
        Err(_) => return ignored(format!("'{address}' is not an address")),
    };
    match atoi(length) {
        Some(read) if read > i64::from(most) => ignored(format!("the length is at most {most}")),
        Some(read) if read > 0 && length.bytes().all(|b| b.is_ascii_digit()) => None,
        read => Some(Misreading::ignored(format!("NCCL reads the length {}", read.unwrap_or(0)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(found: Option<Misreading>) -> String {
        found.map_or_else(|| "-".to_owned(), |found| if found.stops { "stops".to_owned() } else { found.what })
    }

    #[test]
    fn addresses_have_hosts_and_ports() {
        for (value, expected) in [
            ("10.0.0.1:4000", "-"),
            ("node-1.cluster:4000", "-"),
            ("[fe80::1%eth0]:4000", "-"),
            ("[::1]:4000", "-"),
            ("", "stops"),
            ("1", "stops"),
            (":4000", "stops"),
            ("10.0.0.999:4000", "stops"),
            ("10.0.0:4000", "-"),
            ("255.255.255.255:4000", "-"),
            ("256.0.0.1:4000", "stops"),
            ("10.256.0.1:4000", "stops"),
            ("10.65536:4000", "-"),
            ("10.16777215:4000", "-"),
            ("10.16777216:4000", "stops"),
            ("1.2.3.4.5:4000", "stops"),
            ("a b:4000", "stops"),
            (" 10.0.0.1:4000", "stops"),
            ("[::1:4000", "stops"),
            ("[10.0.0.1]:4000", "10.0.0.1 is not an IPv6 address"),
            ("10.0.0.1", "it has no port, so NCCL takes 65535"),
            ("10.0.0.1:x", "NCCL reads port 0"),
            ("10.0.0.1:", "NCCL reads port 0"),
            ("10.0.0.1:70000", "NCCL reads port 4464"),
            ("[::1]", "NCCL reads port 0"),
            ("10.0.0.1:4000,10.0.0.2:4000", "NCCL reads 10.0.0.1:4000 and ignores the rest"),
        ] {
            assert_eq!(outcome(address(value)), expected, "{value}");
        }
    }

    #[test]
    fn ranges_of_addresses() {
        for (value, expected) in [
            ("10.0.0.0/8", "-"),
            ("fd00::/64", "-"),
            ("10.0.0.0/32", "-"),
            ("10.0.0.0/33", "NCCL ignores it: the length is at most 32"),
            ("fd00::/129", "NCCL ignores it: the length is at most 128"),
            ("10.0.0.0", "NCCL ignores it: a range is ADDRESS/LENGTH"),
            ("10.0.0/8", "NCCL ignores it: '10.0.0' is not an address"),
            (" 10.0.0.0/8", "NCCL ignores it: ' 10.0.0.0' is not an address"),
            ("10.0.0.0/x", "NCCL reads the length 0"),
            ("10.0.0.0/8x", "NCCL reads the length 8"),
        ] {
            assert_eq!(outcome(range(value, &Version::parse("2.27.5").unwrap())), expected, "{value}");
        }
        for (version, expected) in [("2.22.3", "stops"), (CHECKS_SLASH, "NCCL ignores it: a range is ADDRESS/LENGTH")] {
            assert_eq!(outcome(range("10.0.0.0", &Version::parse(version).unwrap())), expected, "{version}");
        }
    }
}
