//! The interface to media: a source returns documents (manifests, indexes, configurations) and blobs, and does not
//! interpret them.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;

use crate::model::{BlobRef, Digest, DigestError, Environment, Hasher, Limits, cause, help_line};

/// The user's options for reaching registries and engines.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
#[non_exhaustive]
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

    /// The manifests of one artifact type that refer to another manifest (OCI distribution-spec, "Listing Referrers").
    /// The list is unverified: only the medium vouches for it. Empty where the medium keeps no such list.
    fn referrers(&self, _manifest: &Digest, _artifact_type: &str) -> Result<Vec<Digest>, SourceError> {
        Ok(Vec::new())
    }

    /// Opens a blob as stored, from its first byte to its last. The bytes are not verified here:
    /// [`super::verify::Verified`] does that for every medium.
    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError>;

    /// Opens a range within a blob, unverified; `None` from a medium that can read a blob only from its first byte.
    fn open_range(
        &self,
        _blob: &BlobRef,
        _range: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send + '_>>, SourceError> {
        Ok(None)
    }

    /// The place that serves the image in place of the one that its name says, such as a mirror; see
    /// [`ImageSummary::served_by`](crate::model::ImageSummary::served_by).
    fn served_by(&self) -> Option<&str> {
        None
    }

    /// Cost of opening another range, as the number of bytes that could be read in the same time.
    fn range_cost(&self) -> u64 {
        16 << 10
    }
}

/// A failure to obtain an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Nothing has this name here. Other places may be tried.
    #[error("{0}")]
    NotFound(String),
    /// The place has the image's documents, but not a blob that they name.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Missing {
        /// The blob and the place.
        what: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// Nothing answers there (no daemon, no route). Other places may be tried.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Unreachable {
        /// The attempt and its outcome.
        what: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// The place asks to come back later (429).
    #[error("{what}{}", help_line(hint.as_deref()))]
    Busy {
        /// The request, and the answer.
        what: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// Access was denied.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Denied {
        /// The refused request, and the answer.
        what: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// The content is damaged or does not match its description.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Invalid {
        /// The problem and its location.
        what: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// Reading failed.
    #[error("{what}: {}", cause(error))]
    Io {
        /// The object being read.
        what: String,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
}

impl SourceError {
    /// A [`SourceError::Invalid`] without advice.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), hint: None }
    }

    /// Adds lines to the description, above the advice.
    pub(super) fn with_notes(mut self, notes: &str) -> Self {
        match &mut self {
            Self::NotFound(what)
            | Self::Missing { what, .. }
            | Self::Unreachable { what, .. }
            | Self::Busy { what, .. }
            | Self::Denied { what, .. }
            | Self::Invalid { what, .. } => what.push_str(notes),
            Self::Io { what, error } if !notes.is_empty() => {
                return Self::invalid(format!("{what}: {}{notes}", cause(error)));
            }
            Self::Io { .. } => {}
        }
        self
    }

    /// The description without the advice, which is a line of its own: for a note about an image that is read all the same.
    pub(super) fn without_advice(&self) -> String {
        match self {
            Self::NotFound(what)
            | Self::Missing { what, .. }
            | Self::Unreachable { what, .. }
            | Self::Denied { what, .. }
            | Self::Busy { what, .. }
            | Self::Invalid { what, .. } => what.clone(),
            Self::Io { .. } => self.to_string(),
        }
    }

    /// Changes all texts that came from the other side.
    pub(super) fn map_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::NotFound(what) | Self::Io { what, .. } => *what = change(what),
            Self::Missing { what, hint }
            | Self::Unreachable { what, hint }
            | Self::Denied { what, hint }
            | Self::Busy { what, hint }
            | Self::Invalid { what, hint } => {
                *what = change(what);
                *hint = hint.as_deref().map(&change);
            }
        }
        self
    }

    /// An I/O error while doing `what`.
    pub fn io(what: impl Into<String>, error: std::io::Error) -> Self {
        Self::Io { what: what.into(), error }
    }
}

impl From<DigestError> for SourceError {
    fn from(error: DigestError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Reads a small object whole, up to `limit` bytes.
pub(crate) fn read_bounded(reader: impl Read, limit: u64, what: &str) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = io::copy(&mut reader.take(limit.saturating_add(1)), &mut bytes);
    match read.map_err(|error| SourceError::io(what, error))? {
        count if count > limit => Err(SourceError::invalid(format!("{what}: more than {limit} bytes"))),
        _ => Ok(bytes),
    }
}
