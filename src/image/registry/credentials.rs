//! Who we are to a registry: what `docker login`, `podman login` and credential helpers left behind
//! (containers-auth.json(5); Docker's `config.json`).

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_spec::distribution::Reference as Name;

use super::response_error::Access;
use crate::image::source::{AccessOptions, SourceError, read_bounded};
use crate::model::Environment;

/// No credentials file is larger.
const LARGEST_FILE: u64 = 4 << 20;

/// Under what Docker keeps the credentials of its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The credentials for one registry, and where they come from.
#[derive(Default)]
pub(super) struct Login {
    pub(super) credential: Option<DockerCredential>,
    file: Option<PathBuf>,
    /// Credentials that were there and could not be had.
    trouble: Vec<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("file", &self.file).field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Login {
    /// Searches the given file, or all usual ones until one has credentials for the registry of `name`.
    pub(super) fn find(name: &Name, options: &AccessOptions) -> Result<Self, SourceError> {
        let environment = &options.environment;
        let given = options.authfile.clone().or_else(|| environment.get("REGISTRY_AUTH_FILE").map(PathBuf::from));
        let mut login = Self::default();
        if let Some(file) = given {
            let what = || format!("reading credentials from {}", file.display());
            let bytes = read(&file).map_err(|error| SourceError::io(what(), error))?;
            if serde_json::from_slice::<serde_json::Map<_, _>>(&bytes).is_err() {
                return Err(SourceError::invalid(format!("{}: it is not JSON as Docker's config.json is", what())));
            }
            login.look_into(&file, &bytes, name);
            return Ok(login);
        }
        for file in usual_files(environment) {
            match read(&file) {
                Ok(bytes) if login.look_into(&file, &bytes, name) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => login.trouble.push(format!("{}: {error}", file.display())),
            }
        }
        Ok(login)
    }

    /// True when the file settled it.
    fn look_into(&mut self, file: &Path, bytes: &[u8], name: &Name) -> bool {
        match get_credential_from_reader(bytes, &key(bytes, name)) {
            Ok(DockerCredential::UsernamePassword(user, password)) if user.is_empty() && password.is_empty() => false,
            Ok(credential) => {
                self.credential = Some(credential);
                self.file = Some(file.to_owned());
                true
            }
            Err(error) => {
                self.trouble.extend(trouble(&error).map(|why| format!("{}: {why}", file.display())));
                false
            }
        }
    }

    /// For errors about `registry`: with what we asked, and what to do about it.
    pub(super) fn access(&self, registry: &str) -> Access {
        let login = format!("'docker login {registry}' or 'podman login {registry}'");
        if let Some(file) = &self.file {
            let used = format!("with the credentials in {}", file.display());
            return Access {
                used,
                hint: format!("log in again with {login}, or give other credentials with --authfile"),
                anonymous: false,
            };
        }
        let mut used = "without credentials".to_owned();
        for trouble in &self.trouble {
            used.push_str("; ");
            used.push_str(trouble);
        }
        let hint = format!("log in with {login}, or give credentials with --authfile");
        Access { used, hint, anonymous: true }
    }
}

/// Podman's files in its order, then Docker's.
fn usual_files(environment: &Environment) -> Vec<PathBuf> {
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

/// The user's home.
pub(super) fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get("HOME").or_else(|| environment.get("USERPROFILE")).map(PathBuf::from)
}

/// Podman's file where no session manager made a runtime folder, as in containers and for root.
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

/// The key in the file that concerns `name`. `docker_credential` compares registries only; Podman also knows keys for
/// `REGISTRY/NAMESPACE`, and the most specific one holds.
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
    while scope.len() > registry.len() {
        candidates.push(scope.clone());
        scope.truncate(scope.rfind('/').unwrap_or_default());
    }
    let hub = registry == "docker.io";
    candidates.push(registry.to_owned());
    if hub {
        candidates.extend([DOCKER_HUB, "index.docker.io", "registry-1.docker.io"].map(str::to_owned));
    }
    let found = candidates.into_iter().find(|key| has("credHelpers", key) || has("auths", key));
    // A credential store is asked for a registry as Docker spells it; other spellings are docker_credential's business.
    found.unwrap_or_else(|| if hub && has_store { DOCKER_HUB } else { registry }.to_owned())
}

/// What to say of credentials that could not be had. Never what a helper printed: it may be the secret.
fn trouble(error: &CredentialRetrievalError) -> Option<String> {
    use CredentialRetrievalError as E;
    match error {
        E::NoCredentialConfigured | E::ConfigNotFound => None,
        // Fixed by Docker's credential-helper protocol.
        E::HelperFailure { stdout, .. } if stdout.contains("credentials not found") => None,
        E::HelperFailure { helper, .. } => Some(format!("the credential helper {helper} failed")),
        E::HelperCommunicationError => Some("its credential helper could not be run".to_owned()),
        E::MalformedHelperResponse => Some("its credential helper answered no credentials".to_owned()),
        E::CredentialDecodingError => Some("its 'auth' is not base64 of USER:PASSWORD".to_owned()),
        E::CredentialMismatchError => Some("its 'auth' contradicts its 'username' and 'password'".to_owned()),
        E::ConfigReadError => Some("it is not JSON as Docker's config.json is".to_owned()),
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    match read_bounded(File::open(file)?, LARGEST_FILE, "credentials") {
        Ok(bytes) => Ok(bytes),
        Err(SourceError::Io { error, .. }) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_for(file: &str, name: &str) -> String {
        key(file.as_bytes(), &name.parse().unwrap())
    }

    fn credential(file: &str, name: &str) -> Option<(String, String)> {
        let mut login = Login::default();
        login.look_into(Path::new("auth.json"), file.as_bytes(), &name.parse().unwrap());
        match login.credential? {
            DockerCredential::UsernamePassword(user, password) => Some((user, password)),
            DockerCredential::IdentityToken(token) => Some(("<token>".to_owned(), token)),
        }
    }

    #[test]
    fn the_most_specific_key_holds() {
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
    fn trouble_is_told_and_secrets_are_not() {
        let mut login = Login::default();
        let file = r#"{"auths": {"r.io": {"auth": "c2VjcmV0"}}}"#;
        assert!(!login.look_into(Path::new("auth.json"), file.as_bytes(), &"r.io/x".parse().unwrap()));
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
}
