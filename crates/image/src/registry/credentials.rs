//! Credentials for a registry, as stored by `docker login`, `podman login` and credential helpers
//! (containers-auth.json(5); Docker's `config.json`).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_spec::distribution::Reference as Name;

use super::conceal::Secrets;
use super::helper;
use super::response_error::Access;
use crate::source::{AccessOptions, SourceError, read_bounded};
use model::{Environment, cause, open_configured};

/// Maximum size of a credentials file in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The key under which Docker stores the credentials for Docker Hub.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The credentials for one registry, and their origin.
#[derive(Default)]
pub(super) struct Login {
    pub(super) credential: Option<DockerCredential>,
    file: Option<PathBuf>,
    /// Reasons why existing credentials could not be read.
    trouble: Vec<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("file", &self.file).field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Login {
    /// Searches the given file, or all default ones until one has credentials for the registry of `name`.
    pub(super) fn find(name: &Name, options: &AccessOptions) -> Result<Self, SourceError> {
        let environment = &options.environment;
        let given = options.authfile.clone().or_else(|| environment.get("REGISTRY_AUTH_FILE").map(PathBuf::from));
        let mut login = Self::default();
        if let Some(file) = given {
            let what = || format!("reading credentials from {}", file.display());
            let bytes = read(&file).map_err(|error| SourceError::io(what(), error))?;
            if serde_json::from_slice::<serde_json::Map<_, _>>(&bytes).is_err() {
                return Err(SourceError::invalid(format!(
                    "{}: it does not have the format of Docker's config.json",
                    what()
                )));
            }
            login.look_into(&file, &bytes, name, environment)?;
            return Ok(login);
        }
        for file in usual_files(environment) {
            match read(&file) {
                Ok(bytes) if login.look_into(&file, &bytes, name, environment)? => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => login.trouble.push(format!("{}: {}", file.display(), cause(&error))),
            }
        }
        Ok(login)
    }

    /// Returns true if the file contains credentials for `name`. A credential helper without an answer is an error: an
    /// anonymous request in its place could get another image, or a misleading refusal.
    fn look_into(
        &mut self,
        file: &Path,
        bytes: &[u8],
        name: &Name,
        environment: &Environment,
    ) -> Result<bool, SourceError> {
        let key = key(bytes, name);
        let found = match helper_of(bytes, &key) {
            Some(helper) => helper::ask(&helper, &key, environment, helper::DEADLINE).map_err(|why| {
                SourceError::denied(format!("reading credentials from {}: {why}", file.display()))
                    .with_hint(format!("run it: echo {key} | docker-credential-{helper} get"))
            })?,
            None => match get_credential_from_reader(bytes, &key) {
                Ok(credential) => Some(credential),
                Err(error) => {
                    self.trouble.extend(trouble(&error).map(|why| format!("{}: {why}", file.display())));
                    None
                }
            },
        };
        let is_empty = |credential: &DockerCredential| matches!(credential, DockerCredential::UsernamePassword(user, password) if user.is_empty() && password.is_empty());
        let Some(credential) = found.filter(|credential| !is_empty(credential)) else { return Ok(false) };
        self.credential = Some(credential);
        self.file = Some(file.to_owned());
        Ok(true)
    }

    /// The credentials in use and the advice, for errors about `registry`.
    pub(super) fn access(&self, registry: &str) -> Access {
        let login = format!("'docker login {registry}' or 'podman login {registry}'");
        if let Some(file) = &self.file {
            let used = format!("with the credentials in {}", file.display());
            return Access {
                used,
                hint: format!("log in again with {login}, or give other credentials with --authfile"),
                anonymous: false,
                secrets: Secrets::of(self.credential.as_ref()),
            };
        }
        let mut used = "without credentials".to_owned();
        for trouble in &self.trouble {
            used.push_str("; ");
            used.push_str(trouble);
        }
        let hint = format!("log in with {login}, or give credentials with --authfile");
        Access { used, hint, anonymous: true, secrets: Secrets::default() }
    }
}

/// Podman's files in its order, followed by Docker's.
pub(super) fn usual_files(environment: &Environment) -> Vec<PathBuf> {
    let home = home(environment);
    let below = |variable: &str, path: &str| environment.get(variable).map(|folder| Path::new(folder).join(path));
    let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
    [
        below("XDG_RUNTIME_DIR", "containers/auth.json").or_else(run_folder),
        below("XDG_CONFIG_HOME", "containers/auth.json").or_else(|| below_home(".config/containers/auth.json")),
        below("DOCKER_CONFIG", "config.json").or_else(|| below_home(".docker/config.json")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The user's home folder.
pub(super) fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get("HOME").or_else(|| environment.get("USERPROFILE")).map(PathBuf::from)
}

/// Podman's file where no session manager has created a runtime folder, as in containers and for root.
#[cfg(target_os = "linux")]
fn run_folder() -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    Some(PathBuf::from(format!("/run/containers/{user}/auth.json")))
}

#[cfg(not(target_os = "linux"))]
fn run_folder() -> Option<PathBuf> {
    None
}

/// The key in the file that applies to `name`. `docker_credential` compares registries only; Podman also supports keys
/// for `REGISTRY/NAMESPACE`, of which the most specific one applies.
fn key(bytes: &[u8], name: &Name) -> String {
    let file: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let has = |table: &str, key: &str| {
        let entry = file.get(table).and_then(|table| table.get(key));
        // Docker leaves an empty entry where a credential store holds the secret.
        entry.is_some_and(|entry| !entry.as_object().is_some_and(serde_json::Map::is_empty))
    };
    let has_store = file.get("credsStore").is_some();
    let registry = name.registry();
    let mut candidates = Vec::new();
    let mut scope = format!("{registry}/{}", name.repository());
    while !scope.is_empty() {
        candidates.push(scope.clone());
        scope.truncate(scope.rfind('/').unwrap_or_default());
    }
    let hub = registry == "docker.io";
    if hub {
        candidates.extend([DOCKER_HUB, "index.docker.io", "registry-1.docker.io"].map(str::to_owned));
    }
    let found = candidates.into_iter().find(|key| has("credHelpers", key) || has("auths", key));
    // A credential store uses Docker's spelling of a registry; `docker_credential` tries the other spellings.
    found.unwrap_or_else(|| if hub && has_store { DOCKER_HUB } else { registry }.to_owned())
}

/// The suffix of the helper that holds the secret for a key, in Docker's order: the key's own helper, a secret in the
/// file, the store.
fn helper_of(bytes: &[u8], key: &str) -> Option<String> {
    let file: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let own = file.get("credHelpers").and_then(|helpers| helpers.get(key)).and_then(text);
    own.or_else(|| {
        let store = file.get("credsStore").and_then(text)?;
        let mut rest = file.clone();
        rest.as_object_mut()?.remove("credsStore");
        let without = get_credential_from_reader(rest.to_string().as_bytes(), key);
        matches!(without, Err(CredentialRetrievalError::NoCredentialConfigured)).then_some(store)
    })
}

/// The reason why the credentials in a file could not be read.
fn trouble(error: &CredentialRetrievalError) -> Option<&'static str> {
    use CredentialRetrievalError as E;
    match error {
        E::NoCredentialConfigured | E::ConfigNotFound => None,
        E::HelperFailure { .. } | E::HelperCommunicationError | E::MalformedHelperResponse => {
            Some("its credential helper failed")
        }
        E::CredentialDecodingError => Some("its 'auth' is not base64 of USER:PASSWORD"),
        E::CredentialMismatchError => Some("its 'auth' contradicts its 'username' and 'password'"),
        E::ConfigReadError => Some("it does not have the format of Docker's config.json"),
    }
}

pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let bytes = read_bounded(open_configured(file)?, LARGEST_FILE, "credentials");
    bytes.map_err(|mut error| error.cause.take().unwrap_or_else(|| io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_for(file: &str, name: &str) -> String {
        key(file.as_bytes(), &name.parse().unwrap())
    }

    fn credential(file: &str, name: &str) -> Option<(String, String)> {
        let mut login = Login::default();
        let environment = Environment::default();
        login.look_into(Path::new("auth.json"), file.as_bytes(), &name.parse().unwrap(), &environment).unwrap();
        match login.credential? {
            DockerCredential::UsernamePassword(user, password) => Some((user, password)),
            DockerCredential::IdentityToken(token) => Some(("<token>".to_owned(), token)),
        }
    }

    #[test]
    fn the_most_specific_key_applies() {
        let file =
            r#"{"auths": {"quay.io": {"auth": "x"}, "quay.io/a": {"auth": "x"}, "quay.io/a/b/c": {"auth": "x"}}}"#;
        assert_eq!(key_for(file, "quay.io/a/b:1"), "quay.io/a");
        assert_eq!(key_for(file, "quay.io/a/b/c:1"), "quay.io/a/b/c");
        assert_eq!(key_for(file, "quay.io/z:1"), "quay.io");
    }

    #[test]
    fn docker_hub_has_many_names() {
        for key in [DOCKER_HUB, "docker.io", "index.docker.io", "https://index.docker.io/v1", "registry-1.docker.io"] {
            let file = format!(r#"{{"auths": {{"{key}": {{"auth": "dTpw"}}}}}}"#);
            assert_eq!(credential(&file, "debian"), Some(("u".to_owned(), "p".to_owned())), "{key}");
            assert_eq!(credential(&file, "quay.io/debian"), None, "{key}");
            let helper = format!(r#"{{"credHelpers": {{"{key}": "h"}}}}"#);
            assert_eq!(key_for(&helper, "debian") == key, key != "https://index.docker.io/v1", "{key}");
        }
        let store = r#"{"auths": {"https://index.docker.io/v1/": {}}, "credsStore": "none"}"#;
        assert_eq!(key_for(store, "debian"), DOCKER_HUB);
    }

    #[test]
    fn identity_tokens_come_before_passwords() {
        let file = r#"{"auths": {"r.io": {"auth": "dTo=", "identitytoken": "t"}}}"#;
        assert_eq!(credential(file, "r.io/x").unwrap().1, "t");
    }

    #[test]
    fn a_user_or_a_password_alone_is_a_login() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (auth, expected) in [("dTo=", pair("u", "")), ("OnA=", pair("", "p")), ("Og==", None)] {
            let file = format!(r#"{{"auths": {{"r.io": {{"auth": "{auth}"}}}}}}"#);
            assert_eq!(credential(&file, "r.io/x"), expected, "{auth}");
        }
    }

    #[test]
    fn errors_are_reported_without_secrets() {
        let mut login = Login::default();
        let file = r#"{"auths": {"r.io": {"auth": "c2VjcmV0"}}}"#;
        let name = "r.io/x".parse().unwrap();
        let environment = Environment::default();
        assert!(!login.look_into(Path::new("auth.json"), file.as_bytes(), &name, &environment).unwrap());
        let used = login.access("r.io").used;
        assert_eq!(used, "without credentials; auth.json: its 'auth' is not base64 of USER:PASSWORD");
        login.credential = Some(DockerCredential::IdentityToken("secret".to_owned()));
        assert!(!format!("{login:?}").contains("secret"));
    }

    #[test]
    fn podman_before_docker() {
        let set = |variables: &[(&str, &str)]| {
            let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            usual_files(&owned.collect())
        };
        assert_eq!(
            set(&[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/u")]),
            ["/run/user/1/containers/auth.json", "/home/u/.config/containers/auth.json", "/home/u/.docker/config.json"]
                .map(PathBuf::from)
        );
        assert!(set(&[("DOCKER_CONFIG", "/d")]).contains(&PathBuf::from("/d/config.json")));
    }

    const NAME: &str = "r.io/a/b";
    /// `u:p`, and `:`.
    const ENTRY: &str = r#"{"auths": {"r.io": {"auth": "dTpw"}}}"#;
    const EMPTY: &str = r#"{"auths": {"r.io": {"auth": "Og=="}}}"#;

    fn find(authfile: Option<&Path>, variables: &[(&str, &Path)]) -> Result<Login, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.display().to_string()));
        let options = AccessOptions {
            cert_dir: None,
            authfile: authfile.map(Path::to_owned),
            tls_verify: true,
            limits: model::Limits::default(),
            environment: variables.collect(),
        };
        Login::find(&NAME.parse().unwrap(), &options).map_err(|error| error.to_string())
    }

    /// Writes files below a folder, and creates their parent folders.
    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_given_file_must_exist_and_be_json() {
        let folder = tempfile::tempdir().unwrap();
        let [good, list, text, missing] = ["good", "list", "text", "missing"].map(|name| folder.path().join(name));
        write(folder.path(), &[("good", ENTRY), ("list", "[]"), ("text", "u:p")]);
        for by_variable in [false, true] {
            let find = |file: &Path| {
                if by_variable {
                    find(None, &[("REGISTRY_AUTH_FILE", file)])
                } else {
                    find(Some(file), &[("REGISTRY_AUTH_FILE", &missing)])
                }
            };
            let login = find(&good).unwrap();
            assert_eq!(login.file.as_deref(), Some(&*good));
            assert!(!login.access("r.io").anonymous);
            for wrong in [&list, &text] {
                let error = find(wrong).unwrap_err();
                assert!(error.contains("it does not have the format of Docker's config.json"), "{error}");
            }
            let error = find(&missing).unwrap_err();
            assert!(error.contains("no such file or directory"), "{error}");
        }
    }

    #[test]
    fn default_files_are_searched_until_one_has_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let run = folder.path().join("run");
        let places = [("HOME", &*home), ("XDG_RUNTIME_DIR", &*run)];
        let file = || find(None, &places).unwrap().file;
        assert_eq!(file(), None);
        write(&home, &[(".docker/config.json", ENTRY)]);
        assert_eq!(file(), Some(home.join(".docker/config.json")));
        // An empty entry does not count.
        write(&home, &[(".config/containers/auth.json", EMPTY)]);
        assert_eq!(file(), Some(home.join(".docker/config.json")));
        write(&home, &[(".config/containers/auth.json", ENTRY)]);
        assert_eq!(file(), Some(home.join(".config/containers/auth.json")));
        write(&run, &[("containers/auth.json", ENTRY)]);
        assert_eq!(file(), Some(run.join("containers/auth.json")));
    }

    #[test]
    fn an_unreadable_file_is_reported_and_the_search_continues() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[(".config/containers/auth.json/x", ""), (".docker/config.json", "text")]);
        let login = find(None, &[("HOME", folder.path()), ("XDG_RUNTIME_DIR", folder.path())]).unwrap();
        let access = login.access("r.io");
        assert!(access.anonymous);
        let [podman, docker] = [".config/containers/auth.json", ".docker/config.json"]
            .map(|path| folder.path().join(path).display().to_string());
        assert!(access.used.contains(&format!("; {podman}: is a directory")), "{}", access.used);
        assert!(
            access.used.ends_with(&format!("; {docker}: it does not have the format of Docker's config.json")),
            "{}",
            access.used
        );
    }

