//! What several images of one registry share.

use super::*;

/// A registry that gives a token for each repository, and answers only with it.
fn guarded() -> Server {
    Server::start(|ask| {
        if ask.path == "/token" {
            assert!(ask.query.contains("scope=repository"), "{}", ask.query);
            return Reply::new(200, br#"{"token": "t"}"#);
        }
        if ask.header("authorization") != Some("Bearer t") {
            let host = ask.header("host").unwrap_or_default();
            let challenge = format!(r#"Bearer realm="http://{host}/token",service="s""#);
            return Reply::new(401, b"").header("WWW-Authenticate", &challenge);
        }
        Reply::new(200, MANIFEST.as_bytes()).header("Content-Type", TYPE)
    })
}

#[test]
fn images_of_a_registry_share_its_contact_and_those_of_a_repository_its_token() {
    let server = guarded();
    let contacts = RegistryContacts::default();
    let patience = Patience { base: Duration::from_millis(1), ..Patience::default() };
    let open = |image: &str| {
        let name = format!("{}/{image}", server.host()).parse().unwrap();
        open_patiently(&name, &options(), &contacts, patience).unwrap().top().unwrap();
    };
    std::thread::scope(|scope| {
        for image in ["a/b:1", "a/b:2", "a/b:3", "a/c:1"] {
            scope.spawn(move || open(image));
        }
    });
    let asked = |prefix: &str| server.paths().iter().filter(|path| path.starts_with(prefix)).count();
    assert_eq!((asked("/token"), asked("/v2/a/")), (2, 4), "{:?}", server.paths());
    assert_eq!(server.paths().iter().filter(|path| *path == "/v2/").count(), 1, "{:?}", server.paths());
}

#[test]
fn a_failed_contact_is_tried_again() {
    let contacts = RegistryContacts::default();
    let failed = contacts.contact("r.io", true, || Err(SourceError::invalid("no answer")));
    assert!(failed.is_err());
    let met = contacts.contact("r.io", true, || {
        let transport = Arc::new(HttpTransport::new("r.io", &options(), Patience::default())?);
        Ok(Contact { transport, root: Url::parse("https://r.io/v2/").unwrap(), challenged: None })
    });
    assert_eq!(met.unwrap().root.as_str(), "https://r.io/v2/");
    assert!(contacts.contact("r.io", true, || panic!("it has answered")).is_ok());
    // Without verification it is another registry.
    assert!(contacts.contact("r.io", false, || Err(SourceError::invalid("no answer"))).is_err());
}
