//! Requests for an image whose layers are in the cache.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use crate::{Image, PlatformChoice, Request, load};
use layer::cache::{DEFAULT_BOUND, LocalCache, ScanCache};
use model::NoProgress;
use unpack::pipe::Cancel;

use super::*;

/// A registry with a token service that holds the small test image `good`; returns the server, and the digests of
/// manifest and configuration.
fn registry() -> (Server, [String; 2]) {
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images/good.oci.tar");
    let mut files = BTreeMap::new();
    for member in tar::Archive::new(File::open(world).unwrap()).entries().unwrap() {
        let mut member = member.unwrap();
        let name = member.path().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        std::io::copy(&mut member, &mut bytes).unwrap();
        files.insert(name, bytes);
    }
    let digest = |document: &[u8], at: &str| {
        let document: serde_json::Value = serde_json::from_slice(document).unwrap();
        document.pointer(at).unwrap().as_str().unwrap().to_owned()
    };
    let manifest = digest(&files["index.json"], "/manifests/0/digest");
    let config = digest(&files[manifest.strip_prefix("sha256:").unwrap()], "/config/digest");
    let top = manifest.clone();
    let server = Server::start(move |ask| {
        if ask.path == "/token" {
            return Reply::new(200, br#"{"token": "t"}"#);
        }
        if ask.header("authorization") != Some("Bearer t") {
            let challenge = format!(r#"Bearer realm="http://{}/token",service="s""#, ask.host);
            return Reply::new(401, b"").header("WWW-Authenticate", &challenge);
        }
        let name = ask.path.rsplit('/').next().unwrap().trim_start_matches("sha256:");
        let name = if name == "1" { top.trim_start_matches("sha256:") } else { name };
        files
            .get(name)
            .map_or_else(|| Reply::new(404, b""), |bytes| Reply::new(200, bytes).header("Content-Type", TYPE))
    });
    (server, [manifest, config])
}

fn read(server: &Server, cache: &Arc<ScanCache>) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let authfile = folder.path().join("auth.json");
    std::fs::write(&authfile, "{}").unwrap();
    let request = Request {
        start: model::StartChoice::default(),
        reference: format!("docker://{}/a/b:1", server.host()).parse().unwrap(),
        text: "image".to_owned(),
        choice: PlatformChoice::Host,
        jobs: NonZeroUsize::MIN,
        limits: Limits::default(),
        options: AccessOptions { authfile: Some(authfile), tls_verify: false, ..options() },
        cache: Arc::clone(cache),
        environment: BTreeMap::new(),
        contacts: RegistryContacts::default(),
    };
    load(&request, &NoProgress, &Cancel::default()).unwrap().remove(0)
}

#[test]
fn cached_layers_are_not_requested_again() {
    let (server, [_, config]) = registry();
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(ScanCache::new(Some(LocalCache::new(folder.path(), DEFAULT_BOUND)), None));
    let blobs =
        |server: &Server| server.paths().into_iter().filter(|path| path.contains("/blobs/")).collect::<Vec<_>>();
    let first = read(&server, &cache);
    assert!(first.summary.layers.iter().all(|layer| !layer.cached));
    let before = blobs(&server).len();
    assert!(before > first.summary.layers.len(), "{before}");

    let asked = server.paths().len();
    let second = read(&server, &cache);
    assert!(second.summary.layers.iter().all(|layer| layer.cached));
    let paths = server.paths().split_off(asked);
    let contents: Vec<_> = paths.iter().filter(|path| path.contains("/a/b/")).collect();
    // Manifest and configuration; the first attempt of each may lack a token.
    let configuration = format!("/v2/a/b/blobs/{config}");
    assert!(contents.iter().all(|path| **path == "/v2/a/b/manifests/1" || **path == configuration), "{paths:?}");
    assert!(contents.iter().any(|path| **path == configuration));
    assert!(paths.len() <= 6, "{paths:?}");
}
