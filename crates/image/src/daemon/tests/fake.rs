//! A fake engine for tests: a socket, and one answer for each request.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tempfile::TempDir;

use model::Limits;

use super::super::Engine;
use crate::source::AccessOptions;

/// Docker's answer to `/version`; `{}` is the newest API version.
const VERSION: &str = r#"{"Components":[{"Name":"Engine","Version":"28.2.2"}],"Version":"28.2.2","ApiVersion":"{}"}"#;

pub(in super::super) struct Fake {
    folder: TempDir,
    requests: Receiver<String>,
}

impl Fake {
    /// Listens, and answers every request except `/version` with what `answer` writes for its target. Closes the
    /// connection after each answer.
    pub(in super::super) fn new(api: &'static str, answer: impl Fn(&str, &mut UnixStream) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                let Some(first) = head.collect::<Vec<_>>().into_iter().next() else { continue };
                let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
                // Sent before the answer, so that a test that has the answer can read the request.
                let _ = sender.send(target.clone());
                if target.ends_with("/version") {
                    respond(&mut stream, "200 OK", VERSION.replace("{}", api).as_bytes());
                } else {
                    answer(&target, &mut stream);
                }
            }
        });
        Self { folder, requests }
    }

    pub(in super::super) fn endpoint(&self) -> String {
        format!("unix://{}", self.folder.path().join("engine.sock").display())
    }

    pub(in super::super) fn engine(&self) -> Engine {
        Engine::connect(&options(&[("DOCKER_HOST", &self.endpoint())])).unwrap()
    }

    /// The targets of all requests.
    pub(in super::super) fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

/// Writes a complete response.
pub(in super::super) fn respond(stream: &mut UnixStream, status: &str, body: &[u8]) {
    // The client may hang up at any time.
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(body);
}

/// Writes a chunked response, with the final chunk only if `ends`.
pub(in super::super) fn respond_chunked(stream: &mut UnixStream, chunks: &[&[u8]], ends: bool) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for chunk in chunks {
        let _ = write!(stream, "{:x}\r\n", chunk.len());
        let _ = stream.write_all(chunk);
        let _ = stream.write_all(b"\r\n");
    }
    if ends {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
}

/// The access options for these variables.
pub(in super::super) fn options(variables: &[(&str, &str)]) -> AccessOptions {
    AccessOptions {
        cert_dir: None,
        authfile: None,
        tls_verify: true,
        limits: Limits::default(),
        environment: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}
