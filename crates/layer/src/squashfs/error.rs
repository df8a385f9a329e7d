//! Errors of squashfs images.

use std::io;

use model::{BoundsError, OverLimit};

/// Reason why an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SquashfsError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(io::Error),
    /// The image contradicts the format.
    #[error("the squashfs image is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the damaged structure in the file, in bytes.
        at: u64,
        /// The contradiction.
        what: String,
    },
    /// The image uses a form of squashfs that is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// A limit of [`Limits`](model::Limits) was exceeded.
    #[error("{0}")]
    Limit(OverLimit),
}

impl SquashfsError {
    /// Damage at this offset in the file.
    pub(super) fn damaged(at: u64, what: impl Into<String>) -> Self {
        Self::Damaged { at, what: what.into() }
    }
}

impl From<BoundsError> for SquashfsError {
    fn from(error: BoundsError) -> Self {
        Self::Read(error.into())
    }
}
