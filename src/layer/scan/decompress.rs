//! The tar inside a blob: compression is known by the blob's first bytes, whatever its media type says.

use std::fmt;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::layer::tar::TarInput;
use crate::model::{BoundsError, Limits, OverLimit};
use unpack::inflate::Gunzip;
use unpack::pipe::Pipe;
use unpack::pool::Pool;
use unpack::unzstd::Unzstd;
use unpack::{DecodeError, UnpackError};

/// How a layer blob is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compression {
    /// A plain tar.
    None,
    /// gzip (RFC 1952), of one member or many; eStargz is read as this.
    Gzip,
    /// Zstandard (RFC 8878), of one frame or many, skippable ones among them.
    Zstd,
}

impl Compression {
    /// Lower-case name, as media types write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// What a media type declares: `…tar+gzip`, `…tar.gzip`, `…tar+zstd`, `…tar`. `None` for one that is not known.
    pub fn declared(media_type: &str) -> Option<Self> {
        let (_, suffix) = media_type.rsplit_once(['+', '.'])?;
        match suffix {
            "gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            "tar" => Some(Self::None),
            _ => None,
        }
    }

    /// By the first bytes of a blob (RFC 1952 section 2.3.1, RFC 8878 sections 3.1.1 and 3.1.2).
    pub(crate) fn detect(head: &[u8]) -> Result<Self, CompressionError> {
        match *head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', ..] => Err(CompressionError::Unsupported("bzip2")),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(CompressionError::Unsupported("xz")),
            _ => Ok(Self::None),
        }
    }
}

/// Why a blob cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// The blob could not be read, or is not what its descriptor says.
    #[error("{0}")]
    Source(#[source] io::Error),
    /// The compressed bytes are damaged, or compressed in a way that layers are not.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// A bound of [`Limits`] was passed.
    #[error("{0}")]
    Limit(OverLimit),
}

/// Compressed bytes that are not what they should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// The blob is compressed in a way that layers are not.
    #[error("the layer is compressed with {0}; image layers are plain tar, gzip or zstd")]
    Unsupported(&'static str),
    /// The decoder failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The unpacked bytes were accessed out of bounds.
    #[error(transparent)]
    OutOfBounds(#[from] BoundsError),
}

impl From<io::Error> for DecompressError {
    /// What a pipe or a decoder returned.
    fn from(error: io::Error) -> Self {
        match UnpackError::from_io(error) {
            Ok(UnpackError::Decode(error)) => Self::Compression(error.into()),
            Ok(UnpackError::Source(error)) | Err(error) => Self::Source(error),
        }
    }
}

impl From<BoundsError> for DecompressError {
    fn from(error: BoundsError) -> Self {
        Self::Compression(error.into())
    }
}

/// The bytes inside `blob`, bounded.
pub(super) fn open<'a>(
    blob: &'a mut Pipe,
    limits: &Limits,
    pool: Option<&'a Pool>,
) -> Result<BoundedDecoder<'a>, DecompressError> {
    let compression = Compression::detect(blob.fill_buf()?)?;
    let stored = blob.taken();
    let inner: Box<dyn BufRead> = match compression {
        Compression::None => Box::new(blob),
        Compression::Gzip => Box::new(Gunzip::new(blob, pool)),
        Compression::Zstd => Box::new(Unzstd::new(blob, limits.zstd_window_log, pool)?),
    };
    Ok(BoundedDecoder { compression, inner, stored, written: 0, most: limits.unpacked, expansion: limits.expansion })
}

/// The unpacked bytes. Counts both sides, and stops a blob that grows without measure.
pub(super) struct BoundedDecoder<'a> {
    compression: Compression,
    inner: Box<dyn BufRead + 'a>,
    /// Bytes that were taken from the blob.
    stored: Arc<AtomicU64>,
    written: u64,
    most: u64,
    expansion: u64,
}

impl BoundedDecoder<'_> {
    pub(super) const fn compression(&self) -> Compression {
        self.compression
    }

    /// A bomb shows by its ratio long before it fills anything. Small blobs may well be all zeros.
    fn check(&self) -> Result<(), OverLimit> {
        const SMALL: u64 = 64 << 20;
        let (stored, unpacked) = (self.stored.load(Ordering::Relaxed), self.written);
        if unpacked > self.most {
            return Err(OverLimit::new(format!("the layer unpacks to {unpacked} bytes"), "unpacked", self.most));
        }
        if unpacked > SMALL && unpacked / self.expansion > stored {
            let limit = self.expansion;
            let what = format!("the layer unpacks to {} bytes for each of its {stored}", unpacked / stored.max(1));
            return Err(OverLimit::new(what, "expansion", limit));
        }
        Ok(())
    }
}

impl fmt::Debug for BoundedDecoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacked")
            .field("compression", &self.compression)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl TarInput for BoundedDecoder<'_> {
    type Error = DecompressError;

    fn fill(&mut self) -> Result<&[u8], DecompressError> {
        self.check().map_err(DecompressError::Limit)?;
        Ok(self.inner.fill_buf()?)
    }

    fn advance(&mut self, count: usize) {
        self.inner.consume(count);
        self.written += count as u64;
    }
}
