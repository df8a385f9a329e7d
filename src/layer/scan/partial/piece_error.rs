//! Errors of reading a piece of a blob.

use std::io;

use crate::model::{BoundsError, Digest, OverLimit};
use unpack::UnpackError;
use unpack::inflate::InflateError;

/// Reason why a piece of a blob cannot be read. All but the first two are damage of the piece.
#[derive(Debug, thiserror::Error)]
pub(super) enum PieceError {
    /// The medium failed. This is its own error, unchanged.
    #[error("{0}")]
    Medium(io::Error),
    /// The pieces exceed a limit when unpacked.
    #[error("{0}")]
    Limit(OverLimit),
    /// The decoder of a stream failed.
    #[error("{0}")]
    Decode(io::Error),
    /// The stream ends before the piece.
    #[error("unexpected end of file")]
    Truncated,
    /// Creating a decoder for an earlier piece failed, and the blob's reader was lost.
    #[error("the decoder is gone")]
    Lost,
    /// The table refers to a span that does not exist.
    #[error("there is no such span")]
    NoSpan,
    /// The stored bytes of a span do not match their digest.
    #[error("its span has the digest {found}, the zTOC says {expected}")]
    SpanDigest {
        /// Digest of the stored bytes.
        found: Digest,
        /// Digest in the zTOC.
        expected: Digest,
    },
    /// The decoder of a span failed.
    #[error("{0}")]
    Inflate(#[from] InflateError),
    /// A span unpacks to more than the zTOC says.
    #[error("a block does not end where its span does")]
    SpanEnd,
    /// A buffer was accessed out of bounds.
    #[error("{0}")]
    OutOfBounds(#[from] BoundsError),
}

impl From<io::Error> for PieceError {
    /// Converts the error of a reader on top of [`StoredEntries`](super::stored::StoredEntries), which may be that of
    /// the medium.
    fn from(error: io::Error) -> Self {
        match UnpackError::from_io(error) {
            Ok(UnpackError::Source(error)) => Self::Medium(error),
            Ok(error) => Self::Decode(error.into()),
            Err(error) => Self::Decode(error),
        }
    }
}
