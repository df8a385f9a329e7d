//! The proxy that a request goes through, by the rules of the HTTP client: messages name it only where it was used.

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;

use super::host::is_local;
use model::Environment;

/// The proxy variables of this process.
#[derive(Debug)]
pub(super) struct Proxies {
    https: Option<&'static str>,
    http: Option<&'static str>,
    /// The hosts that are reached without a proxy.
    without: Vec<String>,
}

impl Proxies {
    /// Reads the variables.
    pub(super) fn of(environment: &Environment) -> Self {
        let first = |names: &[&'static str]| names.iter().copied().find(|name| environment.get(name).is_some());
        let list = environment.get("NO_PROXY").or_else(|| environment.get("no_proxy")).unwrap_or_default();
        Self {
            https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
            http: first(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
            without: list.split(',').map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect(),
        }
    }

    /// The variable that names the proxy for a URL; `None` without a proxy.
    pub(super) fn variable(&self, url: &Url) -> Option<&'static str> {
        let host = url.host_str().unwrap_or_default();
        if is_local(host) || self.without.iter().any(|entry| includes(entry, host)) {
            return None;
        }
        if url.scheme() == "https" { self.https } else { self.http }
    }
}

/// Returns true if an entry of `NO_PROXY` includes a host: `*`, an address, a network, or a domain with its subdomains.
fn includes(entry: &str, host: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return entry.parse() == Ok(address) || entry.parse().is_ok_and(|network: IpNet| network.contains(&address));
    }
    let domain = entry.trim_start_matches('.').to_ascii_lowercase();
    host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)], url: &str) -> Option<&'static str> {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Proxies::of(&environment).variable(&url.parse().unwrap())
    }

    #[test]
    fn a_proxy_applies_to_its_scheme_and_not_to_excluded_hosts() {
        let http = [("HTTP_PROXY", "http://p:1")];
        assert_eq!(proxy(&http, "http://r.example/v2/"), Some("HTTP_PROXY"));
        assert_eq!(proxy(&http, "https://r.example/v2/"), None);
        assert_eq!(proxy(&[("all_proxy", "http://p:1")], "https://r.example/v2/"), Some("all_proxy"));
        assert_eq!(proxy(&[("https_proxy", "http://p:1")], "https://127.0.0.1:5000/v2/"), None);
        for (list, excluded) in [
            ("r.example", true),
            (".r.example", true),
            ("other, example", true),
            ("xr.example", false),
            ("*", true),
            ("10.0.0.0/8", false),
        ] {
            let found = proxy(&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", list)], "http://r.example/v2/");
            assert_eq!(found.is_none(), excluded, "{list}");
        }
        let inside = [("HTTP_PROXY", "http://p:1"), ("no_proxy", "10.0.0.0/8")];
        assert_eq!(proxy(&inside, "http://10.1.2.3:5000/v2/"), None);
        assert_eq!(proxy(&inside, "http://11.1.2.3:5000/v2/"), Some("HTTP_PROXY"));
    }
}
