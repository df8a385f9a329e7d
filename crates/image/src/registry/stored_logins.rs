//! The registries that a machine has credentials for, without the credentials.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::credentials::{read, usual_files};
use crate::source::AccessOptions;
use model::cause;

/// Credentials for one registry, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogin {
    /// The registry, or the registry and a namespace; `*` for all registries of a credential store.
    pub registry: String,
    /// The file that names it.
    pub file: PathBuf,
    /// The suffix of the program `docker-credential-NAME` that holds the secret; `None` if the file does.
    pub helper: Option<String>,
}

/// The credentials of the files that registries are opened with, and the reason for each file that cannot be read.
pub fn stored_logins(options: &AccessOptions) -> (Vec<StoredLogin>, Vec<(PathBuf, String)>) {
    let given = options.authfile.clone().or_else(|| options.environment.get("REGISTRY_AUTH_FILE").map(PathBuf::from));
    let files = given.map_or_else(|| usual_files(&options.environment), |file| vec![file]);
    let mut logins = Vec::new();
    let mut unreadable = Vec::new();
    for file in files {
        match read(&file) {
            Ok(bytes) => match serde_json::from_slice::<Map<String, Value>>(&bytes) {
                Ok(document) => logins.extend(of_file(&document).map(|(registry, helper)| StoredLogin {
                    registry,
                    file: file.clone(),
                    helper,
                })),
                Err(_wrong) => {
                    let why = "it does not have the format of Docker's config.json".to_owned();
                    unreadable.push((file, why));
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unreadable.push((file, cause(&error))),
        }
    }
    (logins, unreadable)
}

/// The registries of a file, each with the helper that holds its secret.
fn of_file(document: &Map<String, Value>) -> impl Iterator<Item = (String, Option<String>)> {
    let table = |name: &str| document.get(name).and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    // Docker leaves an empty entry where a credential store holds the secret.
    let has_secret = |entry: &Value| entry.as_object().is_some_and(|entry| !entry.is_empty());
    let own = table("auths").filter(move |(_, entry)| has_secret(entry)).map(|(registry, _)| (registry.clone(), None));
    let helped = table("credHelpers").map(move |(registry, helper)| (registry.clone(), text(helper)));
    let store = document.get("credsStore").map(|helper| ("*".to_owned(), text(helper)));
    own.chain(helped).chain(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_listed_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let text = r#"{"auths": {"a.io": {"auth": "c2VjcmV0"}, "b.io": {}}, "credHelpers": {"c.io": "gcr"}, "credsStore": "pass"}"#;
        std::fs::write(&file, text).unwrap();
        let options = |file: PathBuf| AccessOptions { authfile: Some(file), ..AccessOptions::default() };
        let (logins, unreadable) = stored_logins(&options(file.clone()));
        assert!(unreadable.is_empty() && !format!("{logins:?}").contains("c2VjcmV0"));
        let listed: Vec<_> = logins.iter().map(|login| (&*login.registry, login.helper.as_deref())).collect();
        assert_eq!(listed, [("a.io", None), ("c.io", Some("gcr")), ("*", Some("pass"))]);
        std::fs::write(&file, "[]").unwrap();
        assert_eq!(stored_logins(&options(file)).1.len(), 1);
        assert_eq!(stored_logins(&options(folder.path().join("none"))), (Vec::new(), Vec::new()));
    }
}
