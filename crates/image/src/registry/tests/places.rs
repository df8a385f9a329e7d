//! Images that mirrors and rewritten locations serve.

use std::fs;

use super::super::config::ConfigFiles;
use super::super::pull::Registries;
use super::*;

/// A registry that has only these repositories.
fn serving(repositories: &'static [&'static str]) -> Server {
    Server::start(move |ask| {
        let has = |name: &&str| ask.path.starts_with(&format!("/v2/{name}/"));
        match repositories.iter().any(has) {
            _ if ask.path == "/v2/" => Reply::new(200, b"{}"),
            true => Reply::new(200, MANIFEST.as_bytes()),
            false => Reply::new(404, b""),
        }
    })
}

/// Opens an image under a `registries.conf`.
fn pull(conf: &str, name: &str, login: Option<(&str, &str)>) -> Result<Registry, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registries.conf");
    let authfile = folder.path().join("auth.json");
    fs::write(&file, conf).unwrap();
    let auths = login.map_or_else(|| "{}".to_owned(), |(host, entry)| format!(r#"{{"auths": {{"{host}": {entry}}}}}"#));
    fs::write(&authfile, auths).unwrap();
    let options = AccessOptions { authfile: Some(authfile), ..options() };
    let patience = Patience { base: Duration::from_millis(1), ..Patience::default() };
    let registries = Registries::configured(&ConfigFiles::only(&file), patience).unwrap();
    let place = folder.path().display().to_string();
    registries
        .open(&name.parse().unwrap(), &options, &RegistryContacts::default())
        .map_err(|error| error.to_string().replace(&place, "DIR"))
}

#[test]
fn a_mirror_answers_and_nothing_else_is_contacted() {
    let mirror = serving(&["hub/library/debian"]);
    let primary = serving(&["library/debian"]);
    let conf = format!(
        "[[registry]]\nprefix = 'docker.io'\nlocation = '{}'\n[[registry.mirror]]\nlocation = '{}/hub'",
        primary.host(),
        mirror.host()
    );
    let registry = pull(&conf, "debian:12", None).unwrap();
    let served_by = registry.served_by().unwrap();
    assert!(served_by.starts_with(&format!("docker://{}/hub/library/debian:12 (", mirror.host())), "{served_by}");
    assert!(served_by.ends_with("registries.conf:4)"), "{served_by}");
    assert_eq!(mirror.paths().last().unwrap(), "/v2/hub/library/debian/manifests/12");
    assert!(primary.paths().is_empty());
    // A mirror without the image leads to the next place.
    let other = serving(&[]);
    let conf = conf.replace(&mirror.host(), &other.host());
    let registry = pull(&conf, "debian:12", None).unwrap();
    assert!(registry.served_by().unwrap().contains(&primary.host()));
    assert_eq!(other.paths().last().unwrap(), "/v2/hub/library/debian/manifests/12");
}

#[test]
fn the_registry_of_the_name_is_no_other_place() {
    let server = serving(&["a/b"]);
    let name = format!("{}/a/b:1", server.host());
    assert_eq!(pull("", &name, None).unwrap().served_by(), None);
}

#[test]
fn a_blocked_registry_is_not_contacted() {
    let mirror = serving(&[]);
    let primary = serving(&["a/b"]);
    let (host, name) = (primary.host(), format!("{}/a/b:1", primary.host()));
    let conf = format!(
        "\n[[registry]]\nlocation = '{host}'\nblocked = true\n[[registry.mirror]]\nlocation = '{}'",
        mirror.host()
    );
    let error = pull(&conf, &name, None).unwrap_err();
    assert!(
        error.starts_with(&format!("{name} is not fetched: DIR/registries.conf:2 blocks {host}\n  mirror ")),
        "{error}"
    );
    assert!(error.contains(&format!("mirror {}/a/b:1 (DIR/registries.conf:5): ", mirror.host())), "{error}");
    assert!(
        error.ends_with("  help: name an image of an allowed registry, or remove 'blocked' at DIR/registries.conf:2"),
        "{error}"
    );
    assert!(primary.paths().is_empty() && !mirror.paths().is_empty());
}

#[test]
fn credentials_are_those_of_the_place() {
    let mirror = Server::start(|ask| match ask.header("authorization") {
        Some("Basic dTpw") => Reply::new(200, MANIFEST.as_bytes()),
        _ => Reply::new(401, b"").header("WWW-Authenticate", r#"Basic realm="r""#),
    });
    let conf = format!("[[registry]]\nprefix = 'r.example'\nlocation = '{}'", mirror.host());
    let entry = r#"{"auth": "dTpw"}"#;
    pull(&conf, "r.example/a:1", Some((&mirror.host(), entry))).unwrap();
    // Those for the registry in the image's name stay there.
    let error = pull(&conf, "r.example/a:1", Some(("r.example", entry))).unwrap_err();
    assert!(error.contains("without credentials"), "{error}");
    assert!(error.contains(&format!("DIR/registries.conf:1 leads to {}/a:1", mirror.host())), "{error}");
}
