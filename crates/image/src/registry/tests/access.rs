//! Authentication, and which servers get the credentials.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::source::SourceErrorKind;

/// `u:p`.
const PASSWORD: Option<&str> = Some(r#"{"auth": "dTpw"}"#);
const BASIC: &str = "Basic dTpw";

#[test]
fn basic_authentication_follows_a_challenge() {
    let server = Server::start(|ask| match ask.header("authorization") {
        Some(BASIC) => Reply::new(200, MANIFEST.as_bytes()),
        _ => Reply::new(401, b"").header("WWW-Authenticate", r#"Basic realm="r""#),
    });
    open_at(&server, "a/b:1", PASSWORD).unwrap().top().unwrap();
    assert_eq!(server.asked("/v2/")[0].header("authorization"), None);

    let error = open_at(&server, "a/b:1", None).unwrap().top().unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Denied, "{error}");
    assert!(
        error.to_string().contains(
            ", without credentials\n  help: check the name; if it is right, log in with 'docker login 127.0.0.1:"
        ),
        "{error}"
    );

    let wrong = Some(r#"{"username": "u", "password": "hunter2"}"#);
    let error = open_at(&server, "a/b:1", wrong).unwrap().top().unwrap_err();
    assert!(error.to_string().contains("with the credentials in "), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"));
}

/// A registry with a token service that issues the tokens `t1`, `t2`, …, each valid for `uses` requests.
fn with_tokens(uses: usize) -> Server {
    let asked = AtomicUsize::new(0);
    let left = AtomicUsize::new(0);
    Server::start(move |ask| {
        if ask.path.starts_with("/token") {
            left.store(uses, Ordering::SeqCst);
            let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
            return Reply::new(200, format!(r#"{{"token": "t{number}", "expires_in": 60}}"#).as_bytes());
        }
        let valid = format!("Bearer t{}", asked.load(Ordering::SeqCst));
        let again = left.load(Ordering::SeqCst) > 0;
        if again && ask.header("authorization") == Some(&valid) {
            left.fetch_sub(1, Ordering::SeqCst);
            return Reply::new(200, MANIFEST.as_bytes());
        }
        let challenge =
            format!(r#"Bearer realm="http://{}/token?x=1",service="s",scope="repository:a/b:pull""#, ask.host);
        Reply::new(401, b"").header("WWW-Authenticate", &challenge)
    })
}

#[test]
fn tokens_are_fetched_kept_and_renewed() {
    let server = with_tokens(2);
    let registry = open_at(&server, "a/b:1", PASSWORD).unwrap();
    for _ in 0..3 {
        registry.top().unwrap();
    }
    let tokens = server.asked("/token");
    assert_eq!(tokens.len(), 2);
    assert_eq!(tokens[0].query, "x=1&service=s&scope=repository%3Aa%2Fb%3Apull&account=u");
    assert_eq!(tokens[0].header("authorization"), Some(BASIC));
    let registry = open_at(&server, "a/b:1", None).unwrap();
    registry.top().unwrap();
    assert_eq!(server.asked("/token").pop().unwrap().header("authorization"), None);
}

#[test]
fn a_token_that_does_not_help_is_fetched_once() {
    let server = with_tokens(0);
    let error = anonymous(&server).top().unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Denied, "{error}");
    assert_eq!(server.asked("/token").len(), 2);
}

#[test]
fn identity_tokens_are_exchanged() {
    let server = Server::start(|ask| {
        if ask.path == "/token" {
            return Reply::new(200, br#"{"access_token": "t"}"#);
        }
        match ask.header("authorization") {
            Some("Bearer t") => Reply::new(200, MANIFEST.as_bytes()),
            _ => Reply::new(401, b"")
                .header("WWW-Authenticate", &format!(r#"Bearer realm="http://{}/token",service="s""#, ask.host)),
        }
    });
    open_at(&server, "a/b:1", Some(r#"{"auth": "dTo=", "identitytoken": "i"}"#)).unwrap().top().unwrap();
    let ask = server.asked("/token").remove(0);
    assert_eq!(ask.method, "POST");
    assert_eq!(
        ask.body,
        "grant_type=refresh_token&client_id=ncclcheck&service=s&scope=repository%3Aa%2Fb%3Apull&refresh_token=i"
    );
}

#[test]
fn a_refusal_of_the_token_service_is_reported() {
    let server = Server::start(|ask| {
        if ask.path == "/token" {
            return Reply::new(401, br#"{"details": "incorrect username or password"}"#);
        }
        let challenge = format!(r#"Bearer realm="http://{}/token""#, ask.host);
        Reply::new(401, b"").header("WWW-Authenticate", &challenge)
    });
    let error = open_at(&server, "a/b:1", PASSWORD).unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("401 Unauthorized (incorrect username or password), with the cred"), "{error}");
}

#[test]
fn credentials_stay_with_the_registry() {
    // The storage redirects once more to itself: the second hop must not get the credentials that the first one did not
    // get.
    let storage = Server::start(|ask| match ask.path.as_str() {
        "/first" => Reply::new(307, b"").header("Location", "/second?signature=s3cret"),
        _ => Reply::new(200, &data()),
    });
    let location = format!("http://{}/first", storage.host());
    let server = Server::start(move |ask| match (ask.path.as_str(), ask.header("authorization")) {
        (_, None) => Reply::new(401, b"").header("WWW-Authenticate", "Basic"),
        ("/v2/a/b/manifests/1", _) => Reply::new(302, b"").header("Location", "/moved"),
        ("/moved", Some(BASIC)) => Reply::new(200, MANIFEST.as_bytes()),
        _ => Reply::new(307, b"").header("Location", &location),
    });
    let registry = open_at(&server, "a/b:1", PASSWORD).unwrap();
    registry.top().unwrap();
    assert_eq!(fetch(&registry, &blob(&data())).unwrap(), data());
    for path in ["/first", "/second"] {
        assert_eq!(storage.asked(path)[0].header("authorization"), None);
    }
}

#[test]
fn signed_urls_are_not_shown() {
    let storage = Server::start(|_| Reply::new(403, b"<Error/>"));
    let location = format!("http://{}/blob?signature=s3cret", storage.host());
    let server = Server::start(move |ask| match ask.path.as_str() {
        "/v2/" => Reply::new(200, b""),
        "/v2/a/b/manifests/1" => Reply::new(307, b"").header("Location", "ftp://h/x?signature=s3cret"),
        _ => Reply::new(307, b"").header("Location", &location),
    });
    let registry = anonymous(&server);
    let error = Blob::open(&registry, &blob(b"x")).unwrap_err();
    assert!(error.kind() == SourceErrorKind::Unreachable, "the credentials of the registry are not at fault: {error}");
    assert!(error.to_string().contains(&storage.host()) && !error.to_string().contains("s3cret"), "{error}");
    // Every attempt requests a new URL from the registry.
    assert_eq!(storage.asked("/blob").len(), 6);
    let error = registry.top().unwrap_err().to_string();
    assert!(error.contains("redirects to ftp://h/x, which is not HTTPS") && !error.contains("s3cret"), "{error}");
}

#[test]
fn the_number_of_redirects_is_limited() {
    let server = Server::start(|ask| match ask.path.as_str() {
        "/v2/" => Reply::new(200, b""),
        path => Reply::new(302, b"").header("Location", path),
    });
    let error = anonymous(&server).top().unwrap_err().to_string();
    assert!(error.contains("redirects more than 10 times"), "{error}");
}

#[test]
fn blobs_are_read_by_many_threads() {
    let server = with_tokens(usize::MAX);
    let registry = anonymous(&server);
    let wanted = blob(MANIFEST.as_bytes());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(fetch(&registry, &wanted).unwrap(), MANIFEST.as_bytes()));
        }
    });
    assert_eq!(server.asked("/token").len(), 1);
}

#[test]
fn debug_output_contains_no_secrets() {
    let server = with_tokens(9);
    let registry = open_at(&server, "a/b:1", Some(r#"{"username": "u", "password": "hunter2"}"#)).unwrap();
    let text = format!("{registry:?} {:?} {:?}", registry.auth, registry.auth.current());
    assert!(!text.contains("hunter2") && !text.contains("t1"), "{text}");
}
