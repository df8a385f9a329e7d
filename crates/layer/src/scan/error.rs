//! Errors of a layer scan, and the path of the errors below it.
//!
//! | error of | arrives as | becomes |
//! |---|---|---|
//! | the medium, or the verification of a blob's digest | [`DecompressError::Source`] | [`ScanError::Read`] |
//! | the gzip or zstd decoder | [`DecompressError::Compression`] | [`ScanError::Compression`] |
//! | a limit on the unpacked size | [`DecompressError::Limit`] | [`ScanError::Limit`] |
//! | the tar | [`TarErrorKind::Malformed`] | [`ScanError::Tar`], with its position |
//! | a limit on the tar | [`TarErrorKind::Limit`] | [`ScanError::Limit`] |
//! | a squashfs image | `SquashfsError` | [`ScanError::Squashfs`], with its offset, [`ScanError::Read`] or [`ScanError::Limit`] |
//! | an extractor | [`Gap`](model::Gap) | a finding of the scan, which continues |
//!
//! [`TarReader`](crate::tar::TarReader) returns the error of its input unchanged. Only decoders implement
//! [`Read`](io::Read), so their own errors and those of the medium below arrive as [`io::Error`]:
//! [`unpack::UnpackError`] wraps and unwraps them.

use std::io;

use crate::squashfs::SquashfsError;
use crate::tar::{TarError, TarErrorKind};
use model::cause;

use super::decompress::{CompressionError, DecompressError};

/// Reason why a layer cannot be scanned.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The blob cannot be read, or does not match its descriptor.
    #[error("{}", cause(.0))]
    Read(io::Error),
    /// The compressed bytes are damaged, or layers do not support the compression.
    #[error("{0}")]
    Compression(CompressionError),
    /// The tar inside is damaged.
    #[error("{0}")]
    Tar(TarError<DecompressError>),
    /// A limit of [`Limits`](model::Limits) was exceeded.
    #[error("{0}")]
    Limit(String),
    /// A squashfs image is damaged, or of a form that is not supported.
    #[error("{0}")]
    Squashfs(SquashfsError),
    /// A thread of the scan panicked.
    #[error("the scan failed: this is a defect of ncclcheck")]
    Panicked,
}

impl From<DecompressError> for ScanError {
    fn from(error: DecompressError) -> Self {
        match error {
            DecompressError::Source(error) => Self::Read(error),
            DecompressError::Compression(error) => Self::Compression(error),
            DecompressError::Limit(over) => Self::Limit(over.advice()),
        }
    }
}

impl From<SquashfsError> for ScanError {
    fn from(error: SquashfsError) -> Self {
        match error {
            SquashfsError::Read(error) => Self::Read(error),
            SquashfsError::Limit(over) => Self::Limit(over.to_string()),
            error => Self::Squashfs(error),
        }
    }
}

impl From<TarError<DecompressError>> for ScanError {
    /// Reports an error of the tar's input without a position in the tar, which would mislead.
    fn from(error: TarError<DecompressError>) -> Self {
        match error.what {
            TarErrorKind::Read(error) => error.into(),
            TarErrorKind::Limit(over) => Self::Limit(over.advice()),
            TarErrorKind::Malformed(_) => Self::Tar(error),
        }
    }
}
