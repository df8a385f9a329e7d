//! Images that an engine holds, over Docker's API (Docker Engine API, v1.40 and later; Podman implements v1.41). The
//! engine packs an image into one tar stream, as `docker save` does, which is read as it arrives. That takes minutes for
//! a large image, so a known image is not exported, nor one whose store is readable here.
//!
//! The client library is asynchronous, and its runtime does not leave this module. Every request has its own runtime on
//! the caller's thread, so nothing runs between requests.

mod candidates;
mod context;
mod endpoint;
mod engine_error;
mod export;
mod folders;
pub(super) mod medium;
mod needs;
mod ssh;
mod store;
mod transport;
mod tunnel;
mod unverified;

use std::fmt;
use std::fs;
use std::future::Future;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ImageInspect, SystemVersion};
use bollard::query_parameters::ListImagesOptions;
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};

use model::{Digest, Environment, Limits, Platform, printable};

pub use self::candidates::endpoints;
pub use self::endpoint::{Address, Endpoint};
pub use self::folders::EngineFolders;
pub use self::transport::Streaming;

pub use self::engine_error::EngineError;
use self::engine_error::message;
use self::export::Export;
pub(super) use self::needs::needs;
use self::ssh::SshTarget;
use self::transport::EngineTransport;
use self::tunnel::Tunnel;
use super::source::{AccessOptions, SourceError, SourceErrorKind};

/// Time limit for an engine to identify itself.
const GREETING: Duration = Duration::from_secs(30);
/// Time limit for an engine to stay silent while it works. Before the first byte of an export Docker's graph drivers
/// and Podman write the whole archive to disk; Podman sums the sizes of all files of an image.
const PATIENCE: Duration = Duration::from_mins(30);
/// The first API version whose export takes a platform (Docker 28).
const PLATFORM_API: (u32, u32) = (1, 48);

/// An engine that answered.
pub struct Engine {
    docker: Docker,
    transport: EngineTransport,
    endpoint: Endpoint,
    /// `Docker` or `Podman`.
    product: &'static str,
    version: String,
    api: (u32, u32),
    /// The connection to another machine; open as long as the engine.
    _tunnel: Option<Tunnel>,
}

/// An engine's description of an image that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalImage {
    /// The image ID: the digest of the configuration, or of the index where containerd stores the images.
    pub id: Digest,
    /// Names with a tag, in the engine's spelling.
    pub tags: Vec<String>,
    /// Names with the digest that the registry assigned.
    pub digests: Vec<String>,
    /// The platform, if the engine reports it.
    pub platform: Option<Platform>,
    /// Size of the unpacked layers in bytes, if the engine reports it. An export is about as large.
    pub size: Option<u64>,
}

impl Engine {
    /// Connects to the first endpoint where an engine answers.
    pub fn connect(options: &AccessOptions) -> Result<Self, SourceError> {
        let mut tried = Vec::new();
        for endpoint in endpoints(&options.environment) {
            match Self::greet(&endpoint, &options.limits) {
                Ok(engine) => return Ok(engine),
                Err(error) => tried.push((endpoint, error)),
            }
        }
        Err(no_engine(&tried))
    }

    /// Name, version and address: `Docker 28.2.2 at unix:///var/run/docker.sock`.
    pub fn describe(&self) -> String {
        format!("{} {} at {}", self.product, self.version, self.endpoint.text)
    }

    /// Returns true if the engine certainly runs on this machine.
    pub const fn is_local(&self) -> bool {
        matches!(self.endpoint.address, Address::Unix(_))
    }

    /// The API client. Its answers have at most `limits.engine_answer` bytes.
    pub const fn client(&self) -> &Docker {
        &self.docker
    }

    /// A client for one request whose answer is a stream of any length.
    pub fn streaming(&self) -> Result<Streaming, EngineError> {
        self.transport.streaming()
    }

    /// Looks up the image `name`: a name with or without tag or digest, or an ID.
    pub fn find(&self, name: &str) -> Result<LocalImage, SourceError> {
        let image = self.inspect(name)?;
        let odd = |what: &str| {
            SourceError::invalid(format!("the answer from {} about '{}' {what}", self.describe(), printable(name)))
        };
        let id = image.id.ok_or_else(|| odd("has no image ID"))?;
        let id = if id.contains(':') { id } else { format!("sha256:{id}") };
        // Engines before API 1.43 write `<none>` for a missing name.
        let named = |names: Option<Vec<String>>| {
            names.unwrap_or_default().into_iter().filter(|name| !name.contains("<none>")).collect()
        };
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(LocalImage {
            id: id.parse().map_err(|error| odd(&format!("has an invalid image ID: {error}")))?,
            tags: named(image.repo_tags),
            digests: named(image.repo_digests),
            platform: some(image.os).zip(some(image.architecture)).map(|(os, architecture)| Platform {
                os,
                architecture,
                variant: some(image.variant),
            }),
            size: image.size.and_then(|size| u64::try_from(size).ok()),
        })
    }

