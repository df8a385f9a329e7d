//! The errors of streams, and their way through [`io::Error`].
//!
//! The decoders implement [`BufRead`](io::BufRead) and read from what implements it. So the error of a decoder, and that of the
//! source below it, pass through [`io::Error`]. They go in and come out in this file alone: `io::Error::from` puts an
//! [`UnpackError`] in, [`UnpackError::from_io`] takes it out.

use std::io;

use crate::bounds::BoundsError;

/// Why a stream ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The source of the compressed bytes failed. This is its own error, unchanged.
    #[error(transparent)]
    Source(io::Error),
    /// The compressed bytes cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Why compressed bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A gzip stream is damaged.
    #[error(transparent)]
    Gzip(#[from] GzipError),
    /// A zstd stream is damaged.
    #[error(transparent)]
    Zstd(#[from] ZstdError),
    /// A thread of the pool panicked while it decoded.
    #[error("decompression failed: this is a defect of the decoder")]
    Panicked,
    /// The decoder accessed its buffers out of bounds: a defect that damaged bytes may have brought to light.
    #[error("{}", BoundsError::TEXT)]
    OutOfBounds,
}

/// Damage of a gzip stream. [`Gunzip`](crate::inflate::Gunzip) returns it inside an [`io::Error`]; [`UnpackError`] takes it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GzipError {
    /// The stream ends inside a member. Kind [`io::ErrorKind::UnexpectedEof`].
    #[error("the gzip data end early, after {length} bytes")]
    Truncated {
        /// Compressed bytes in the stream.
        length: u64,
    },
    /// The stream is not valid gzip. Kind [`io::ErrorKind::InvalidData`].
    #[error("the gzip data are damaged near byte {offset}: {error}")]
    Corrupt {
        /// Offset in the compressed stream near which the decoder found the damage, in bytes.
        offset: u64,
        /// The violated rule.
        error: InflateError,
    },
}

/// Damage of a zstd stream. [`Unzstd`](crate::unzstd::Unzstd) returns it inside an [`io::Error`]; [`UnpackError`] takes it out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZstdError {
    /// The stream ends inside a frame. Kind [`io::ErrorKind::UnexpectedEof`].
    #[error("the zstd data end early, after {length} bytes")]
    Truncated {
        /// Compressed bytes in the stream.
        length: u64,
    },
    /// The stream is not valid zstd. Kind [`io::ErrorKind::InvalidData`].
    #[error("the zstd data are damaged near byte {offset} ({error})")]
    Corrupt {
        /// Offset in the compressed stream near which the decoder found the damage, in bytes.
        offset: u64,
        /// The error of the zstd library.
        error: io::Error,
    },
}

/// A violation of the gzip or deflate format (RFC 1952, RFC 1951). Its text describes the violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InflateError(pub(crate) &'static str);

impl UnpackError {
    /// Takes the error out of an [`io::Error`] that a decoder or a [`Pipe`](crate::pipe::Pipe) returned.
    ///
    /// # Errors
    ///
    /// Returns an error that does not come from this crate unchanged: that of a reader other than a pipe, or of another decoder
    /// on top.
    pub fn from_io(error: io::Error) -> Result<Self, io::Error> {
        error.downcast()
    }
}

impl From<UnpackError> for io::Error {
    /// Keeps the kind of the error, except for an interruption of the source: readers would try again, and read past it.
    fn from(error: UnpackError) -> Self {
        let kind = match &error {
            UnpackError::Source(source) if source.kind() == io::ErrorKind::Interrupted => io::ErrorKind::Other,
            UnpackError::Source(source) => source.kind(),
            UnpackError::Decode(error) => error.kind(),
        };
        Self::new(kind, error)
    }
}

impl DecodeError {
    const fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Gzip(GzipError::Truncated { .. }) | Self::Zstd(ZstdError::Truncated { .. }) => {
                io::ErrorKind::UnexpectedEof
            }
            Self::Gzip(GzipError::Corrupt { .. }) | Self::Zstd(ZstdError::Corrupt { .. }) | Self::OutOfBounds => {
                io::ErrorKind::InvalidData
            }
            Self::Panicked => io::ErrorKind::Other,
        }
    }
}

impl From<BoundsError> for InflateError {
    fn from(error: BoundsError) -> Self {
        let BoundsError = error;
        Self(BoundsError::TEXT)
    }
}

impl From<BoundsError> for DecodeError {
    fn from(error: BoundsError) -> Self {
        let BoundsError = error;
        Self::OutOfBounds
    }
}

impl From<DecodeError> for io::Error {
    fn from(error: DecodeError) -> Self {
        UnpackError::from(error).into()
    }
}

impl From<GzipError> for io::Error {
    fn from(error: GzipError) -> Self {
        DecodeError::from(error).into()
    }
}

impl From<ZstdError> for io::Error {
    fn from(error: ZstdError) -> Self {
        DecodeError::from(error).into()
    }
}

impl From<BoundsError> for io::Error {
    fn from(error: BoundsError) -> Self {
        DecodeError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_comes_out_as_it_went_in() {
        let length = 3;
        for (decode, kind) in [
            (DecodeError::from(GzipError::Truncated { length }), io::ErrorKind::UnexpectedEof),
            (ZstdError::Truncated { length }.into(), io::ErrorKind::UnexpectedEof),
            (ZstdError::Corrupt { offset: 1, error: io::Error::other("why") }.into(), io::ErrorKind::InvalidData),
            (BoundsError.into(), io::ErrorKind::InvalidData),
            (DecodeError::Panicked, io::ErrorKind::Other),
        ] {
            let text = decode.to_string();
            let carried = io::Error::from(decode);
            assert_eq!((carried.kind(), carried.to_string()), (kind, text.clone()));
            let out = UnpackError::from_io(carried).unwrap();
            assert!(matches!(&out, UnpackError::Decode(decode) if decode.to_string() == text), "{out:?}");
        }
    }

    #[test]
    fn an_interruption_is_hidden_from_readers_only() {
        for (kind, shown) in [
            (io::ErrorKind::Interrupted, io::ErrorKind::Other),
            (io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionReset),
        ] {
            let carried = io::Error::from(UnpackError::Source(io::Error::new(kind, "gone")));
            assert_eq!((carried.kind(), &*carried.to_string()), (shown, "gone"));
            let out = UnpackError::from_io(carried).unwrap();
            assert!(matches!(&out, UnpackError::Source(source) if source.kind() == kind), "{out:?}");
        }
    }

    #[test]
    fn an_error_of_another_crate_comes_back() {
        let error = UnpackError::from_io(io::Error::other("not ours")).unwrap_err();
        assert_eq!(error.to_string(), "not ours");
    }
}
