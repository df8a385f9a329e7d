//! The error of a job that panicked.

use std::io;

/// A thread of the pool panicked while it decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("decompression failed: this is a defect of the decoder")]
pub(crate) struct DefectError;

impl From<DefectError> for io::Error {
    fn from(error: DefectError) -> Self {
        Self::other(error)
    }
}
