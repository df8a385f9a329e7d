//! Connects to a store, and puts its errors into words.

use std::error::Error;
use std::io;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use model::{Environment, cause};

use super::{OpenedStore, READ, WRITE};

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// Opens the store at a URL.
pub(super) fn open(url: &Url, environment: &Environment) -> Result<OpenedStore, String> {
    let (scheme, base) = ObjectStoreScheme::parse(url).map_err(|error| error.to_string())?;
    // If a provider is installed already, it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client =
        ClientOptions::new().with_connect_timeout(CONNECT).with_timeout(WRITE).with_allow_http(url.scheme() == "http");
    let retry = RetryConfig { max_retries: 2, retry_timeout: READ, ..RetryConfig::default() };
    // The builders have the same methods, but no common trait.
    macro_rules! cloud {
        ($builder:ty, $prefix:literal) => {{
            let new = <$builder>::new().with_url(url.as_str()).with_client_options(client).with_retry(retry);
            let set = |builder: $builder, (name, value): (&str, &str)| match name.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            };
            environment.with_prefix($prefix).fold(new, set).build().map(|store| Box::new(store) as _)
        }};
    }
    let store: Result<Box<dyn ObjectStore>, _> = match scheme {
        ObjectStoreScheme::AmazonS3 => cloud!(AmazonS3Builder, "AWS_"),
        ObjectStoreScheme::GoogleCloudStorage => cloud!(GoogleCloudStorageBuilder, "GOOGLE_"),
        ObjectStoreScheme::MicrosoftAzure => cloud!(MicrosoftAzureBuilder, "AZURE_"),
        ObjectStoreScheme::Local => Ok(Box::new(LocalFileSystem::new()) as _),
        ObjectStoreScheme::Http => {
            let server = url.origin().ascii_serialization();
            let new = HttpBuilder::new().with_url(server).with_client_options(client).with_retry(retry);
            new.build().map(|store| Box::new(store) as _)
        }
        _ => return Err("the kind of object store is unknown".to_owned()),
    };
    let store = store.map_err(|error| error_line(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    Ok(OpenedStore { store, base, runtime })
}

/// Formats an error with its causes on one line, shortened: some servers answer with a whole page.
pub(super) fn error_line(error: &object_store::Error) -> String {
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