    /// Exports the image as `docker save` does. `platform` selects among several if the API supports it; otherwise the
    /// engine sends what it has, and the caller compares.
    pub fn export(&self, name: &str, platform: Option<&Platform>) -> Result<Box<dyn Read + Send>, SourceError> {
        check_name(name)?;
        let last = name.rsplit('/').next().unwrap_or_default();
        // A name without a tag means all its tags in an export, and `latest` everywhere else (Engine API, ImageGet).
        let id = if last.contains([':', '@']) { None } else { Some(self.find(name)?.id) };
        let platform = platform.filter(|_| self.api >= PLATFORM_API);
        let open = || {
            let Streaming { docker, allowance } = self.streaming()?;
            let docker = match platform {
                Some(platform) => with_platform(docker, platform),
                None => docker,
            };
            let frames = docker.export_image(id.as_ref().map_or(name, Digest::as_str));
            let frames = Box::pin(frames.inspect(move |_frame| allowance.renew()));
            Export::open(runtime()?, frames, PATIENCE)
        };
        match open() {
            Ok(export) => Ok(Box::new(export)),
            Err(error) if error.kind == SourceErrorKind::NotFound && platform.is_none() => Err(self.missing(name)),
            Err(error) => {
                let platform = platform.map(|platform| format!(" for {platform}")).unwrap_or_default();
                Err(error.into_error(&format!("cannot export '{name}'{platform} from {}", self.describe())))
            }
        }
    }

    /// The folder in which an engine on this machine keeps everything, and the name of its storage driver; `None` if it
    /// does not report them.
    fn root(&self) -> Option<(PathBuf, String)> {
        if self.is_local() { root(&self.docker) } else { None }
    }

    /// The names of all images, each with its tag; an image without a name by its ID.
    pub fn images(&self) -> Result<Vec<String>, SourceError> {
        let listed = ask(PATIENCE, self.docker.list_images(None::<ListImagesOptions>))
            .map_err(|error| error.into_error(&format!("cannot list the images of {}", self.describe())))?;
        let mut names = Vec::new();
        for image in listed {
            let tags: Vec<_> = image.repo_tags.into_iter().filter(|tag| !tag.contains("<none>")).collect();
            if tags.is_empty() { names.push(image.id) } else { names.extend(tags) }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn inspect(&self, name: &str) -> Result<ImageInspect, SourceError> {
        check_name(name)?;
        ask(PATIENCE, self.docker.inspect_image(name)).map_err(|error| match error.kind {
            SourceErrorKind::NotFound => self.missing(name),
            _ => error.into_error(&format!("cannot query {} for '{name}'", self.describe())),
        })
    }

    fn missing(&self, name: &str) -> SourceError {
        let command = self.product.to_lowercase();
        SourceError::not_found(format!(
            "{} has no image '{name}': fetch it with {command} pull {name}, or name its registry with docker://{name}",
            self.describe()
        ))
    }

    /// Identifies the engine at `endpoint`. No API version is negotiated: the library's requests name none (bollard
    /// 0.21 drops it from the path), so each engine answers with its newest API.
    fn greet(endpoint: &Endpoint, limits: &Limits) -> Result<Self, EngineError> {
        let tunnel = match &endpoint.address {
            Address::Ssh(target) => Some(tunnel(target)?),
            _ => None,
        };
        let transport = transport(&endpoint.address, tunnel.as_ref(), limits)?;
        let docker = transport.client()?;
        let version = ask(GREETING, docker.version()).map_err(|error| explained(error, tunnel.as_ref()))?;
        let api = version.api_version.as_deref().and_then(numbers);
        let api = api.ok_or_else(|| EngineError::new(SourceErrorKind::Invalid, "another service answers there"))?;
        let endpoint = endpoint.clone();
        let product = product(&version);
        Ok(Self {
            docker,
            transport,
            endpoint,
            product,
            version: message(&version.version.unwrap_or_default()),
            api,
            _tunnel: tunnel,
        })
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({}, API {}.{})", self.describe(), self.api.0, self.api.1)
    }
}

/// Asks every endpoint for the engine there: its name, version and address, or why there is none.
pub fn survey(environment: &Environment) -> Vec<(Endpoint, Result<String, EngineError>)> {
    let asked = endpoints(environment).into_iter().map(|endpoint| {
        let answer =
            Engine::greet(&endpoint, &Limits::default()).map(|engine| format!("{} {}", engine.product, engine.version));
        (endpoint, answer)
    });
    asked.collect()
}

/// Opens a socket that leads to an engine through ssh.
fn tunnel(target: &SshTarget) -> Result<Tunnel, EngineError> {
    let target = target.clone();
    Tunnel::open(move || target.command()).map_err(|error| EngineError::from(&error))
}

/// Adds what ssh, or the program that it started, wrote about a failure.
fn explained(error: EngineError, tunnel: Option<&Tunnel>) -> EngineError {
    match tunnel.and_then(Tunnel::complaint) {
        Some(complaint) => EngineError::new(SourceErrorKind::Unreachable, message(&complaint)),
        None => error,
    }
}

/// The way to an address, or to the socket that leads there. Sends nothing.
fn transport(address: &Address, tunnel: Option<&Tunnel>, limits: &Limits) -> Result<EngineTransport, EngineError> {
    if let Address::Unix(path) = address {
        fs::metadata(path).map_err(|error| EngineError::from(&error))?;
    }
    EngineTransport::new(address, tunnel.map(Tunnel::path).as_deref(), limits)
}

/// Where the engine of this client keeps everything, and the name of its storage driver.
fn root(docker: &Docker) -> Option<(PathBuf, String)> {
    let info = ask(GREETING, docker.info()).ok()?;
    let root = info.docker_root_dir.map(PathBuf::from).filter(|root| root.is_absolute())?;
    Some((root, info.driver?))
}

/// A client whose requests carry a platform. The library's export has no such parameter.
fn with_platform(docker: Docker, platform: &Platform) -> Docker {
    use std::fmt::Write as _;

    let mut json = serde_json::json!({ "os": platform.os, "architecture": platform.architecture });
    if let (Some(variant), Some(object)) = (&platform.variant, json.as_object_mut()) {
        object.insert("variant".to_owned(), variant.as_str().into());
    }
    let query = json.to_string().bytes().fold(String::new(), |mut query, byte| {
        // Writing to a String cannot fail.
        let _ = write!(query, "%{byte:02X}");
        query
    });
    docker.with_request_modifier(move |mut request| {
        if let Ok(uri) = format!("{}?platform={query}", request.uri()).parse() {
            *request.uri_mut() = uri;
        }
        request
    })
}

/// Accepts only characters of names and IDs: the library puts the name into the request's path unescaped.
fn check_name(name: &str) -> Result<(), SourceError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b':' | b'@');
    let whole = |part: &str| !part.is_empty() && !part.bytes().all(|b| b == b'.');
    if name.bytes().all(plain) && name.split('/').all(whole) {
        return Ok(());
    }
    Err(SourceError::invalid(format!("'{}' is neither the name nor the ID of an image", printable(name))))
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn product(version: &SystemVersion) -> &'static str {
    let podman = version.components.iter().flatten().any(|component| component.name.starts_with("Podman"));
    if podman { "Podman" } else { "Docker" }
}

