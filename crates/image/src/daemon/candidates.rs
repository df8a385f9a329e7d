//! Endpoints where an engine may listen, chosen as the Docker CLI does (docker(1), "Environment variables", and
//! contexts), followed by Podman's (podman-system-service(1)).

use std::path::{Path, PathBuf};

use model::Environment;

use super::context::context;
use super::endpoint::{Endpoint, Tls};

/// Every endpoint to try, in order. An endpoint that the user names is the only one: another engine may hold a
/// different image of the same name.
pub fn endpoints(environment: &Environment) -> Vec<Endpoint> {
    let config = environment
        .get("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".docker")));
    if let Some(host) = environment.get("DOCKER_HOST") {
        return vec![Endpoint::new(host, "DOCKER_HOST", &tls(environment, config.as_deref()))];
    }
    match context(environment, config.as_deref()) {
        Some(endpoint) => vec![endpoint],
        None => defaults(environment, &tls(environment, config.as_deref())),
    }
}

/// The default sockets: Docker's system-wide, rootless and desktop ones, then Podman's.
fn defaults(environment: &Environment, tls: &Tls) -> Vec<Endpoint> {
    let below = |variable, rest| environment.get(variable).map(|folder| format!("unix://{folder}/{rest}"));
    let places = [
        (Some("unix:///var/run/docker.sock".to_owned()), "Docker's default"),
        (below("XDG_RUNTIME_DIR", "docker.sock"), "rootless Docker's default"),
        (below("HOME", ".docker/run/docker.sock"), "Docker Desktop's default"),
        (environment.get("CONTAINER_HOST").map(ToOwned::to_owned), "CONTAINER_HOST"),
        (Some("unix:///run/podman/podman.sock".to_owned()), "Podman's default"),
        (below("XDG_RUNTIME_DIR", "podman/podman.sock"), "rootless Podman's default"),
    ];
    let mut endpoints: Vec<Endpoint> = Vec::with_capacity(places.len());
    for (host, origin) in places {
        let Some(host) = host else { continue };
        let endpoint = Endpoint::new(&host, origin, tls);
        if endpoints.iter().all(|other| other.address != endpoint.address) {
            endpoints.push(endpoint);
        }
    }
    endpoints
}

fn tls(environment: &Environment, config: Option<&Path>) -> Tls {
    Tls {
        // DOCKER_TLS alone means TLS without verification; here it is always verified.
        wanted: environment.get("DOCKER_TLS_VERIFY").or_else(|| environment.get("DOCKER_TLS")).is_some(),
        certificates: environment
            .get("DOCKER_CERT_PATH")
            .map(PathBuf::from)
            .or_else(|| config.map(Path::to_owned))
            .unwrap_or_default(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::endpoint::Address;
    use super::*;

    /// Every endpoint for these variables, as text: the address, or why it is unusable.
    pub(in super::super) fn chosen(variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let address = |endpoint: &Endpoint| match &endpoint.address {
            Address::Unix(path) => format!("unix {path}"),
            Address::Http(host) => format!("http {host}"),
            Address::Tls { host, certificates } => format!("tls {host} {}", certificates.display()),
            Address::Ssh(target) => format!("ssh {target}"),
            Address::Unusable(why) => format!("{endpoint}: {why}"),
        };
        endpoints(&variables.collect()).iter().map(address).collect()
    }

    #[test]
    fn default_endpoints() {
        assert_eq!(chosen(&[]), ["unix /var/run/docker.sock", "unix /run/podman/podman.sock"]);
        assert_eq!(
            chosen(&[("HOME", "/nowhere"), ("XDG_RUNTIME_DIR", "/run/user/7"), ("CONTAINER_HOST", "tcp://pod:8080")]),
            [
                "unix /var/run/docker.sock",
                "unix /run/user/7/docker.sock",
                "unix /nowhere/.docker/run/docker.sock",
                "http pod:8080",
                "unix /run/podman/podman.sock",
                "unix /run/user/7/podman/podman.sock",
            ]
        );
        let podman = [("CONTAINER_HOST", "unix:///run/podman/podman.sock"), ("DOCKER_HOST", "")];
        assert_eq!(chosen(&podman), ["unix /var/run/docker.sock", "unix /run/podman/podman.sock"]);
    }

    #[test]
    fn docker_host_excludes_other_endpoints() {
        for (host, address) in [
            ("unix:///x.sock", "unix /x.sock"),
            (" tcp://box:1/ ", "http box:1"),
            ("tcp://box", "http box:2375"),
            ("[::1]:4243", "http [::1]:4243"),
            ("tcp://[::1]", "http [::1]:2375"),
            ("http://box", "http box"),
            ("https://box:1", "tls box:1 /nowhere/.docker"),
            ("/x.sock", "/x.sock (DOCKER_HOST): write unix:///x.sock"),
            ("unix://x", "unix://x (DOCKER_HOST): unix:// needs the absolute path of a socket"),
            ("ssh://me@box:2222", "ssh -p 2222 me@box"),
            ("ssh://me:pw@box:22", "ssh://me@box:22 (DOCKER_HOST): ssh:// must not contain a password: use a key"),
            ("tcp://me:pw@box:1", "tcp://me@box:1 (DOCKER_HOST): tcp:// needs HOST:PORT and nothing else"),
            (
                "npipe:////./x",
                "npipe:////./x (DOCKER_HOST): npipe:// is not supported; use unix://, tcp://, http://, https:// or ssh://",
            ),
        ] {
            assert_eq!(chosen(&[("DOCKER_HOST", host), ("DOCKER_CONTEXT", "x"), ("HOME", "/nowhere")]), [address]);
        }
    }

    #[test]
    fn tls_by_variables() {
        let host = ("DOCKER_HOST", "tcp://box");
        let tls = ("DOCKER_TLS_VERIFY", "1");
        assert_eq!(chosen(&[host, tls, ("DOCKER_CERT_PATH", "/certs")]), ["tls box:2376 /certs"]);
        assert_eq!(chosen(&[host, tls, ("DOCKER_CONFIG", "/config")]), ["tls box:2376 /config"]);
        assert_eq!(chosen(&[host, ("DOCKER_CERT_PATH", "/certs")]), ["http box:2375"]);
    }
}
