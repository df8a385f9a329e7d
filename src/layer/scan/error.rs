//! Why a layer could not be scanned, and where the errors below a scan go.
//!
//! | error of | arrives as | becomes |
//! |---|---|---|
//! | the medium, or the check of a blob's digest | [`DecompressError::Source`] | [`ScanError::Read`] |
//! | the gzip or zstd decoder | [`DecompressError::Compression`] | [`ScanError::Compression`] |
//! | a limit on unpacked bytes | [`DecompressError::Limit`] | [`ScanError::Limit`] |
//! | the tar | [`TarErrorKind::Malformed`] | [`ScanError::Tar`], with its place |
//! | a limit on the tar | [`TarErrorKind::Limit`] | [`ScanError::Limit`], with its place |
//! | a chunk of a layer with a table of contents | `PieceError` | [`ScanError::Piece`], with file and place |
//! | an extractor | [`Gap`](crate::model::Gap) | an answer in the scan, which goes on |
//!
//! [`TarReader`](crate::layer::tar::TarReader) returns the error of its input unchanged. Only decoders are a
//! [`Read`](io::Read), from which the error of the medium below and their own come out as [`io::Error`]:
//! [`unpack::UnpackError`] puts them in and takes them out.

use std::io;

use crate::layer::tar::{TarError, TarErrorKind};

use super::decompress::{CompressionError, DecompressError};

/// Why a layer could not be scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The blob could not be read, or is not what its descriptor says.
    #[error("{0}")]
    Read(io::Error),
    /// The compressed bytes are damaged, or compressed in a way that layers are not.
    #[error("{0}")]
    Compression(CompressionError),
    /// The tar inside is damaged.
    #[error("{0}")]
    Tar(TarError<DecompressError>),
    /// A bound of [`Limits`](crate::model::Limits) was passed.
    #[error("{0}")]
    Limit(String),
    /// A piece of a layer that is read in part is not the promised one.
    #[error("{0}")]
    Piece(String),
    /// A thread of the scan panicked.
    #[error("the scan failed: this is a defect of ncclcheck")]
    Panicked,
}

impl From<DecompressError> for ScanError {
    fn from(error: DecompressError) -> Self {
        match error {
            DecompressError::Source(error) => Self::Read(error),
            DecompressError::Compression(error) => Self::Compression(error),
            DecompressError::Limit(over) => Self::Limit(over.to_string()),
        }
    }
}

impl From<TarError<DecompressError>> for ScanError {
    /// An error of the tar's input is reported without a place in the tar, which it has nothing to do with.
    fn from(error: TarError<DecompressError>) -> Self {
        match error.what {
            TarErrorKind::Read(error) => error.into(),
            TarErrorKind::Limit(_) => Self::Limit(error.to_string()),
            TarErrorKind::Malformed(_) => Self::Tar(error),
        }
    }
}
