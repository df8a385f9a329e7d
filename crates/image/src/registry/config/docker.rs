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
    mirrors: Vec<HubMirror>,
    insecure: Vec<InsecureRegistry>,
}

/// A mirror of Docker Hub.
#[derive(Debug)]
struct HubMirror {
    /// `HOST[:PORT]`.
    host: String,
    is_plain: bool,
    /// The file that names it.
    place: String,
}

/// An entry of `insecure-registries`.
#[derive(Debug)]
enum InsecureRegistry {
    /// `HOST[:PORT]`.
    Host(String),
    /// `ADDRESS/BITS`.
    Network(IpNet),
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
            mirrors.push(HubMirror { host: host.to_owned(), is_plain, place: path.display().to_string() });
        }
        Ok(Self {
            mirrors,
            insecure: raw.insecure_registries.iter().map(|text| InsecureRegistry::parse(text)).collect(),
        })
    }

    /// The places of an image for Docker: for one of Docker Hub its mirrors, then the registry itself.
    pub(super) fn sources(&self, name: &Name) -> Result<Vec<PullSource>, SourceError> {
        let mut sources = Vec::new();
        for mirror in self.mirrors.iter().filter(|_| name.registry() == HUB) {
            let rest = name.to_string().split_off(HUB.len());
            let text = format!("{}{rest}", mirror.host);
            let wrong =
                |why: &str| SourceError::invalid(format!("{}: '{text}' is not an image name: {why}", mirror.place));
            let physical: Name = text.parse().map_err(|error| wrong(&format!("{error}")))?;
            if physical.registry() != mirror.host {
                return Err(wrong("the mirror's host needs a dot or a port"));
            }
            let insecure = mirror.is_plain || self.is_insecure(&mirror.host);
            sources.push(PullSource { name: physical, insecure, origin: Some(mirror.place.clone()), blocked: None });
        }
        let insecure = self.is_insecure(name.registry());
        sources.push(PullSource { name: name.clone(), insecure, origin: None, blocked: None });
        Ok(sources)
    }

    fn is_insecure(&self, host: &str) -> bool {
        self.insecure.iter().any(|entry| entry.includes(host))
    }
}

impl InsecureRegistry {
    fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(network) => Self::Network(network),
            Err(_) => Self::Host(text.trim_start_matches("http://").trim_start_matches("https://").to_owned()),
        }
    }

    /// Returns true for a registry in the entry. Docker also resolves names and compares their addresses; this does not.
    fn includes(&self, host: &str) -> bool {
        match self {
            Self::Host(name) => name == host,
            Self::Network(network) => host_name(host).parse().is_ok_and(|address: IpAddr| network.contains(&address)),
        }
    }
}
