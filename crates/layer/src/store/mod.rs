//! Named objects in a folder, in S3, Google Cloud Storage or Azure, or on a web server. A shared cache of scans and an
//! audit are kept in them.
//!
//! Objects are whole or absent. [`ObjectFolder::create`] writes an object only if none has its name: of several
//! processes that create the same object, exactly one succeeds. [`lease`] builds on that alone.

mod connect;
pub mod lease;

use std::fmt;
use std::future::Future;
use std::path::{Path as File, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use tokio::runtime::Runtime;
use url::Url;

use model::Environment;

use connect::error_line;

/// Timeout of a look-up with all its retries. Few objects take longer.
const READ: Duration = Duration::from_secs(15);

/// Timeout of a write, and of a list.
const WRITE: Duration = Duration::from_mins(1);

/// Number of objects that are read at once.
const AT_ONCE: usize = 32;

/// Variables that name files with credentials of the cloud providers.
const CREDENTIALS: [&str; 6] = [
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "AZURE_FEDERATED_TOKEN_FILE",
];

/// Where gcloud keeps the default credentials, below the home folder.
const GOOGLE: &str = ".config/gcloud/application_default_credentials.json";

/// Where Kubernetes mounts tokens. It replaces them while a program runs.
const SECRETS: [&str; 2] = ["/var/run/secrets", "/run/secrets"];

/// A folder of objects at a URL. The first access connects.
pub struct ObjectFolder {
    url: Url,
    /// Credentials and settings of the cloud providers, under their usual names.
    environment: Environment,
    /// Timeout of a look-up.
    patience: Duration,
    opened: OnceLock<Result<OpenedStore, String>>,
}

struct OpenedStore {
    store: Box<dyn ObjectStore>,
    base: Path,
    runtime: Runtime,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The name, relative to the store.
    pub name: String,
    /// Time of the last write, by the clock of the store.
    pub modified: SystemTime,
}

impl ObjectFolder {
    /// The store at a URL or at the path of a folder.
    ///
    /// # Errors
    /// The URL is malformed, contains credentials, or has another scheme than `s3`, `gs`, `az`, `file`, `http` and
    /// `https`.
    pub fn new(place: &str, environment: &Environment) -> Result<Self, String> {
        let url = if place.contains("://") {
            Url::parse(place).map_err(|error| format!("{place} is not a URL: {error}"))?
        } else {
            let path = std::path::absolute(File::new(place)).map_err(|error| format!("{place}: {error}"))?;
            Url::from_directory_path(&path).map_err(|()| format!("{place} is not a path"))?
        };
        match url.scheme() {
            "s3" | "gs" | "az" | "file" | "http" | "https" => {}
            other => {
                let why = "use s3://, gs://, az://, file://, http://, https:// or a folder";
                return Err(format!("{place}: unsupported scheme {other}://; {why}"));
            }
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("{}: the URL must not contain credentials", hidden(&url)));
        }
        Ok(Self { url, environment: environment.clone(), patience: READ, opened: OnceLock::new() })
    }

    /// The same store with another timeout of look-ups.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The folder of a store that is a folder; `None` for one on a network.
    pub fn folder(&self) -> Option<PathBuf> {
        (self.url.scheme() == "file").then(|| self.url.to_file_path().ok()).flatten()
    }

    /// The files with the credentials of a store on a network, as far as the environment names them.
    pub fn credentials(&self) -> Vec<PathBuf> {
        let named = CREDENTIALS.iter().filter_map(|name| self.environment.get(name)).map(PathBuf::from);
        let home = self.environment.get("HOME").map(|home| PathBuf::from(home).join(GOOGLE));
        named.chain(home).chain(SECRETS.map(PathBuf::from)).collect()
    }

    /// Returns true if objects can be created only where none is. Web servers have no such request.
    pub fn has_create(&self) -> bool {
        !matches!(self.url.scheme(), "http" | "https")
    }

    /// The bytes of an object; `None` if there is none, or if it has more than `most` bytes and so is something else.
    ///
    /// # Errors
    /// The store refuses the request or does not answer in time.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let opened = self.opened()?;
        opened.wait(self.patience, opened.get(name, most))
    }

    /// The bytes of objects in the order of their names, as [`Self::read`] returns them; several are read at once.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn read_all(&self, names: &[String], most: u64) -> Result<Vec<Option<Vec<u8>>>, String> {
        let opened = self.opened()?;
        let count = u32::try_from(names.len() / AT_ONCE).unwrap_or(u32::MAX);
        let gets = futures_util::stream::iter(names).map(|name| opened.get(name, most)).buffered(AT_ONCE);
        opened.wait(self.patience.saturating_mul(count.saturating_add(1)), gets.try_collect())
    }

    /// Writes an object, also in place of another.
    ///
    /// # Errors
    /// The store refuses the request or does not answer in time.
    pub fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), String> {
        let opened = self.opened()?;
        opened.wait(WRITE, async {
            let put = opened.store.put(&opened.at(name), PutPayload::from(bytes)).await;
            put.map(drop).map_err(|error| error_line(&error))
        })
    }

    /// Writes an object if none has this name; returns false if one has.
    ///
    /// # Errors
    /// As of [`Self::write`]. The object may have been written nevertheless, if the answer was lost.
    pub fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool, String> {
        let opened = self.opened()?;
        opened.wait(WRITE, async {
            let mode = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match opened.store.put_opts(&opened.at(name), PutPayload::from(bytes), mode).await {
                Ok(_) => Ok(true),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
                Err(error) => Err(error_line(&error)),
            }
        })
    }

    /// The objects below a folder, sorted by name; empty if there is no such folder.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn list(&self, folder: &str) -> Result<Vec<ListedObject>, String> {
        let opened = self.opened()?;
        let prefix = opened.at(folder);
        let listed = opened
            .store
            .list(Some(&prefix))
            .map_ok(|meta| ListedObject { name: opened.relative(&meta.location), modified: meta.last_modified.into() });
        let found: Result<Vec<_>, _> = opened.wait(WRITE, async { Ok(listed.try_collect().await) })?;
        let mut found = match found {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error_line(&error)),
        };
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The names of the folders in the store, sorted.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn folders(&self) -> Result<Vec<String>, String> {
        let opened = self.opened()?;
        let found = opened.wait(WRITE, async { Ok(opened.store.list_with_delimiter(Some(&opened.base)).await) })?;
        match found {
            Ok(found) => {
                let mut names: Vec<_> = found.common_prefixes.iter().map(|path| opened.relative(path)).collect();
                names.sort();
                Ok(names)
            }
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error_line(&error)),
        }
    }

    fn opened(&self) -> Result<&OpenedStore, String> {
        self.opened.get_or_init(|| connect::open(&self.url, &self.environment)).as_ref().map_err(Clone::clone)
    }
}

impl OpenedStore {
    fn at(&self, name: &str) -> Path {
        name.split('/').filter(|part| !part.is_empty()).fold(self.base.clone(), Path::join)
    }

    /// The name of a path in the store.
    fn relative(&self, path: &Path) -> String {
        let below = path.prefix_match(&self.base);
        below.map_or_else(
            || path.to_string(),
            |parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"),
        )
    }

    async fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let found = match self.store.get(&self.at(name)).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error_line(&error)),
        };
        let mut bytes = Vec::new();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| error_line(&error))?);
            if bytes.len() as u64 > most {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    fn wait<T>(&self, limit: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.runtime.block_on(async {
            let done = tokio::time::timeout(limit, work).await;
            done.unwrap_or_else(|_elapsed| Err(format!("no response within {} seconds", limit.as_secs())))
        })
    }
}

impl fmt::Display for ObjectFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hidden(&self.url))
    }
}

impl fmt::Debug for ObjectFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectFolder({self})")
    }
}

/// Removes credentials and the query string, which may hold a signature, from a URL before it is shown.
fn hidden(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for URLs without a user or password.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.to_string()
}

#[cfg(test)]
mod tests;
