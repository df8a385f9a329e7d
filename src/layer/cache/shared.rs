//! Scans that a team shares: in S3, Google Cloud Storage, Azure, on a web server or in a folder. Anyone with write
//! access is trusted: an entry replaces the scan of the layer.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path as File;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, PutPayload, RetryConfig};
use tokio::runtime::Runtime;
use url::Url;

use crate::model::{Environment, cause};

use super::entry::MOST_STORED;

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of a look-up with all its retries. Few scans take longer.
const READ: Duration = Duration::from_secs(15);

/// Timeout of a write.
const WRITE: Duration = Duration::from_mins(1);

/// A cache at a URL. The first access connects.
pub struct SharedCache {
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

impl SharedCache {
    /// The cache at a URL or at the path of a folder.
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
            return Err(format!("{}: the URL of a cache must not contain credentials", hidden(&url)));
        }
        Ok(Self { url, environment: environment.clone(), patience: READ, opened: OnceLock::new() })
    }

    /// The bytes of one entry; `None` on a miss.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let opened = self.opened()?;
        opened.wait(self.patience, async {
            let found = match opened.store.get(&opened.at(name)).await {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(told(&error)),
            };
            let mut bytes = Vec::new();
            let mut pieces = found.into_stream();
            while let Some(piece) = pieces.next().await {
                bytes.extend_from_slice(&piece.map_err(|error| told(&error))?);
                // Too large for an entry, so this is something else.
                if bytes.len() as u64 > MOST_STORED {
                    return Ok(None);
                }
            }
            Ok(Some(bytes))
        })
    }

    /// Writes an entry.
    pub(super) fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), String> {
        let opened = self.opened()?;
        opened.wait(WRITE, async {
            let put = opened.store.put(&opened.at(name), PutPayload::from(bytes)).await;
            put.map(drop).map_err(|error| told(&error))
        })
    }

    fn opened(&self) -> Result<&OpenedStore, String> {
        self.opened.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<OpenedStore, String> {
        let (scheme, base) = ObjectStoreScheme::parse(&self.url).map_err(|error| error.to_string())?;
        // If a provider is installed already, it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new()
            .with_connect_timeout(CONNECT)
            .with_timeout(WRITE)
            .with_allow_http(self.url.scheme() == "http");
        let retry = RetryConfig { max_retries: 2, retry_timeout: READ, ..RetryConfig::default() };
        // The builders have the same methods, but no common trait.
        macro_rules! cloud {
            ($builder:ty, $prefix:literal) => {{
                let new = <$builder>::new().with_url(self.url.as_str()).with_client_options(client).with_retry(retry);
                let set = |builder: $builder, (name, value): (&str, &str)| match name.to_ascii_lowercase().parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                };
                self.environment.with_prefix($prefix).fold(new, set).build().map(|store| Box::new(store) as _)
            }};
        }
        let store: Result<Box<dyn ObjectStore>, _> = match scheme {
            ObjectStoreScheme::AmazonS3 => cloud!(AmazonS3Builder, "AWS_"),
            ObjectStoreScheme::GoogleCloudStorage => cloud!(GoogleCloudStorageBuilder, "GOOGLE_"),
            ObjectStoreScheme::MicrosoftAzure => cloud!(MicrosoftAzureBuilder, "AZURE_"),
            ObjectStoreScheme::Local => Ok(Box::new(LocalFileSystem::new()) as _),
            ObjectStoreScheme::Http => {
                let server = self.url.origin().ascii_serialization();
                let new = HttpBuilder::new().with_url(server).with_client_options(client).with_retry(retry);
                new.build().map(|store| Box::new(store) as _)
            }
            _ => return Err("the kind of object store is unknown".to_owned()),
        };
        let store = store.map_err(|error| told(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(OpenedStore { store, base, runtime })
    }
}

impl OpenedStore {
    fn at(&self, name: &str) -> Path {
        name.split('/').fold(self.base.clone(), Path::join)
    }

    fn wait<T>(&self, limit: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.runtime.block_on(async {
            let done = tokio::time::timeout(limit, work).await;
            done.unwrap_or_else(|_elapsed| Err(format!("no response within {} seconds", limit.as_secs())))
        })
    }
}

impl fmt::Display for SharedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hidden(&self.url))
    }
}

impl fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({self})")
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

/// Formats an error with its causes on one line, shortened: some servers answer with a whole page.
fn told(error: &object_store::Error) -> String {
    const SHOWN: usize = 400;
    let mut innermost: &dyn Error = error;
    loop {
        if let Some(system) = innermost.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some()) {
            return cause(system);
        }
        // An I/O error hides the error that it wraps, and returns that error's source as its own.
        let wrapped = innermost.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let Some(below) = wrapped.map(|error| error as &dyn Error).or_else(|| innermost.source()) else { break };
        innermost = below;
    }
    let mut line = innermost.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

#[cfg(test)]
mod tests;
