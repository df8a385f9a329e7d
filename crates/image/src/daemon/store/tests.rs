use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::tests::fake::{Fake, options, respond};
use super::tar_split::tests::record;
use crate::plan::digest_of;
use crate::{Image, ImageError, Request, load};
use layer::cache::{DEFAULT_BOUND, LocalCache, ScanCache};
use model::{Digest, NoProgress};

const CONTENT: &[u8] = b"#!/bin/sh\n";

/// The tar of a layer with one file.
fn layer() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(CONTENT.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, "run.sh", CONTENT).unwrap();
    tar.into_inner().unwrap()
}

/// An engine whose exports fail, and its root folder with an image of one layer.
struct StoreOnDisk {
    root: TempDir,
    id: Digest,
    file: std::path::PathBuf,
    fake: Fake,
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

impl StoreOnDisk {
    fn docker() -> Self {
        use base64::Engine as _;

        let root = tempfile::tempdir().unwrap();
        let tar = layer();
        let diff_id = digest_of(&tar);
        let config = format!(
            r#"{{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers","diff_ids":["{diff_id}"]}},
                "config":{{"Env":["A=b"]}}}}"#
        );
        let id = digest_of(config.as_bytes());
        let images = root.path().join("image/overlay2");
        write(&images.join("imagedb/content/sha256").join(id.hex()), config.as_bytes());
        let entry = images.join("layerdb/sha256").join(diff_id.hex());
        write(&entry.join("cache-id"), b"abc123");
        let segment = |bytes: &[u8]| {
            let text = base64::prelude::BASE64_STANDARD.encode(bytes);
            format!("{{\"type\":2,\"payload\":\"{text}\",\"position\":0}}\n")
        };
        let name = format!("{{\"type\":1,\"name\":\"run.sh\",\"size\":{},\"payload\":\"\"}}\n", CONTENT.len());
        let lines = segment(&tar[..512]) + &name + &segment(&tar[512 + CONTENT.len()..]);
        record(&entry.join("tar-split.json.gz"), &lines);
        let file = root.path().join("overlay2/abc123/diff/run.sh");
        write(&file, CONTENT);
        Self::serving(root, id, file)
    }

    fn containerd() -> Self {
        let root = tempfile::tempdir().unwrap();
        let tar = layer();
        let blobs = root.path().join("containerd/daemon/io.containerd.content.v1.content/blobs/sha256");
        let add = |bytes: &[u8]| {
            let digest = digest_of(bytes);
            write(&blobs.join(digest.hex()), bytes);
            (digest, bytes.len())
        };
        let (layer, size) = add(&tar);
        let config = format!(
            r#"{{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers","diff_ids":["{layer}"]}},
                "config":{{"Env":["A=b"]}}}}"#
        );
        let (config, config_size) = add(config.as_bytes());
        let kind = "application/vnd.oci.image";
        let manifest = format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"{kind}.config.v1+json","digest":"{config}","size":{config_size}}},
                "layers":[{{"mediaType":"{kind}.layer.v1.tar","digest":"{layer}","size":{size}}}]}}"#
        );
        let (id, _) = add(manifest.as_bytes());
        Self::serving(root, id, blobs.join(layer.hex()))
    }

    fn serving(root: TempDir, id: Digest, file: std::path::PathBuf) -> Self {
        let info = format!(r#"{{"DockerRootDir":"{}","Driver":"overlay2"}}"#, root.path().display());
        let image = format!(r#"{{"Id":"{id}"}}"#);
        let fake = Fake::new("1.47", move |target, stream| match target {
            _ if target.ends_with("/info") => respond(stream, "200 OK", info.as_bytes()),
            _ if target.ends_with("/json") => respond(stream, "200 OK", image.as_bytes()),
            _ => respond(stream, "500 Internal Server Error", br#"{"message":"no export"}"#),
        });
        Self { root, id, file, fake }
    }

    fn load(&self, cache: &Arc<ScanCache>) -> Result<Image, ImageError> {
        let mut request = Request::new("docker-daemon:x").unwrap();
        request.options = options(&[("DOCKER_HOST", &self.fake.endpoint())]);
        request.cache = Arc::clone(cache);
        load(&request, &NoProgress, &unpack::pipe::Cancel::default()).map(|mut images| images.remove(0))
    }
}

fn cache(folder: &Path) -> Arc<ScanCache> {
    Arc::new(ScanCache::new(Some(LocalCache::new(folder, DEFAULT_BOUND)), None))
}

#[test]
fn a_readable_store_needs_no_export() {
    for store in [StoreOnDisk::docker(), StoreOnDisk::containerd()] {
        let image = store.load(&Arc::default()).unwrap();
        assert_eq!(image.config.unwrap().environment["A"], "b");
        let [layer] = &*image.summary.layers else { panic!("not one layer") };
        assert!(layer.diff_id_verified && !layer.cached);
        assert_eq!(layer.read, layer.size);
        assert!(image.rootfs.open(&"/run.sh".into()).is_ok());
        assert!(image.summary.notes.is_empty(), "{:?}", image.summary.notes);
    }
}

#[test]
fn content_that_differs_from_its_digest_is_an_error() {
    for store in [StoreOnDisk::docker(), StoreOnDisk::containerd()] {
        let mut content = fs::read(&store.file).unwrap();
        content[3] ^= 1;
        fs::write(&store.file, content).unwrap();
        let error = store.load(&Arc::default()).unwrap_err().to_string();
        assert!(error.contains("is corrupt"), "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_exported() {
    for store in [StoreOnDisk::docker(), StoreOnDisk::containerd()] {
        fs::remove_file(&store.file).unwrap();
        let error = store.load(&Arc::default()).unwrap_err().to_string();
        assert!(error.contains("no export"), "{error}");
    }
    // A configuration that is not the one of the ID.
    let store = StoreOnDisk::docker();
    let config = store.root.path().join("image/overlay2/imagedb/content/sha256").join(store.id.hex());
    fs::write(&config, fs::read_to_string(&config).unwrap().replace("A=b", "A=c")).unwrap();
    let error = store.load(&Arc::default()).unwrap_err().to_string();
    assert!(error.contains("no export"), "{error}");
}

#[test]
fn a_known_image_needs_neither_store_nor_export() {
    for store in [StoreOnDisk::docker(), StoreOnDisk::containerd()] {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        store.load(&cache).unwrap();
        fs::remove_dir_all(store.root.path()).unwrap();
        store.fake.requests();
        let image = store.load(&cache).unwrap();
        assert!(image.summary.layers.iter().all(|layer| layer.cached && layer.read == 0 && layer.diff_id_verified));
        assert!(!store.fake.requests().iter().any(|target| target.ends_with("/get") || target.ends_with("/info")));
    }
}

#[test]
fn an_export_makes_an_image_known() {
    let tar = layer();
    let folder = tempfile::tempdir().unwrap();
    let diff_id = digest_of(&tar);
    let config =
        format!(r#"{{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers","diff_ids":["{diff_id}"]}}}}"#);
    let id = digest_of(config.as_bytes());
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in [
        ("config.json", config.as_bytes()),
        ("layer.tar", &tar),
        ("manifest.json", br#"[{"Config":"config.json","RepoTags":["x:latest"],"Layers":["layer.tar"]}]"#),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, Cursor::new(bytes)).unwrap();
    }
    let archive = archive.into_inner().unwrap();
    let image = format!(r#"{{"Id":"{id}"}}"#);
    let known = id.clone();
    let fake = Fake::new("1.47", move |target, stream| match target {
        _ if target.ends_with("/info") => respond(stream, "200 OK", b"{}"),
        _ if target.ends_with("/json") => respond(stream, "200 OK", image.as_bytes()),
        _ => respond(stream, "200 OK", &archive),
    });
    let store = StoreOnDisk { root: tempfile::tempdir().unwrap(), id: known, file: Path::new("").to_owned(), fake };
    let cache = cache(folder.path());
    let first = store.load(&cache).unwrap();
    assert!(store.fake.requests().iter().any(|target| target.ends_with("/get")));
    let second = store.load(&cache).unwrap();
    assert!(!store.fake.requests().iter().any(|target| target.ends_with("/get")));
    assert_eq!(second.summary.config, Some(id));
    let [one, two] = [&first, &second].map(|image| &image.summary.layers[0]);
    assert_eq!((&one.digest, &one.diff_id, one.size), (&two.digest, &two.diff_id, two.size));
    assert!(two.cached && two.read == 0);
}
