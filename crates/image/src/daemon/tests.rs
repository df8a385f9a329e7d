pub(super) mod fake;

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::channel;

use super::*;
use fake::{Fake, options, respond, respond_chunked};

const ID: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A member name and no content: enough of an archive.
fn archive() -> Vec<u8> {
    let mut bytes = vec![0; 3 * 512];
    bytes[..13].copy_from_slice(b"manifest.json");
    bytes
}

/// Reads an export to its end; returns its bytes and the outcome.
fn drain(mut export: Box<dyn Read + Send>) -> (Vec<u8>, io::Result<u64>) {
    let mut bytes = Vec::new();
    let end = io::copy(&mut export, &mut bytes);
    if let Err(error) = &end {
        let again = export.read(&mut [0]).unwrap_err();
        assert_eq!(again.to_string(), error.to_string(), "an error became an end");
    }
    (bytes, end)
}

#[test]
fn an_image_is_found_and_exported() {
    let fake = Fake::new("1.47", |target, stream| {
        if target.ends_with("/images/torch:2.9/json") {
            let json = format!(
                r#"{{"Id":"{ID}","RepoTags":["torch:2.9","<none>:<none>"],"RepoDigests":null,"Size":7,
                    "Os":"linux","Architecture":"arm64","Variant":"v8"}}"#
            );
            respond(stream, "200 OK", json.as_bytes());
        } else {
            let bytes = archive();
            respond_chunked(stream, &[&bytes[..100], &bytes[100..]], true);
        }
    });
    let engine = fake.engine();
    assert_eq!(engine.describe(), format!("Docker 28.2.2 at {}", fake.endpoint()));
    let image = engine.find("torch:2.9").unwrap();
    assert_eq!(image.id.as_str(), ID);
    assert_eq!((image.tags, image.digests, image.size), (vec!["torch:2.9".to_owned()], vec![], Some(7)));
    assert_eq!(image.platform.unwrap().to_string(), "linux/arm64/v8");
    let platform = "linux/arm64/v8".parse().unwrap();
    let (bytes, end) = drain(engine.export("torch:2.9", Some(&platform)).unwrap());
    assert_eq!((bytes, end.unwrap()), (archive(), 1536));
    // This engine's API takes no platform.
    assert!(fake.requests().last().unwrap().ends_with("/images/torch:2.9/get"));
}

#[test]
fn a_platform_is_requested_if_the_api_supports_it() {
    let fake = Fake::new("1.51", |_, stream| respond_chunked(stream, &[&archive()], true));
    let platform = "linux/arm64/v8".parse().unwrap();
    drain(fake.engine().export("torch:2.9", Some(&platform)).unwrap()).1.unwrap();
    let request = fake.requests().pop().unwrap();
    let (path, query) = request.split_once("?platform=").unwrap();
    assert!(path.ends_with("/images/torch:2.9/get"), "{path}");
    let hex = query.split('%').skip(1).map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect();
    let json: serde_json::Value = serde_json::from_str(&String::from_utf8(hex).unwrap()).unwrap();
    assert_eq!(json, serde_json::json!({"os": "linux", "architecture": "arm64", "variant": "v8"}));
}

