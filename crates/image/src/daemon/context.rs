//! Docker contexts: named endpoints, selected by `DOCKER_CONTEXT` or by `currentContext` in Docker's configuration
//! (docker-context(1)). The folder layout is that of the Docker CLI.

use std::io;
use std::path::Path;

use serde_json::Value;

use model::{Environment, Hasher, bytes_within, cause, open_configured, printable, size, without_content};

use super::endpoint::{Endpoint, Tls};

/// Maximum size of Docker's own configuration files in bytes; real ones have a few hundred.
const CONFIG_BYTES: u64 = 1 << 20;

/// The endpoint of the selected context, if any. The context `default` means no selection.
pub(super) fn context(environment: &Environment, config: Option<&Path>) -> Option<Endpoint> {
    let (name, chooser) = match (environment.get("DOCKER_CONTEXT"), config) {
        (Some(name), _) => (name.to_owned(), "DOCKER_CONTEXT".to_owned()),
        (None, None) => return None,
        (None, Some(folder)) => {
            let file = folder.join("config.json");
            match read_json(&file) {
                Ok(config) => {
                    let name = config?.get("currentContext").and_then(Value::as_str).unwrap_or_default().to_owned();
                    (name, printable(&file.to_string_lossy()).into_owned())
                }
                // The selected context is unknown, so no endpoint can be tried.
                Err(why) => return Some(Endpoint::unusable("the context of Docker's configuration".to_owned(), why)),
            }
        }
    };
    if name.is_empty() || name == "default" {
        return None;
    }
    let origin = format!("context {}, chosen by {chooser}", printable(&name));
    Some(match config {
        None => Endpoint::unusable(origin, "cannot locate contexts: neither DOCKER_CONFIG nor HOME is set".to_owned()),
        Some(folder) => context_endpoint(&name, origin, folder),
    })
}

fn context_endpoint(name: &str, origin: String, config: &Path) -> Endpoint {
    // Docker stores a context under the SHA-256 of its name.
    let mut hasher = Hasher::sha256();
    hasher.update(name.as_bytes());
    let digest = hasher.finish();
    let contexts = config.join("contexts");
    let meta = match read_json(&contexts.join("meta").join(digest.hex()).join("meta.json")) {
        Ok(meta) => meta,
        Err(why) => return Endpoint::unusable(origin, why),
    };
    let Some(meta) = meta else {
        let why = "no such context; docker context ls lists them".to_owned();
        return Endpoint::unusable(origin, why);
    };
    let docker = |field: &str| meta.pointer("/Endpoints/docker")?.get(field);
    let Some(host) = docker("Host").and_then(Value::as_str).filter(|host| !host.is_empty()) else {
        return Endpoint::unusable(origin, "the context has no endpoint for Docker".to_owned());
    };
    if docker("SkipTLSVerify").is_some_and(|skips| *skips == true) {
        let why = "the context skips TLS verification, which is not supported: give it the engine's ca.pem";
        return Endpoint::unusable(origin, why.to_owned());
    }
    let certificates = contexts.join("tls").join(digest.hex()).join("docker");
    Endpoint::new(host, &origin, &Tls { wanted: certificates.is_dir(), certificates })
}

/// Parses a JSON file; `None` if it does not exist.
fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let shown = path.to_string_lossy();
    let shown = printable(&shown);
    let file = match open_configured(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot open {shown}: {}", cause(&error))),
    };
    let bytes = bytes_within(file, CONFIG_BYTES).map_err(|error| format!("cannot read {shown}: {}", cause(&error)))?;
    let bytes = bytes.ok_or_else(|| format!("cannot read {shown}: it has more than {}", size(CONFIG_BYTES)))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| format!("cannot read {shown}: {}", without_content(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::candidates::tests::chosen;
    use super::*;

    #[test]
    fn contexts() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().to_str().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let sha256 = |name: &str| {
            let mut hasher = Hasher::sha256();
            hasher.update(name.as_bytes());
            hasher.finish().hex().to_owned()
        };
        // SHA-256 of `lab`, as sha256sum(1) prints it.
        assert!(sha256("lab").starts_with("a51146d38077ff992eba84cf1d5e9b24"), "{}", sha256("lab"));
        for (name, docker) in [
            ("lab", r#"{"Host":"unix:///lab.sock","SkipTLSVerify":false}"#),
            ("far", r#"{"Host":"tcp://far:2376"}"#),
            ("lax", r#"{"Host":"tcp://lax:2376","SkipTLSVerify":true}"#),
            ("remote", r#"{"Host":"ssh://me@box"}"#),
            ("void", "{}"),
        ] {
            let meta = format!(r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{{"docker":{docker}}}}}"#);
            write(&format!("contexts/meta/{}/meta.json", sha256(name)), &meta);
        }
        let far = format!("contexts/tls/{}/docker", sha256("far"));
        write(&format!("{far}/ca.pem"), "");
        let by_name = |name| chosen(&[("DOCKER_CONFIG", config), ("DOCKER_CONTEXT", name)]).join(", ");
        let defaults = "unix /var/run/docker.sock, unix /run/podman/podman.sock";
        assert_eq!(by_name("lab"), "unix /lab.sock");
        assert_eq!(by_name("far"), format!("tls far:2376 {config}/{far}"));
        assert_eq!(by_name("default"), defaults);
        assert_eq!(by_name("remote"), "ssh me@box");
        assert!(by_name("lax").contains("skips TLS verification"));
        assert!(by_name("void").contains("has no endpoint for Docker"));
        assert_eq!(
            by_name("gone"),
            "context gone, chosen by DOCKER_CONTEXT: no such context; docker context ls lists them"
        );

        let current = || chosen(&[("DOCKER_CONFIG", config)]).join(", ");
        assert_eq!(current(), defaults);
        write("config.json", r#"{"auths":{}}"#);
        assert_eq!(current(), defaults);
        write("config.json", r#"{"auths":{},"currentContext":"lab"}"#);
        assert_eq!(current(), "unix /lab.sock");
        assert_eq!(by_name("default"), defaults);
        write("config.json", "{");
        assert!(current().starts_with("the context of Docker's configuration: cannot read "), "{}", current());
    }
}
