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
    let (sent, tries) = (bytes.clone(), AtomicUsize::new(0));
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

/// Both ends of the requested range.
fn both(ask: &Ask) -> Option<(usize, usize)> {
    let (first, last) = ask.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn fetch_range(registry: &Registry, bytes: &[u8], range: Range<u64>) -> Result<Option<Vec<u8>>, String> {
    let reader = registry.open_range(&blob(bytes), range).map_err(|error| error.to_string())?;
    let Some(mut reader) = reader else { return Ok(None) };
    let mut read = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "a few bytes of a test")]
    reader.read_to_end(&mut read).map_err(|error| error.to_string())?;
    Ok(Some(read))
}

#[test]
fn a_range_is_read_alone_and_resumes_after_a_broken_connection() {
    let bytes = data();
    let sent = bytes.clone();
    let server = Server::start(move |ask| match both(ask) {
        None => Reply::new(200, b""),
        Some((first, last)) => {
            let told = format!("bytes {first}-{last}/{}", sent.len());
            Reply::new(206, &sent[first..=last]).header("Content-Range", &told).cut(400)
        }
    });
    let registry = anonymous(&server);
    for range in [1000..2000, 0..100, 199_000..200_000] {
        let wanted = bytes[range.start..range.end].to_vec();
        let read = fetch_range(&registry, &bytes, range.start as u64..range.end as u64).unwrap();
        assert_eq!(read, Some(wanted), "{range:?}");
    }
    let asked = server.asked(&format!("/v2/a/b/blobs/{}", blob(&bytes).digest));
    assert_eq!(asked.iter().filter_map(both).take(3).collect::<Vec<_>>(), [(1000, 1999), (1400, 1999), (1800, 1999)]);
}

#[test]
fn a_server_that_sends_the_whole_blob_offers_no_ranges() {
    let bytes = data();
    let sent = bytes.clone();
    let server = Server::start(move |_| Reply::new(200, &sent));
    assert_eq!(fetch_range(&anonymous(&server), &bytes, 1000..2000).unwrap(), None);
    assert_eq!(fetch_range(&anonymous(&server), &bytes, 0..2000).unwrap(), None);
}