#[test]
fn a_name_without_tag_does_not_export_every_tag() {
    let fake = Fake::new("1.41", |target, stream| {
        if target.ends_with("/json") {
            respond(stream, "200 OK", format!(r#"{{"Id":"{ID}"}}"#).as_bytes());
        } else {
            respond_chunked(stream, &[&archive()], true);
        }
    });
    drain(fake.engine().export("localhost:5000/torch", None).unwrap()).1.unwrap();
    assert!(fake.requests().pop().unwrap().ends_with(&format!("/images/{ID}/get")));
}

#[test]
fn a_truncated_export_is_an_error() {
    let cases: [(&str, bool, &[u8], &str); 4] = [
        ("cut", false, b"", "after 512 bytes: unexpected EOF"),
        ("short", true, b"", "after 512 bytes: the archive's end marker is missing"),
        (
            "complaint",
            true,
            b"{\"errorDetail\":{\"message\":\"disk\"},\"error\":\"disk\"}\r\n",
            "after 563 bytes: disk",
        ),
        ("gone", false, b"12", "after 514 bytes: "),
    ];
    for (name, ends, last, text) in cases {
        let fake = Fake::new("1.41", move |_, stream| {
            let bytes = archive();
            let chunks = [&bytes[..512], last];
            respond_chunked(stream, if last.is_empty() { &chunks[..1] } else { &chunks }, ends);
        });
        let (bytes, end) = drain(fake.engine().export(&format!("torch:{name}"), None).unwrap());
        assert_eq!(bytes, [&archive()[..512], last].concat());
        let error = end.unwrap_err();
        assert!(error.to_string().contains(text), "{name}: {error}");
        assert_ne!(error.kind(), ErrorKind::Interrupted);
    }
}

#[test]
fn answers_that_are_not_exports() {
    for (status, body, text) in [
        (
            "404 Not Found",
            r#"{"message":"No such image: torch:1"}"#,
            "has no image 'torch:1': fetch it with docker pull torch:1, or name its registry with docker://torch:1",
        ),
        (
            "500 Internal Server Error",
            r#"{"message":"no space\u001b left"}"#,
            "cannot export 'torch:1' from Docker 28.2.2 at",
        ),
        ("500 Internal Server Error", r#"{"message":"no space\u001b left"}"#, ": no space\u{fffd} left"),
        ("403 Forbidden", "denied by a plugin", ": denied by a plugin"),
        ("200 OK", r#"{"message":"no space left"}"#, ": no space left"),
        ("200 OK", "{", ": the engine sent JSON instead of an archive"),
        ("200 OK", "", ": the engine sent nothing"),
    ] {
        let fake = Fake::new("1.41", move |_, stream| respond(stream, status, body.as_bytes()));
        let error = fake.engine().export("torch:1", None).err().unwrap();
        match status {
            "404 Not Found" => assert_eq!(error.kind(), SourceErrorKind::NotFound, "{error}"),
            "403 Forbidden" => assert_eq!(error.kind(), SourceErrorKind::Denied, "{error}"),
            _ => assert_eq!(error.kind(), SourceErrorKind::Invalid, "{error}"),
        }
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn answers_that_are_not_images() {
    for (status, body, text) in [
        ("404 Not Found", r#"{"message":"No such image: torch"}"#, "has no image 'torch'"),
        ("200 OK", "[]", "the answer does not follow Docker's API"),
        ("200 OK", "{}", "has no image ID"),
        ("200 OK", r#"{"Id":"sha256:1"}"#, "has an invalid image ID"),
    ] {
        let fake = Fake::new("1.41", move |_, stream| respond(stream, status, body.as_bytes()));
        let error = fake.engine().find("torch").unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_dropped_export_hangs_up() {
    let (sender, hung_up) = channel();
    let fake = Fake::new("1.41", move |_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[1; 4096]).is_ok() {}
        sender.send(()).unwrap();
    });
    let mut export = fake.engine().export("torch:1", None).unwrap();
    export.read_exact(&mut [0; 10_000]).unwrap();
    assert!(hung_up.try_recv().is_err());
    drop(export);
    hung_up.recv().unwrap();
}

#[test]
fn names_cannot_reach_elsewhere() {
    let fake = Fake::new("1.41", |_, stream| respond(stream, "200 OK", b"{}"));
    let engine = fake.engine();
    fake.requests();
    for name in ["", "..", "a/../../info", "a//b", "/a", "a?b", "a#b", "a b", "a%2e", "a\u{1b}[2J"] {
        let error = engine.find(name).unwrap_err().to_string();
        assert!(error.ends_with("is neither the name nor the ID of an image"), "{error}");
        assert!(engine.export(name, None).is_err());
    }
    assert_eq!(fake.requests(), [""; 0]);
}

#[test]
fn no_engine_listens() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("old.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let socket = format!("unix://{}", socket.display());
    let failure = |host: &str| match Engine::connect(&options(&[("DOCKER_HOST", host)])) {
        Err(SourceError { kind: SourceErrorKind::Unreachable, what, hint, .. }) => (what, hint),
        other => panic!("{other:?}"),
    };
    let (what, hint) = failure(&socket);
    assert_eq!(what, format!("no engine answers at {socket} (DOCKER_HOST): connection refused, nothing listens there"));
    assert!(hint.unwrap().starts_with("start it (systemctl start docker"));
    assert!(failure("unix:///nowhere.sock").0.ends_with("(DOCKER_HOST): no such socket"));
    let (what, hint) = failure("npipe:////./x");
    assert!(what.starts_with("no engine answers at npipe:////./x (DOCKER_HOST): npipe:// is not supported"), "{what}");
    assert_eq!(hint, None);
    assert!(failure("https://box").0.contains("ca.pem"));
}

#[test]
fn another_service_listens() {
    // A service that answers every request but reports no API version.
    let fake = Fake::new("", |_, stream| respond(stream, "404 Not Found", b""));
    let error = Engine::connect(&options(&[("DOCKER_HOST", &fake.endpoint())])).unwrap_err().to_string();
    assert!(error.contains("(DOCKER_HOST): another service answers there"), "{error}");
}

/// Relays standard input and output to a socket, as `docker system dial-stdio` does on the engine's machine.
const RELAY: &str = r"
import socket, sys, threading
engine = socket.socket(socket.AF_UNIX)
engine.connect(sys.argv[1])
def send():
    while block := sys.stdin.buffer.read1(65536):
        engine.sendall(block)
    engine.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while block := engine.recv(65536):
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
";

#[expect(clippy::disallowed_methods, reason = "a process in place of ssh")]
fn command(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}

#[test]
fn an_engine_is_reached_through_a_process() {
    let fake = Fake::new("1.47", |target, stream| match target.rsplit('/').next() {
        Some("json") => respond(stream, "200 OK", format!(r#"{{"Id":"{ID}"}}"#).as_bytes()),
        _ => respond_chunked(stream, &[&archive()], true),
    });
    let socket = fake.endpoint().replace("unix://", "");
    let tunnel = Tunnel::open(move || {
        let mut relay = command("python3");
        relay.args(["-c", RELAY, &socket]);
        relay
    });
    let tunnel = tunnel.unwrap();
    let folder = tunnel.path();
    let engine = Engine::connect(&options(&[("DOCKER_HOST", &format!("unix://{}", folder.display()))])).unwrap();
    assert_eq!(engine.find("torch").unwrap().id.as_str(), ID);
    let export = engine.export("torch:1", None).unwrap();
    // An open export outlives the tunnel, which leaves nothing behind.
    drop(tunnel);
    let (bytes, end) = drain(export);
    assert_eq!((bytes, end.unwrap()), (archive(), 1536));
    assert!(!folder.exists() && !folder.parent().unwrap().exists());
}

/// A client through a tunnel.
fn through(tunnel: &Tunnel) -> Docker {
    EngineTransport::new(&Address::Unix(tunnel.path().to_string_lossy().into()), None, &Limits::default())
        .unwrap()
        .client()
        .unwrap()
}

#[test]
fn an_endless_document_is_refused_and_an_endless_stream_is_not_kept() {
    let fake = Fake::new("1.41", |target, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{}", if target.ends_with("/json") { "{" } else { "" });
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    let engine = fake.engine();
    let error = engine.find("torch:1").unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Invalid, "{error}");
    let why = "for 'torch:1': the answer to GET /images/torch:1/json has more than 8388608 bytes, the limit is 8388608 (raise it";
    assert!(
        error.to_string().starts_with(&format!("cannot query Docker 28.2.2 at {} {why}", fake.endpoint())),
        "{error}"
    );
    assert!(error.to_string().contains("--limit engine_answer=N"), "{error}");
    let mut export = engine.export("torch:1", None).unwrap();
    assert_eq!(io::copy(&mut (&mut export).take(64 << 20), &mut io::sink()).unwrap(), 64 << 20);
}

#[test]
fn the_complaint_of_a_process_is_reported() {
    let failing = |script: &'static str| {
        let tunnel = Tunnel::open(move || {
            let mut shell = command("sh");
            shell.args(["-c", script]);
            shell
        });
        let tunnel = tunnel.unwrap();
        let docker = through(&tunnel);
        explained(ask(GREETING, docker.version()).unwrap_err(), Some(&tunnel)).text
    };
    assert_eq!(
        failing("echo banner >&2; echo 'me@box: Permission denied (publickey).' >&2; exit 255"),
        "me@box: Permission denied (publickey)."
    );
    let tunnel = Tunnel::open(|| command("/nonexistent/ssh")).unwrap();
    let docker = through(&tunnel);
    let error = explained(ask(GREETING, docker.version()).unwrap_err(), Some(&tunnel)).text;
    assert_eq!(error, "cannot run /nonexistent/ssh: no such file or directory");
}
