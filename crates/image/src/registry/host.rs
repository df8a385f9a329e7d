//! Hosts of registries.

use std::net::IpAddr;

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
