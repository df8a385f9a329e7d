//! Blobs over failing connections.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::Ask;
use super::*;

fn range(ask: &Ask) -> Option<usize> {
    ask.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn partial(bytes: &[u8], first: usize) -> Reply {
    Reply::new(206, &bytes[first..])
        .header("Content-Range", &format!("bytes {first}-{}/{}", bytes.len() - 1, bytes.len()))
}

#[test]
fn a_blob_resumes_after_a_broken_connection() {
    let bytes = data();
    let sent = bytes.clone();
    let server = Server::start(move |ask| match range(ask) {
        _ if ask.path == "/v2/" => Reply::new(200, b""),
        None => Reply::new(200, &sent).cut(50_000),
        Some(first) if first < 150_000 => partial(&sent, first).cut(20_000),
        Some(first) => partial(&sent, first),
    });
    let registry = anonymous(&server);
    assert_eq!(fetch(&registry, &blob(&bytes)).unwrap(), bytes);
    let asked = server.asked(&format!("/v2/a/b/blobs/{}", blob(&bytes).digest));
    assert!(asked.len() > 5, "more breaks than the attempts allowed without progress");
    assert_eq!(range(&asked[1]), Some(50_000));
}

#[test]
fn a_server_without_ranges_sends_the_blob_again() {
    let bytes = data();
    let sent = bytes.clone();
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |ask| {
        let reply = Reply::new(200, &sent);
        let first = ask.path != "/v2/" && tries.fetch_add(1, Ordering::SeqCst) == 0;
        if first { reply.cut(150_000) } else { reply }
    });
    assert_eq!(fetch(&anonymous(&server), &blob(&bytes)).unwrap(), bytes);
}

#[test]
fn a_blob_without_progress_is_given_up() {
    let bytes = data();
    let sent = bytes.clone();
    let server = Server::start(move |ask| match range(ask) {
        _ if ask.path == "/v2/" => Reply::new(200, b""),
        None => Reply::new(200, &sent).cut(100),
        Some(first) => partial(&sent, first).cut(0),
    });
    let error = fetch(&anonymous(&server), &blob(&bytes)).unwrap_err();
    assert!(error.contains("the connection broke at byte 100 of 200000"), "{error}");
    assert_eq!(server.asked(&format!("/v2/a/b/blobs/{}", blob(&bytes).digest)).len(), 6);
}

#[test]
fn wrong_ranges_and_sizes_are_refused() {
    for (reply, why) in [
        (
            Reply::new(206, &data()[7..]).header("Content-Range", "bytes 7-199999/200000"),
            "sent bytes 7-199999/200000 for",
        ),
        (Reply::new(206, &data()[9..]), "sent no Content-Range for"),
        (Reply::new(416, b""), "answered 416 Range Not Satisfiable"),
        (Reply::new(200, b"other"), "has 5 bytes, the manifest says 200000"),
    ] {
        let server = Server::start(move |ask| match range(ask) {
            None => Reply::new(200, &data()).cut(9),
            Some(_) => reply.clone(),
        });
        let error = fetch(&anonymous(&server), &blob(&data())).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn an_endless_blob_is_cut_off() {
    let mut long = data();
    long.push(0);
    let server = Server::start(move |_| Reply::new(200, &long).without_length());
    let error = fetch(&anonymous(&server), &blob(&data())).unwrap_err();
    assert!(error.contains("more than 200000 bytes"), "{error}");
}

#[test]
fn a_silent_connection_times_out() {
    let bytes = data();
    let sent = bytes.clone();
    let server = Server::start(move |ask| match range(ask) {
        None => Reply::new(200, &sent).cut(50_000).silent_for(Duration::from_secs(2)),
        Some(first) => partial(&sent, first),
    });
    let quick = Patience { idle: Duration::from_millis(500), base: Duration::from_millis(1), ..Patience::default() };
    let registry = open_in(&server, "a/b:1", None, quick).unwrap();
    // The answer for the API's base is as slow, but its headers are not.
    assert_eq!(fetch(&registry, &blob(&bytes)).unwrap(), bytes);
}
