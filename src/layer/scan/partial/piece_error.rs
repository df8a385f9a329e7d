//! Why a piece of a blob cannot be read.

use std::io;

use crate::model::{BoundsError, Digest, OverLimit};
use unpack::UnpackError;
use unpack::inflate::InflateError;

/// Why a piece of a blob cannot be read. All but the first two are damage of the piece.
#[derive(Debug, thiserror::Error)]
pub(super) enum PieceError {
    /// The medium failed. This is its own error, unchanged.
    #[error("{0}")]
    Medium(io::Error),
    /// The pieces unpack to too much.
    #[error("{0}")]
    Limit(OverLimit),
    /// The decoder of a stream failed.
    #[error("{0}")]
    Decode(io::Error),
    /// The stream ends before the piece.
    #[error("unexpected end of file")]
    Truncated,
    /// The decoder of an earlier piece could not be made, and the blob went with it.
    #[error("the decoder is gone")]
    Lost,
    /// The table names a span that is not there.
    #[error("there is no such span")]
    NoSpan,
    /// The stored bytes of a span are not the promised ones.
    #[error("its span has the digest {found}, the zTOC says {expected}")]
    SpanDigest {
        /// Of the stored bytes.
        found: Digest,
        /// In the zTOC.
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
    /// The error of a reader on top of [`StoredEntries`](super::stored::StoredEntries): that of the medium, or the reader's own.
    fn from(error: io::Error) -> Self {
        match UnpackError::from_io(error) {
            Ok(UnpackError::Source(error)) => Self::Medium(error),
            Ok(error) => Self::Decode(error.into()),
            Err(error) => Self::Decode(error),
        }
    }
}
