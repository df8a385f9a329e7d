//! Docker's `daemon.json`: mirrors of Docker Hub, and registries without verified TLS (dockerd(8)).

use model::{open_configured, without_content};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use oci_spec::distribution::Reference as Name;
use serde::Deserialize;

use super::PullSource;
use crate::registry::host::host_name;
use crate::source::{SourceError, read_bounded};

/// Maximum size of the file in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The name of Docker Hub. Docker applies its mirrors to no other registry.
const HUB: &str = "docker.io";

/// The part of `daemon.json` that concerns pulls.
#[derive(Debug, Default)]
pub(super) struct DockerConfig {
    /// The file.
    place: String,
    /// Hosts of mirrors of Docker Hub, each with whether its URL is plain HTTP.
    mirrors: Vec<(String, bool)>,
    /// Hosts and networks whose registries may be insecure.
    insecure_hosts: Vec<String>,
    insecure_networks: Vec<IpNet>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawDaemon {
    #[serde(default)]
    registry_mirrors: Vec<String>,
    #[serde(default)]
    insecure_registries: Vec<String>,
}

impl DockerConfig {
    /// Reads the file; nothing if it does not exist, or if only root may read it.
    pub(super) fn read(path: &Path) -> Result<Self, SourceError> {
        let what = format!("reading {}", path.display());
        let file = match open_configured(path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                return Ok(Self::default());
            }
            file => file.map_err(|error| SourceError::io(&what, error))?,
        };
        Self::parse(path, &read_bounded(file, LARGEST_FILE, &what)?)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, SourceError> {
        let wrong = |what: String| SourceError::invalid(format!("{}{what}", path.display()));
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let raw: RawDaemon = serde_json::from_slice(bytes).map_err(|error| {
            wrong(format!(":{}:{}: {}", error.line(), error.column(), without_content(&error.to_string())))
        })?;
        let mut mirrors = Vec::new();
        for text in &raw.registry_mirrors {
            let (is_plain, rest) = match text.split_once("://") {
                Some(("http", rest)) => (true, rest),
                Some(("https", rest)) => (false, rest),
                _ => return Err(wrong(format!(": registry-mirrors: '{text}' is not the URL of a mirror"))),
            };
            let host = rest.trim_end_matches('/');
            if host.is_empty() || host.contains(['/', '?', '#', '@']) {
                return Err(wrong(format!(": registry-mirrors: '{text}' must be a host without a path")));
            }
            mirrors.push((host.to_owned(), is_plain));
        }
        let mut config = Self { place: path.display().to_string(), mirrors, ..Self::default() };
        for text in raw.insecure_registries {
            if let Ok(network) = text.parse() {
                config.insecure_networks.push(network);
            } else {
                let host = text.trim_start_matches("http://").trim_start_matches("https://");
                config.insecure_hosts.push(host.to_owned());
            }
        }
        Ok(config)
    }

    /// The places of an image for Docker: for one of Docker Hub its mirrors, then the registry itself.
    pub(super) fn sources(&self, name: &Name) -> Result<Vec<PullSource>, SourceError> {
        let mut sources = Vec::new();
        for (host, is_plain) in self.mirrors.iter().filter(|_| name.registry() == HUB) {
            let rest = name.to_string().split_off(HUB.len());
            let text = format!("{host}{rest}");
            let wrong =
                |why: &str| SourceError::invalid(format!("{}: '{text}' is not an image name: {why}", self.place));
            let physical: Name = text.parse().map_err(|error| wrong(&format!("{error}")))?;
            if physical.registry() != host {
                return Err(wrong("the mirror's host needs a dot or a port"));
            }
            let insecure = *is_plain || self.is_insecure(host);
            sources.push(PullSource { name: physical, insecure, origin: Some(self.place.clone()), blocked: None });
        }
        let insecure = self.is_insecure(name.registry());
        sources.push(PullSource { name: name.clone(), insecure, origin: None, blocked: None });
        Ok(sources)
    }

    fn is_insecure(&self, host: &str) -> bool {
        let is_within = |address: IpAddr| self.insecure_networks.iter().any(|network| network.contains(&address));
        self.insecure_hosts.iter().any(|name| name == host) || host_name(host).parse().is_ok_and(is_within)
    }
}