/// Runs one request with a time limit.
pub fn ask<T>(limit: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, EngineError> {
    match runtime()?.block_on(async { tokio::time::timeout(limit, request).await }) {
        Ok(answer) => answer.map_err(|error| EngineError::from(&error)),
        Err(_) => {
            Err(EngineError::new(SourceErrorKind::Unreachable, format!("no answer within {} seconds", limit.as_secs())))
        }
    }
}

fn runtime() -> Result<Runtime, EngineError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| EngineError::new(SourceErrorKind::Invalid, format!("cannot start the client: {error}")))
}

/// The error when no endpoint answers: one sentence for one endpoint, a list for several.
fn no_engine(tried: &[(Endpoint, EngineError)]) -> SourceError {
    let what = match tried {
        [(endpoint, error)] => format!("no engine answers at {endpoint}: {}", error.text),
        several => several.iter().fold("no engine answers at any of".to_owned(), |text, (endpoint, error)| {
            format!("{text}\n    {endpoint}: {}", error.text)
        }),
    };
    if tried.iter().any(|(_, error)| error.kind == SourceErrorKind::Denied) {
        let hint = "use sudo, or join the socket's group (Docker's: sudo usermod -aG docker \"$USER\", then log in \
                    again), or set DOCKER_HOST to the socket of a rootless engine";
        return SourceError::denied(what).with_hint(hint.to_owned());
    }
    let hint = match tried {
        // The error's text says what to do.
        [(Endpoint { address: Address::Unusable(_), .. }, _)] => None,
        [(Endpoint { address: Address::Http(_), .. }, _)] => Some(
            "start it there; if it requires TLS, set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder of \
             ca.pem, cert.pem and key.pem"
                .to_owned(),
        ),
        [(Endpoint { address: Address::Tls { certificates, .. }, .. }, _)] => {
            let folder = certificates.to_string_lossy();
            Some(format!("start it there, or check ca.pem, cert.pem and key.pem in {}", printable(&folder)))
        }
        [(Endpoint { address: Address::Ssh(target), .. }, _)] => {
            Some(format!("try: ssh {target} docker version; it must work with a key and without a password"))
        }
        _ => Some(
            "start it (systemctl start docker, or podman.socket), or set DOCKER_HOST to where it listens".to_owned(),
        ),
    };
    SourceError::unreachable(what).with_hint(hint)
}

#[cfg(test)]
mod tests;
