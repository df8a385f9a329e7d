use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::*;

/// Largest object of these tests.
const MOST: u64 = 1 << 20;

fn open(place: &str) -> ObjectFolder {
    ObjectFolder::new(place, &Environment::default()).unwrap()
}

/// A web server that answers each request with `answer(method, path, body)` as long as the test runs.
fn server(answer: impl Fn(&str, &str, Vec<u8>) -> (u16, Vec<u8>) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/team/scans", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let mut lines = Vec::new();
            while lines.last().is_none_or(|line: &String| !line.trim().is_empty()) {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                lines.push(line.to_ascii_lowercase());
            }
            let length = lines.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let mut words = lines[0].split(' ');
            let (status, body) = answer(words.next().unwrap(), words.next().unwrap(), body);
            respond(reader.into_inner(), status, &body);
        }
    });
    url
}

fn respond(mut stream: TcpStream, status: u16, body: &[u8]) {
    let date = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT";
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{date}\r\nConnection: close\r\n\r\n", body.len());
    // The client may have closed the connection.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

#[test]
fn unsupported_places_are_refused() {
    for (place, why) in [
        ("ftp://x/y", "unsupported scheme ftp://; use s3://"),
        ("https://user:secret@x/y", "must not contain credentials"),
        ("http://", "is not a URL"),
    ] {
        let said = ObjectFolder::new(place, &Environment::default()).unwrap_err();
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
    assert_eq!(open("https://x/y?signature=secret").to_string(), "https://x/y");
}

#[test]
fn a_folder_by_path_and_by_url() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not there yet");
    let by_path = open(path.to_str().unwrap());
    assert_eq!(by_path.read("v/x", MOST).unwrap(), None);
    by_path.write("v/x", b"scan".to_vec()).unwrap();
    assert_eq!(by_path.read("v/x", MOST).unwrap().unwrap(), b"scan");
    let by_url = open(Url::from_directory_path(&path).unwrap().as_str());
    assert_eq!(by_url.read("v/x", MOST).unwrap().unwrap(), b"scan");
    assert_eq!(std::fs::read(path.join("v/x")).unwrap(), b"scan");
}

#[test]
fn a_web_server_that_accepts_files() {
    let files = Arc::new(Mutex::new(std::collections::BTreeMap::new()));
    let kept = Arc::clone(&files);
    let url = server(move |method, path, body| match method {
        "put" => {
            kept.lock().unwrap().insert(path.to_owned(), body);
            (201, Vec::new())
        }
        _ => kept.lock().unwrap().get(path).map_or((404, Vec::new()), |bytes| (200, bytes.clone())),
    });
    let shared = open(&url);
    assert_eq!(shared.read("v/x", MOST).unwrap(), None);
    shared.write("v/x", b"scan".to_vec()).unwrap();
    assert_eq!(shared.read("v/x", MOST).unwrap().unwrap(), b"scan");
    assert_eq!(files.lock().unwrap().keys().collect::<Vec<_>>(), ["/team/scans/v/x"]);
}

#[test]
fn refusals_are_reported() {
    let shared = open(&server(|_, _, _| (403, "<p>not you</p>".repeat(1000).into_bytes())));
    let said = shared.read("v/x", MOST).unwrap_err();
    assert!(said.contains("403") && said.len() < 500, "{said}");
    let said = shared.write("v/x", Vec::new()).unwrap_err();
    assert!(said.contains("403"), "{said}");
}

#[test]
fn waiting_for_a_server_ends() {
    // This server accepts connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/x", listener.local_addr().unwrap());
    let shared = open(&place).with_patience(Duration::from_millis(300));
    assert!(shared.read("v/x", MOST).unwrap_err().starts_with("no response within"));
    // Connections are refused.
    drop(listener);
    assert!(open(&place).read("v/x", MOST).is_err());
}

#[test]
fn an_oversized_response_is_another_object() {
    let url = server(|_, _, _| (200, vec![0; usize::try_from(MOST).unwrap() + 1]));
    assert_eq!(open(&url).read("v/x", MOST).unwrap(), None);
}

#[test]
fn an_object_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path().join("new").to_str().unwrap());
    assert!(store.list("v").unwrap().is_empty() && store.folders().unwrap().is_empty());
    assert!(store.create("v/x", b"first".to_vec()).unwrap());
    assert!(!store.create("v/x", b"second".to_vec()).unwrap());
    store.write("v/y/z", b"other".to_vec()).unwrap();
    let listed = store.list("v").unwrap();
    assert_eq!(listed.iter().map(|object| &*object.name).collect::<Vec<_>>(), ["v/x", "v/y/z"]);
    assert_eq!(store.folders().unwrap(), ["v"]);
    let names: Vec<_> =
        (0..70).map(|number| if number == 40 { "v/x".to_owned() } else { format!("v/{number}") }).collect();
    let read = store.read_all(&names, MOST).unwrap();
    assert_eq!(read.iter().flatten().collect::<Vec<_>>(), [b"first"]);
    assert_eq!(read[40].as_deref(), Some(&b"first"[..]));
}
