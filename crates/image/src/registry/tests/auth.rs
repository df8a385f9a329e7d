//! Authorization of requests: passwords, and tokens obtained with them.

use docker_credential::DockerCredential;
use reqwest::header::WWW_AUTHENTICATE;

use super::super::authorization::Authorization;
use super::*;
use model::Environment;

/// The state for user `u` with password `p`; `plain` allows sending them over plain HTTP.
fn with_password(plain: bool) -> Auth {
    let mut login = Login::default();
    login.credential = Some(DockerCredential::UsernamePassword("u".to_owned(), "p".to_owned()));
    let environment = [(super::super::realm::VARIABLE.to_owned(), "127.0.0.1".to_owned())].into_iter().collect();
    Auth::new(login, TokenHosts::new("r.io", &environment), "r.io", "a/b", plain)
}

/// Answers one challenge. Returns true if there is something new to present, and the authorization from then on.
fn renew(auth: &Auth, challenge: &str) -> Result<(bool, String), String> {
    let transport = HttpTransport::new("r.io", &options(), Patience::default()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(WWW_AUTHENTICATE, challenge.parse().unwrap());
    let renewed = auth.renew(&transport, &headers, &auth.current(), "r.io/a/b");
    renewed.map(|renewed| (renewed, format!("{:?}", auth.current()))).map_err(|fault| fault.into_error().to_string())
}

/// A token service that gives this answer to every request.
fn token_service(answer: &'static str) -> Server {
    Server::start(move |_| Reply::new(200, answer.as_bytes()))
}

#[test]
fn a_token_service_needs_https_unless_the_registry_is_plain() {
    let service = token_service(r#"{"token": "t"}"#);
    let challenge = format!(r#"Bearer realm="http://{}/token""#, service.host());
    let error = renew(&with_password(false), &challenge).unwrap_err();
    assert!(error.contains(&format!("the token service http://{}/token is not HTTPS", service.host())), "{error}");
    assert!(service.paths().is_empty(), "the password was sent");
    assert_eq!(renew(&with_password(true), &challenge), Ok((true, "Bearer".to_owned())));
    for plain in [false, true] {
        let error = renew(&with_password(plain), r#"Bearer realm="ftp://r.io/token""#).unwrap_err();
        assert!(error.contains("is not HTTPS"), "{error}");
        let error = renew(&with_password(plain), r#"Bearer realm="token""#).unwrap_err();
        assert!(error.contains("the token service is not a URL"), "{error}");
        // The service is contacted, but does not speak TLS.
        let error = renew(&with_password(plain), &challenge.replace("http:", "https:")).unwrap_err();
        assert!(error.contains("no answer from"), "{error}");
    }
}

#[test]
fn a_password_is_sent_only_to_basic_authentication() {
    for challenge in
        ["Negotiate", "Digest realm=\"r\"", "Bearer", "Bearer realm=\"\"", "Digest realm=\"http://r.io\"", "="]
    {
        assert_eq!(renew(&with_password(true), challenge), Ok((false, "Nobody".to_owned())), "{challenge}");
    }
    for challenge in ["Basic", "bAsIc realm=\"r\"", "Basic, Negotiate", "Negotiate, Basic"] {
        let auth = with_password(true);
        assert_eq!(renew(&auth, challenge), Ok((true, "Basic".to_owned())), "{challenge}");
        assert_eq!(renew(&auth, challenge), Ok((false, "Basic".to_owned())), "a refused password is not sent again");
    }
    let hosts = TokenHosts::new("r.io", &Environment::default());
    let anonymous = Auth::new(Login::default(), hosts, "r.io", "a/b", true);
    assert_eq!(renew(&anonymous, "Basic"), Ok((false, "Nobody".to_owned())));
}

#[test]
fn a_token_of_another_thread_is_used() {
    let auth = with_password(true);
    let before = auth.current();
    renew(&auth, "Basic").unwrap();
    let transport = HttpTransport::new("r.io", &options(), Patience::default()).unwrap();
    assert!(auth.renew(&transport, &HeaderMap::new(), &before, "r.io/a/b").unwrap());
    assert!(matches!(&*auth.current(), Authorization::Basic { .. }));
}

#[test]
fn the_registrys_scope_is_used_after_a_refused_token() {
    let service = token_service(r#"{"token": "t"}"#);
    let auth = with_password(true);
    let challenge = format!(r#"bEARER REALM="http://{}/token", service="", SCOPE="other""#, service.host());
    renew(&auth, &challenge).unwrap();
    renew(&auth, &challenge).unwrap();
    let queries: Vec<_> = service.asked("/token").into_iter().map(|ask| ask.query).collect();
    assert_eq!(queries, ["scope=repository%3Aa%2Fb%3Apull&account=u", "scope=other&account=u"]);
}

#[test]
fn a_token_is_one_word_of_visible_characters() {
    for answer in
        [r#"{"token": ""}"#, r#"{"token": "a b"}"#, r#"{"token": "a\nb"}"#, r#"{"token": "ä"}"#, "{}", "token"]
    {
        let service = token_service(answer);
        let error = renew(&with_password(true), &format!(r#"Bearer realm="http://{}/""#, service.host())).unwrap_err();
        assert!(error.contains("contains no token"), "{answer}: {error}");
    }
}

#[test]
fn a_truncated_token_answer_is_retried() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |ask| match (ask.path.as_str(), ask.header("authorization")) {
        ("/token", _) if asked.fetch_add(1, Ordering::SeqCst) == 0 => Reply::new(200, br#"{"token": "t"}"#).cut(5),
        ("/token", _) => Reply::new(200, br#"{"token": "t"}"#),
        (_, Some("Bearer t")) => Reply::new(200, MANIFEST.as_bytes()),
        _ => Reply::new(401, b"").header("WWW-Authenticate", &format!(r#"Bearer realm="http://{}/token""#, ask.host)),
    });
    anonymous(&server).top().unwrap();
    assert_eq!(server.asked("/token").len(), 2);
}
