//! Tests of the registry source against a misbehaving server in this process.

mod access;
mod auth;
mod blobs;
mod cached;
mod contacts;
mod places;
mod server;
mod tls;

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use self::server::{Reply, Server};
use super::*;
use crate::source::SourceErrorKind;
use crate::verify::Verified;
use model::Environment;
use model::Limits;

const MANIFEST: &str = r#"{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}"#;
const TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

fn options() -> AccessOptions {
    AccessOptions {
        cert_dir: None,
        authfile: None,
        tls_verify: true,
        limits: Limits::default(),
        environment: Environment::default(),
    }
}

/// Opens `image` at `server`, optionally with an entry of a credentials file.
fn open_at(server: &Server, image: &str, login: Option<&str>) -> Result<Registry, SourceError> {
    open_in(server, image, login, Patience { base: Duration::from_millis(1), ..Patience::default() })
}

fn open_in(server: &Server, image: &str, login: Option<&str>, patience: Patience) -> Result<Registry, SourceError> {
    let folder = tempfile::tempdir().unwrap();
    let authfile = folder.path().join("auth.json");
    let host = server.host();
    let auths = login.map(|entry| format!(r#"{{"auths": {{"{host}": {entry}}}}}"#));
    std::fs::write(&authfile, auths.unwrap_or_else(|| "{}".to_owned())).unwrap();
    let options = AccessOptions { authfile: Some(authfile), ..options() };
    open_patiently(&format!("{host}/{image}").parse().unwrap(), &options, &RegistryContacts::default(), patience)
}

fn anonymous(server: &Server) -> Registry {
    open_at(server, "a/b:1", None).unwrap()
}

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { digest: digest_as(None, bytes), size: bytes.len() as u64 }
}

fn data() -> Vec<u8> {
    (0..200_000_u32).map(|i| (i % 251) as u8).collect()
}

/// Reads and verifies a whole blob, as a run does.
fn fetch(registry: &Registry, blob: &BlobRef) -> Result<Vec<u8>, String> {
    let reader = registry.open(blob).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let copied = std::io::copy(&mut Verified::new(reader, blob.clone()).take(1 << 20), &mut bytes);
    copied.map(|_| bytes).map_err(|error| error.to_string())
}

#[test]
fn a_manifest_comes_with_its_type_and_digest() {
    let server = Server::start(|ask| match ask.path.as_str() {
        "/v2/" => Reply::new(200, b"{}"),
        "/v2/a/b/manifests/1" => Reply::new(200, MANIFEST.as_bytes())
            .header("Content-Type", &format!("{TYPE}; charset=utf-8"))
            .header("Docker-Content-Digest", digest_as(None, MANIFEST.as_bytes()).as_str()),
        _ => Reply::new(404, b""),
    });
    let top = anonymous(&server).top().unwrap();
    assert_eq!(top.media_type.as_deref(), Some(TYPE));
    assert_eq!(top.digest, digest_as(None, MANIFEST.as_bytes()));
    let ask = server.asked("/v2/a/b/manifests/1").remove(0);
    assert!(ask.header("accept").unwrap().contains("manifest.list.v2"));
    assert_eq!(ask.header("accept-encoding"), Some("identity"));
    assert_eq!(ask.header("authorization"), None);
}

#[test]
fn digests_of_manifests_are_verified() {
    let server = Server::start(|ask| {
        let reply = Reply::new(200, MANIFEST.as_bytes());
        let wrong = format!("sha512:{}", "0".repeat(128));
        if ask.path.ends_with("/2") { reply.header("Docker-Content-Digest", &wrong) } else { reply }
    });
    let error = open_at(&server, "a/b:2", None).unwrap().top().unwrap_err();
    assert!(error.kind() == SourceErrorKind::Invalid && error.what.contains("its registry reports"), "{error}");
    let wanted = format!("a/b@sha256:{}", "0".repeat(64));
    let error = open_at(&server, &wanted, None).unwrap().top().unwrap_err();
    assert!(error.kind() == SourceErrorKind::Invalid && error.what.contains("expected the digest"), "{error}");
    let digest = digest_as(None, MANIFEST.as_bytes());
    let top = open_at(&server, &format!("a/b:7@{digest}"), None).unwrap().top().unwrap();
    assert_eq!(top.digest, digest);
    assert_eq!(server.asked(&format!("/v2/a/b/manifests/{digest}")).len(), 1);
}

#[test]
fn schema_1_is_refused_by_name() {
    let signed = "application/vnd.docker.distribution.manifest.v1+prettyjws";
    let server = Server::start(move |ask| match ask.path.rsplit('/').next() {
        Some("1") => Reply::new(200, MANIFEST.as_bytes()).header("Content-Type", signed),
        _ => Reply::new(200, br#"{"schemaVersion": 1, "fsLayers": []}"#).header("Content-Type", "application/json"),
    });
    for image in ["a/b:1", "a/b:2"] {
        let error = open_at(&server, image, None).unwrap().top().unwrap_err().to_string();
        assert!(error.contains("schema 1") && error.contains("help: push it again"), "{error}");
    }
}

#[test]
fn document_sizes_are_limited() {
    let server = Server::start(|_| Reply::new(200, &vec![b' '; (4 << 20) + 1]));
    let error = anonymous(&server).top().unwrap_err().to_string();
    assert!(error.contains("more than 4194304 bytes"), "{error}");
}

#[test]
fn a_missing_image_is_quoted_and_safe_to_print() {
    let server = Server::start(|ask| match ask.path.as_str() {
        "/v2/" => Reply::new(200, b""),
        _ => Reply::new(
            404,
            br#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no \u001b[31m such", "detail": 1}]}"#,
        ),
    });
    let registry = anonymous(&server);
    let error = registry.top().unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("404 Not Found (MANIFEST_UNKNOWN: no \u{fffd}[31m such)"), "{error}");
    let error = Blob::open(&registry, &blob(b"x")).unwrap_err();
    assert!(error.kind() == SourceErrorKind::Missing && error.what.contains("is incomplete"), "{error}");
}

#[test]
fn a_busy_server_is_retried() {
    let busy = AtomicUsize::new(0);
    let server = Server::start(move |ask| match (ask.path.as_str(), busy.fetch_add(1, Ordering::SeqCst)) {
        ("/v2/", _) => Reply::new(200, b""),
        (_, 1) => Reply::new(429, b"").header("Retry-After", "0"),
        (_, 2) => Reply::new(503, b""),
        (_, 3) => Reply::new(200, MANIFEST.as_bytes()).cut(10),
        _ => Reply::new(200, MANIFEST.as_bytes()),
    });
    assert_eq!(anonymous(&server).top().unwrap().bytes, MANIFEST.as_bytes());
    assert_eq!(server.asked("/v2/a/b/manifests/1").len(), 4);
}

#[test]
fn a_failing_server_is_given_up() {
    let server = Server::start(|_| Reply::new(500, b"<html>"));
    let error = anonymous(&server).top().unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Unreachable, "{error}");
    assert_eq!(server.asked("/v2/a/b/manifests/1").len(), 6);
    assert!(error.to_string().ends_with("answered 500 Internal Server Error"), "{error}");
}

#[test]
fn a_refused_connection_is_reported() {
    let server = Server::start(|_| Reply::new(200, b""));
    let host = server.host();
    drop(server);
    let error = open_patiently(
        &format!("{host}/a/b").parse().unwrap(),
        &options(),
        &RegistryContacts::default(),
        Patience::default(),
    )
    .unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Unreachable, "{error}");
    let error = error.to_string();
    assert!(error.starts_with(&format!("no registry answers at {host}: connection refused\n  help: ")), "{error}");
}
