//! An endpoint where an engine may listen, in the syntax of `DOCKER_HOST`.

use std::fmt;
use std::path::PathBuf;

use model::printable;

use super::ssh::SshTarget;

/// An endpoint where an engine may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint in the syntax of `DOCKER_HOST`, without secrets; empty where it is unknown.
    pub text: String,
    /// Origin of the endpoint: a variable, a context, or a default.
    pub origin: String,
    /// The parsed address.
    pub address: Address,
}

/// The address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a socket.
    Unix(String),
    /// `HOST:PORT`, unencrypted.
    Http(String),
    /// `HOST:PORT` behind TLS.
    Tls {
        /// `HOST:PORT`.
        host: String,
        /// The folder with `ca.pem`, and with `cert.pem` and `key.pem` where the engine authenticates its clients.
        certificates: PathBuf,
    },
    /// A machine that ssh reaches.
    Ssh(SshTarget),
    /// Not reachable from here, with the reason.
    Unusable(String),
}

/// TLS settings from the environment or the context.
pub(super) struct Tls {
    pub(super) wanted: bool,
    pub(super) certificates: PathBuf,
}

impl Endpoint {
    pub(super) fn new(host: &str, origin: &str, tls: &Tls) -> Self {
        let host = host.trim();
        Self { text: shown(host), origin: origin.to_owned(), address: Address::parse(host, tls) }
    }

    pub(super) fn unusable(origin: String, why: String) -> Self {
        Self { text: String::new(), origin, address: Address::Unusable(why) }
    }
}

impl Address {
    fn parse(host: &str, tls: &Tls) -> Self {
        if host.starts_with('/') {
            return Self::Unusable(format!("write unix://{}", printable(host)));
        }
        // Docker treats a host without a scheme as tcp.
        let (scheme, rest) = host.split_once("://").unwrap_or(("tcp", host));
        match scheme {
            "unix" if rest.starts_with('/') => Self::Unix(rest.to_owned()),
            "unix" => Self::Unusable("unix:// needs the absolute path of a socket".to_owned()),
            "tcp" | "http" | "https" => Self::network(scheme, rest, tls),
            "ssh" => SshTarget::parse(rest).map_or_else(|why| Self::Unusable(why.to_owned()), Self::Ssh),
            other => Self::Unusable(format!(
                "{}:// is not supported; use unix://, tcp://, http://, https:// or ssh://",
                printable(other)
            )),
        }
    }

    fn network(scheme: &str, rest: &str, tls: &Tls) -> Self {
        let host = rest.trim_end_matches('/');
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | '?' | '#' | '\\');
        if host.is_empty() || host.contains(odd) {
            return Self::Unusable(format!("{scheme}:// needs HOST:PORT and nothing else"));
        }
        let secure = tls.wanted || scheme == "https";
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let host = match (has_port, scheme, secure) {
            // The default ports of Docker's API.
            (false, "tcp", true) => format!("{host}:2376"),
            (false, "tcp", false) => format!("{host}:2375"),
            _ => host.to_owned(),
        };
        if secure { Self::Tls { host, certificates: tls.certificates.clone() } } else { Self::Http(host) }
    }
}

/// The address for display: without a password and without control characters.
fn shown(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").map_or(("", host), |(scheme, rest)| (scheme, rest));
    let rest = match rest.split_once('@') {
        Some((user, machine)) => format!("{}@{machine}", user.split(':').next().unwrap_or_default()),
        None => rest.to_owned(),
    };
    // A query or a fragment, which no engine has, may hold a secret.
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let text = if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") };
    printable(&text).into_owned()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.text {
            "" => f.write_str(&self.origin),
            text => write!(f, "{text} ({})", self.origin),
        }
    }
}
