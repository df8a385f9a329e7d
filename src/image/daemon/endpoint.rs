//! A place where an engine may listen, as `DOCKER_HOST` names it.

use std::fmt;
use std::path::PathBuf;

use crate::model::printable;

/// One place where an engine may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// As one would write it in `DOCKER_HOST`, without secrets; empty where nothing tells it.
    pub text: String,
    /// Who says so: a variable, a context, or a default.
    pub origin: String,
    /// What it means.
    pub address: Address,
}

/// What an endpoint means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The path of a socket.
    Unix(String),
    /// `HOST:PORT`, in the clear.
    Http(String),
    /// `HOST:PORT` behind TLS.
    Tls {
        /// `HOST:PORT`.
        host: String,
        /// The folder with `ca.pem`, and with `cert.pem` and `key.pem` where the engine wants to know its clients.
        certificates: PathBuf,
    },
    /// Nothing that can be reached from here, and why.
    Unusable(String),
}

/// What is known about TLS before the address is read.
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
        // Docker reads a host without a scheme as tcp.
        let (scheme, rest) = host.split_once("://").unwrap_or(("tcp", host));
        match scheme {
            "unix" if rest.starts_with('/') => Self::Unix(rest.to_owned()),
            "unix" => Self::Unusable("unix:// needs the absolute path of a socket".to_owned()),
            "tcp" | "http" | "https" => Self::network(scheme, rest, tls),
            "ssh" => {
                let target = shown(rest.trim_end_matches('/'));
                Self::Unusable(format!(
                    "ssh is not supported: forward the socket (ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock \
                     ssh://{target}) and set DOCKER_HOST=unix:///tmp/docker.sock"
                ))
            }
            other => Self::Unusable(format!(
                "{}:// is not supported: unix://, tcp://, http:// and https:// are",
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
            // The ports that Docker's documentation gives to its API.
            (false, "tcp", true) => format!("{host}:2376"),
            (false, "tcp", false) => format!("{host}:2375"),
            _ => host.to_owned(),
        };
        if secure { Self::Tls { host, certificates: tls.certificates.clone() } } else { Self::Http(host) }
    }
}

/// An address for people: without a password, and harmless to a terminal.
fn shown(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").map_or(("", host), |(scheme, rest)| (scheme, rest));
    let rest = match rest.split_once('@') {
        Some((user, machine)) => format!("{}@{machine}", user.split(':').next().unwrap_or_default()),
        None => rest.to_owned(),
    };
    let text = if scheme.is_empty() { rest } else { format!("{scheme}://{rest}") };
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
