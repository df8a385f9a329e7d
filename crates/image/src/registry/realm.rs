//! The token services that a registry's login is sent to.
//!
//! A registry names its token service in its answer (`WWW-Authenticate: Bearer realm=…`). Docker and the containers/image
//! library send the login to whatever host that is. A registry that was taken over, or one behind a redirect, would so
//! get the login of every user sent to a host of its choice, so here the host must belong to the registry's domain:
//! `auth.docker.io` for `registry-1.docker.io`, `gitlab.example.com` for `registry.example.com`. Users can name others.

use reqwest::Url;

use super::http::host;
use crate::source::SourceError;
use model::Environment;

/// Environment variable with further hosts, separated by commas.
pub(super) const VARIABLE: &str = "NCCLCHECK_TOKEN_HOSTS";

/// The hosts that may get a registry's login.
#[derive(Clone, Debug)]
pub(super) struct TokenHosts {
    registry: String,
    others: Vec<String>,
}

impl TokenHosts {
    /// Those for the registry at `HOST[:PORT]`.
    pub(super) fn new(registry: &str, environment: &Environment) -> Self {
        let others = environment.get(VARIABLE).unwrap_or_default();
        let others = others.split(',').map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty());
        Self { registry: registry.to_ascii_lowercase(), others: others.collect() }
    }

    /// Refuses a token service on a host that has nothing to do with the registry.
    pub(super) fn check(&self, service: &Url, object: &str) -> Result<(), SourceError> {
        let name = service.host_str().unwrap_or_default().to_ascii_lowercase();
        let shown = host(service);
        if is_of_domain(without_port(&self.registry), &name)
            || self.others.iter().any(|other| *other == name || *other == shown)
        {
            return Ok(());
        }
        Err(SourceError::denied(format!(
            "{object}: the login for {} was not sent to the token service at {shown}, another domain",
            self.registry
        ))
        .with_hint(format!("if the registry's operator confirms that host, set {VARIABLE}={shown}")))
    }
}

/// Returns true if two hosts are the same, or belong to one registrable domain (publicsuffix.org).
fn is_of_domain(registry: &str, service: &str) -> bool {
    let domain = |name: &str| psl::domain_str(name).map(str::to_owned);
    let is_address = |name: &str| name.starts_with('[') || name.parse::<std::net::IpAddr>().is_ok();
    registry == service
        || !is_address(registry)
            && !is_address(service)
            && domain(registry).is_some_and(|of| domain(service) == Some(of))
}

fn without_port(registry: &str) -> &str {
    match registry.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => registry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(registry: &str, service: &str, others: &str) -> bool {
        let environment = [(VARIABLE.to_owned(), others.to_owned())].into_iter().collect();
        let service = Url::parse(service).unwrap();
        TokenHosts::new(registry, &environment).check(&service, "logging in").is_ok()
    }

    #[test]
    fn a_login_stays_in_the_domain_of_its_registry() {
        for (registry, service) in [
            ("docker.io", "https://auth.docker.io/token"),
            ("registry.gitlab.com", "https://gitlab.com/jwt/auth"),
            ("registry.example.co.uk", "https://git.example.co.uk/jwt/auth"),
            ("quay.io", "https://quay.io/v2/auth"),
            ("localhost:5000", "http://localhost:5001/token"),
            ("10.0.0.1:5000", "https://10.0.0.1/token"),
            ("[::1]:5000", "https://[::1]/token"),
            ("R.Example.com", "https://auth.example.COM/token"),
        ] {
            assert!(is_allowed(registry, service, ""), "{registry} {service}");
        }
        for (registry, service) in [
            ("r.io", "https://evil.io/token"),
            ("docker.io", "https://auth.docker.io.evil.com/token"),
            ("example.co.uk", "https://evil.co.uk/token"),
            ("a.github.io", "https://b.github.io/token"),
            ("10.0.0.1", "https://10.0.0.2/token"),
            ("localhost", "https://evil/token"),
            ("intern", "https://auth/token"),
        ] {
            assert!(!is_allowed(registry, service, "x.io"), "{registry} {service}");
        }
        assert!(is_allowed("r.io", "https://evil.io/token", "x.io, EVIL.io"));
        assert!(is_allowed("r.io", "https://sso.corp:8443/token", "sso.corp:8443"));
    }
}
