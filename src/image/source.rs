//! Where an image is: one file per medium. A source hands out documents (manifests, indexes, configurations) and blobs;
//! it decides nothing about them.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;

use crate::model::{BlobRef, Digest, DigestError, Environment, Hasher, Limits, help_line};

/// What the user asked for that concerns how media are reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessOptions {
    /// A folder of CA certificates (`*.crt`) and client certificates (`*.cert`, `*.key`) for the registry, as
    /// `certs.d/HOST` folders are laid out. In its place when not given: `/etc/containers/certs.d/HOST`,
    /// `/etc/docker/certs.d/HOST`, and the one in `~/.config/containers/certs.d`.
    pub cert_dir: Option<PathBuf>,
    /// A credentials file in Docker's `config.json` format, instead of Docker's and Podman's usual places.
    pub authfile: Option<PathBuf>,
    /// False: certificates are not checked, and plain HTTP is tried as well.
    pub tls_verify: bool,
    /// Bounds on documents.
    pub limits: Limits,
    /// The environment, read once by who runs us.
    pub environment: Environment,
}

impl Default for AccessOptions {
    /// The usual places of certificates and credentials, verified TLS, the default bounds, and an empty environment.
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

/// A manifest or an index as it is stored, with the media type that its medium gave to it (a registry's Content-Type).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredDocument {
    /// Digest of `bytes`, computed here.
    pub digest: Digest,
    /// What the medium says it is; the document's own `mediaType` comes first.
    pub media_type: Option<String>,
    /// The bytes, verified where the medium told their digest.
    pub bytes: Vec<u8>,
}

impl StoredDocument {
    /// A document from a file, of which nothing but itself says what it is.
    pub(super) fn of_file(bytes: Vec<u8>) -> Self {
        let mut hasher = Hasher::sha256();
        hasher.update(&bytes);
        Self { digest: hasher.finish(), media_type: None, bytes }
    }
}

/// A medium that hands out content by digest, in any order and from several threads.
pub trait Source: Sync + fmt::Debug {
    /// The manifest or index that the user's reference names.
    fn top(&self) -> Result<StoredDocument, SourceError>;

    /// A manifest that an index names. The bytes are verified by who asked.
    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError>;

    /// The manifests of a type of artifact that refer to another manifest (OCI distribution-spec, "Listing Referrers"). Nothing
    /// but the medium's word says so. None where the medium keeps no such list.
    fn referrers(&self, _manifest: &Digest, _artifact_type: &str) -> Result<Vec<Digest>, SourceError> {
        Ok(Vec::new())
    }

    /// The bytes of a blob as stored, from its first to its last. They are not verified here:
    /// [`super::verify::Verified`] does that for every medium alike.
    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError>;

    /// The bytes of a blob in this range, which lies in it, not verified either; `None` from a medium that only gives a blob
    /// from its first byte on.
    fn open_range(
        &self,
        _blob: &BlobRef,
        _range: Range<u64>,
    ) -> Result<Option<Box<dyn Read + Send + '_>>, SourceError> {
        Ok(None)
    }

    /// Bytes that are read as fast as another range is opened.
    fn range_cost(&self) -> u64 {
        16 << 10
    }
}

/// Why an image could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Nothing is there under this name. Other places may be asked.
    #[error("{0}")]
    NotFound(String),
    /// Nobody answers there (no daemon, no route). Other places may be asked.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Unreachable {
        /// What was tried and what came back.
        what: String,
        /// What the user can do.
        hint: Option<String>,
    },
    /// We are not let in.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Denied {
        /// What was refused, and the answer.
        what: String,
        /// What the user can do.
        hint: Option<String>,
    },
    /// What is there is broken or is not what it says.
    #[error("{what}{}", help_line(hint.as_deref()))]
    Invalid {
        /// What, where.
        what: String,
        /// What the user can do.
        hint: Option<String>,
    },
    /// Reading failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being read.
        what: String,
        /// The system's answer.
        #[source]
        error: std::io::Error,
    },
}

impl SourceError {
    /// Something broken, with nothing to advise.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), hint: None }
    }

    /// A failure of the system while doing `what`.
    pub fn io(what: impl Into<String>, error: std::io::Error) -> Self {
        Self::Io { what: what.into(), error }
    }
}

impl From<DigestError> for SourceError {
    fn from(error: DigestError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// All bytes of something small.
pub(crate) fn read_bounded(reader: impl Read, limit: u64, what: &str) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = io::copy(&mut reader.take(limit.saturating_add(1)), &mut bytes);
    match read.map_err(|error| SourceError::io(what, error))? {
        count if count > limit => Err(SourceError::invalid(format!("{what}: there are more than {limit} bytes"))),
        _ => Ok(bytes),
    }
}
