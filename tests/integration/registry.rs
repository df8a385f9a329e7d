//! A registry that serves the images of a layout.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The path of a blob.
pub(crate) fn blob(layout: &Path, digest: &str) -> PathBuf {
    layout.join("blobs").join(digest.replace(':', "/"))
}

pub(crate) fn write(layout: &Path, bytes: &[u8], descriptor: &mut Value) {
    let digest = Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    fs::write(blob(layout, &digest), bytes).unwrap();
    descriptor["digest"] = digest.into();
    descriptor["size"] = bytes.len().into();
}

/// Serves the images of a layout as the tags 1, 2 and so on, and counts the bytes of blobs sent. The reference is of the first.
pub(crate) fn registry(layout: PathBuf) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("docker://{}/a/b:1", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    let manifests = index["manifests"].as_array().unwrap().iter();
    let tagged: BTreeMap<_, _> = (1..)
        .map(|tag: usize| tag.to_string())
        .zip(manifests.map(|descriptor| descriptor["digest"].as_str().unwrap().to_owned()))
        .collect();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let layout = layout.clone();
            let tagged = tagged.clone();
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                let mut first = String::new();
                stream.read_line(&mut first).unwrap();
                let mut line = first.clone();
                while !line.trim().is_empty() {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                }
                if first.is_empty() {
                    return;
                }
                let path = first.split(' ').nth(1).unwrap().split('?').next().unwrap();
                let name = path.rsplit('/').next().unwrap();
                let body = match path {
                    "/v2/" => Some(Vec::new()),
                    "/v2/a/b/tags/list" => {
                        Some(serde_json::json!({"tags": tagged.keys().collect::<Vec<_>>()}).to_string().into_bytes())
                    }
                    _ => fs::read(blob(&layout, tagged.get(name).map_or(name, |digest| digest))).ok(),
                };
                let (status, body) = body.map_or((404, Vec::new()), |body| (200, body));
                if path.contains("/blobs/") {
                    count.fetch_add(body.len() as u64, Ordering::SeqCst);
                }
                let length = body.len();
                let kind = "application/vnd.oci.image.manifest.v1+json";
                let head = format!(
                    "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
                );
                // The client may have hung up.
                let _ = stream.get_mut().write_all(head.as_bytes()).and_then(|()| stream.get_mut().write_all(&body));
            });
        }
    });
    (image, sent)
}

/// A file that a registry serves as the only layer of an artifact.
pub(crate) struct Artifact {
    _folder: tempfile::TempDir,
    /// `HOST/NAME`.
    pub(crate) name: String,
    pub(crate) digest: String,
    /// The file in the registry.
    pub(crate) file: PathBuf,
}

impl Artifact {
    pub(crate) fn serve(content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = folder.path();
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        let mut file = serde_json::json!({"mediaType": "application/octet-stream"});
        write(layout, content, &mut file);
        let mut config = serde_json::json!({"mediaType": "application/vnd.oci.empty.v1+json"});
        write(layout, b"{}", &mut config);
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.example.file", "config": config, "layers": [file],
        });
        let mut descriptor = serde_json::json!({"mediaType": "application/vnd.oci.image.manifest.v1+json"});
        write(layout, manifest.to_string().as_bytes(), &mut descriptor);
        fs::write(layout.join("index.json"), serde_json::json!({"manifests": [descriptor]}).to_string()).unwrap();
        let (image, _) = registry(layout.to_owned());
        let name = image.trim_start_matches("docker://").trim_end_matches(":1").to_owned();
        let file = blob(layout, file["digest"].as_str().unwrap());
        Self { name, digest: descriptor["digest"].as_str().unwrap().to_owned(), file, _folder: folder }
    }

    /// The reference by digest.
    pub(crate) fn pinned(&self) -> String {
        format!("oci://{}@{}", self.name, self.digest)
    }
}
