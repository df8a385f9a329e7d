//! The interface to media: a source returns documents (manifests, indexes, configurations) and blobs, and does not
//! interpret them.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;

use model::{BlobRef, Digest, DigestError, Environment, Hasher, Limits, cause, help_line};

/// The user's options for reaching registries and engines.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// A folder of CA certificates (`*.crt`) and client certificates (`*.cert`, `*.key`) for the registry, laid out
    /// like a `certs.d/HOST` folder. Default: `HOST` below `/etc/containers/certs.d`, `/etc/docker/certs.d` and
    /// `~/.config/containers/certs.d`.
    pub cert_dir: Option<PathBuf>,
    /// A credentials file in the format of Docker's `config.json`, instead of the default locations of Docker and
    /// Podman.
    pub authfile: Option<PathBuf>,
    /// False disables certificate verification and allows plain HTTP.
    pub tls_verify: bool,
    /// Size limits for documents.
    pub limits: Limits,
    /// The environment variables, read once by the program.
    pub environment: Environment,
}

impl Default for AccessOptions {
    /// The default locations of certificates and credentials, verified TLS, the default limits, and an empty
    /// environment.
    fn default() -> Self {
        Self {
            cert_dir: None,
            authfile: None,
            tls_verify: true,
            limits: Limits::default(),
            environment: Environment::default(),
        }
    }
}

/// A manifest or an index as stored, with the media type that its medium reports (a registry's Content-Type).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// The document and its place, for messages: `index.json of DIR`.
    pub name: String,
    /// Digest of `bytes`, computed here.
    pub digest: Digest,
    /// The media type that the medium reports; the document's own `mediaType` takes precedence.
    pub media_type: Option<String>,
    /// The bytes, verified if the medium supplied their digest.
    pub bytes: Vec<u8>,
}

impl StoredDocument {
    /// A document from a file, without a media type.
    pub(super) fn of_file(name: String, bytes: Vec<u8>) -> Self {
        let mut hasher = Hasher::sha256();
        hasher.update(&bytes);
        Self { name, digest: hasher.finish(), media_type: None, bytes }
    }
}

/// A medium that serves content by digest, in any order and to several threads.
pub trait Source: Sync + fmt::Debug {
    /// The manifest or index that the user's reference names.
    fn top(&self) -> Result<StoredDocument, SourceError>;

    /// The reference of this place, to which `@DIGEST` adds the choice of an image; `None` where a reference cannot
    /// choose by digest.
    fn reference(&self) -> Option<String> {
        None
    }

    /// A manifest that an index names. The caller verifies the bytes.
    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError>;

    /// Opens a blob as stored, from its first byte to its last. The bytes are not verified here:
    /// [`super::verify::Verified`] does that for every medium.
    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError>;

    /// The place that serves the image in place of the one that its name says, such as a mirror; see
    /// [`ImageSummary::served_by`](model::ImageSummary::served_by).
    fn served_by(&self) -> Option<&str> {
        None
    }
}

/// A failure to obtain an image.
#[derive(Debug, thiserror::Error)]
#[error("{}{}", self.description(), help_line(hint.as_deref()))]
pub struct SourceError {
    pub(super) kind: SourceErrorKind,
    /// The problem and its location.
    pub(super) what: String,
    /// Advice for the user.
    pub(super) hint: Option<String>,
    /// The system's error.
    #[source]
    pub(super) cause: Option<io::Error>,
}

/// What kind of failure an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceErrorKind {
    /// Nothing has this name here. Other places may be tried.
    NotFound,
    /// The place has the image's documents, but not a blob that they name.
    Missing,
    /// Nothing answers there (no daemon, no route). Other places may be tried.
    Unreachable,
    /// The place asks to come back later (429).
    Busy,
    /// Access was denied.
    Denied,
    /// The content is damaged or does not match its description.
    Invalid,
    /// The documents describe something else than an image, such as a signature or a chart.
    Artifact,
    /// Reading failed.
    Io,
}

impl SourceError {
    /// An error without advice.
    pub fn new(kind: SourceErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), hint: None, cause: None }
    }

    /// A [`SourceErrorKind::Invalid`] without advice.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::Invalid, what)
    }

    /// A [`SourceErrorKind::NotFound`].
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::NotFound, what)
    }

    /// A [`SourceErrorKind::Missing`] without advice.
    pub fn missing(what: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::Missing, what)
    }

    /// A [`SourceErrorKind::Unreachable`] without advice.
    pub fn unreachable(what: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::Unreachable, what)
    }

    /// A [`SourceErrorKind::Denied`] without advice.
    pub fn denied(what: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::Denied, what)
    }

    /// An I/O error while doing `what`.
    pub fn io(what: impl Into<String>, error: io::Error) -> Self {
        Self { cause: Some(error), ..Self::new(SourceErrorKind::Io, what) }
    }

    /// Adds advice for the user.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<Option<String>>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// The kind of failure.
    pub const fn kind(&self) -> SourceErrorKind {
        self.kind
    }

    /// The error without the advice, which is a line of its own.
    pub(super) fn description(&self) -> String {
        let Self { what, cause: error, .. } = self;
        error.as_ref().map_or_else(|| what.clone(), |error| format!("{what}: {}", cause(error)))
    }

    /// Adds lines to the description, above the advice.
    pub(super) fn with_notes(self, notes: &str) -> Self {
        if notes.is_empty() {
            return self;
        }
        let what = format!("{}{notes}", self.description());
        match self.kind {
            SourceErrorKind::Io => Self::invalid(what),
            _ => Self { what, ..self },
        }
    }

    /// Changes all texts that came from the other side.
    pub(super) fn map_texts(self, change: impl Fn(&str) -> String) -> Self {
        Self { what: change(&self.what), hint: self.hint.as_deref().map(&change), ..self }
    }
}

impl From<DigestError> for SourceError {
    fn from(error: DigestError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Reads a small object whole, up to `limit` bytes.
pub fn read_bounded(reader: impl Read, limit: u64, what: &str) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = io::copy(&mut reader.take(limit.saturating_add(1)), &mut bytes);
    match read.map_err(|error| SourceError::io(what, error))? {
        count if count > limit => Err(SourceError::invalid(format!("{what}: more than {limit} bytes"))),
        _ => Ok(bytes),
    }
}