    #[test]
    fn the_size_of_a_credentials_file_is_limited() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = ENTRY.as_bytes().to_vec();
        bytes.resize(4 << 20, b' ');
        std::fs::write(file.path(), &bytes).unwrap();
        assert!(find(Some(file.path()), &[]).is_ok());
        bytes.push(b' ');
        std::fs::write(file.path(), &bytes).unwrap();
        let error = find(Some(file.path()), &[]).err().unwrap();
        assert!(error.contains("more than 4194304 bytes"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn podman_stores_credentials_below_run_without_a_session() {
        let status = std::fs::read("/proc/self/status").unwrap();
        let status = String::from_utf8(status).unwrap();
        let user =
            status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap().split_whitespace().next().unwrap();
        let files = usual_files(&Environment::default());
        assert_eq!(files, [PathBuf::from(format!("/run/containers/{user}/auth.json"))]);
        let profile: Environment = [("USERPROFILE".to_owned(), "/u".to_owned())].into_iter().collect();
        assert!(usual_files(&profile).contains(&PathBuf::from("/u/.docker/config.json")));
    }

    #[test]
    fn a_helper_takes_precedence_and_an_empty_entry_is_ignored() {
        let file =
            r#"{"auths": {"r.io": {"auth": "x"}, "r.io/b": {}}, "credHelpers": {"r.io/a": "h"}, "credsStore": "s"}"#;
        assert_eq!(key_for(file, "r.io/a/b"), "r.io/a");
        assert_eq!(key_for(file, "r.io/b"), "r.io");
        // A credential store for all registries is queried for Docker Hub under Docker's key.
        assert_eq!(key_for(file, "debian"), DOCKER_HUB);
        assert_eq!(key_for(file, "other.io/debian"), "other.io");
        assert_eq!(key_for("{}", "debian"), "docker.io");
    }

    #[test]
    fn a_helper_without_an_answer_is_an_error() {
        for file in [r#"{"credHelpers": {"r.io": "a/b"}}"#, r#"{"credsStore": "a/b"}"#] {
            let name = NAME.parse().unwrap();
            let asked =
                Login::default().look_into(Path::new("auth.json"), file.as_bytes(), &name, &Environment::default());
            let expected =
                "reading credentials from auth.json: the name of its credential helper is not the name of a program";
            let error = asked.unwrap_err().to_string();
            assert!(error.starts_with(expected), "{file}: {error}");
        }
    }

    #[test]
    fn credential_errors_do_not_quote_the_helper() {
        use CredentialRetrievalError as E;
        let failure =
            E::HelperFailure { helper: "secret".to_owned(), stdout: "secret".to_owned(), stderr: "secret".to_owned() };
        for (error, why) in [
            (E::NoCredentialConfigured, None),
            (E::ConfigNotFound, None),
            (failure, Some("its credential helper failed")),
            (E::HelperCommunicationError, Some("its credential helper failed")),
            (E::MalformedHelperResponse, Some("its credential helper failed")),
            (E::CredentialDecodingError, Some("its 'auth' is not base64 of USER:PASSWORD")),
            (E::CredentialMismatchError, Some("its 'auth' contradicts its 'username' and 'password'")),
            (E::ConfigReadError, Some("it does not have the format of Docker's config.json")),
        ] {
            assert_eq!(trouble(&error), why);
        }
    }
}
