//! A registry that serves the image of a layout.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::seekable::digest;

/// The path of a blob.
pub(crate) fn blob(layout: &Path, digest: &str) -> PathBuf {
    layout.join("blobs").join(digest.replace(':', "/"))
}

pub(crate) fn read(layout: &Path, digest: &Value) -> Vec<u8> {
    fs::read(blob(layout, digest.as_str().unwrap())).unwrap()
}

pub(crate) fn write(layout: &Path, bytes: &[u8], descriptor: &mut Value) {
    let digest = digest(bytes);
    fs::write(blob(layout, &digest), bytes).unwrap();
    descriptor["digest"] = digest.into();
    descriptor["size"] = bytes.len().into();
}

/// Serves the first image of a layout, with or without ranges of blobs, and counts the bytes of blobs sent. The
/// layout's files `referrers` and `tag` list the referrers of a manifest.
pub(crate) fn registry(layout: PathBuf, ranges: bool) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("docker://{}/a/b:1", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    let top = index["manifests"][0]["digest"].as_str().unwrap().to_owned();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (layout, top, count) = (layout.clone(), top.clone(), Arc::clone(&count));
            thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_ascii_lowercase());
                }
                let Some(first) = lines.first() else { return };
                let path = first.split(' ').nth(1).unwrap().split('?').next().unwrap();
                let name = path.rsplit('/').next().unwrap();
                let file = if path == "/v2/a/b/manifests/1" {
                    blob(&layout, &top)
                } else if path.starts_with("/v2/a/b/referrers/") {
                    assert!(name == top && first.contains("?artifacttype=application%2fvnd%2e"), "{first}");
                    layout.join("referrers")
                } else if path == format!("/v2/a/b/manifests/{}", top.replace(':', "-")) {
                    layout.join("tag")
                } else {
                    blob(&layout, name)
                };
                let body = if path == "/v2/" { Some(Vec::new()) } else { fs::read(file).ok() };
                let range = lines.iter().find_map(|line| line.strip_prefix("range: bytes=")).filter(|_| ranges);
                let (status, head, body) = match (body, range.and_then(|range| range.split_once('-'))) {
                    (None, _) => (404, String::new(), Vec::new()),
                    (Some(body), Some((first, last))) => {
                        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                        let told = format!("Content-Range: bytes {first}-{last}/{}\r\n", body.len());
                        (206, told, body[first..=last].to_vec())
                    }
                    (Some(body), None) => (200, String::new(), body),
                };
                if path.contains("/blobs/") {
                    count.fetch_add(body.len() as u64, Ordering::SeqCst);
                }
                let length = body.len();
                let kind = "application/vnd.oci.image.manifest.v1+json";
                let head = format!(
                    "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: {kind}\r\n{head}Content-Length: {length}\r\n\r\n"
                );
                // The client may have hung up.
                let _ = stream.get_mut().write_all(head.as_bytes()).and_then(|()| stream.get_mut().write_all(&body));
            });
        }
    });
    (image, sent)
}
