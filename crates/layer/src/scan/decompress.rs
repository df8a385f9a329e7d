//! Decompresses the tar inside a blob. The first bytes decide the compression, whatever the media type says.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::tar::TarInput;
use model::{BoundsError, Limits, OverLimit};
use unpack::inflate::Gunzip;
use unpack::pipe::Pipe;
use unpack::pool::Pool;
use unpack::unzstd::Unzstd;
use unpack::{DecodeError, UnpackError};

/// Compression of a layer blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// A plain tar.
    None,
    /// gzip (RFC 1952) with one or more members, including eStargz.
    Gzip,
    /// Zstandard (RFC 8878) with one or more frames, including skippable ones.
    Zstd,
}

impl Compression {
    /// Lower-case name, as in media types.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The compression that a media type declares: `…tar+gzip`, `…tar.gzip`, `…tar+zstd`, `…tar`. `None` for an unknown
    /// one.
    pub fn declared(media_type: &str) -> Option<Self> {
        let (_, suffix) = media_type.rsplit_once(['+', '.'])?;
        match suffix {
            "gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            "tar" => Some(Self::None),
            _ => None,
        }
    }

    /// Detects the compression from the first bytes of a blob (RFC 1952 section 2.3.1, RFC 8878 sections 3.1.1 and
    /// 3.1.2).
    pub fn detect(head: &[u8]) -> Result<Self, CompressionError> {
        match *head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', ..] => Err(CompressionError::Unsupported("bzip2")),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(CompressionError::Unsupported("xz")),
            _ => Ok(Self::None),
        }
    }
}

/// Reason why a blob cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// The blob cannot be read, or does not match its descriptor.
    #[error("{0}")]
    Source(#[source] io::Error),
    /// The compressed bytes are damaged, or layers do not support the compression.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// A limit of [`Limits`] was exceeded.
    #[error("{0}")]
    Limit(OverLimit),
}

/// Compressed bytes that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum CompressionError {
    /// Layers do not support the compression.
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
    /// Converts the error of a pipe or a decoder.
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

/// Decompresses `blob`, within the limits.
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

/// The decompressed bytes. Counts both sides, and stops a blob that expands beyond the limits.
pub(super) struct BoundedDecoder<'a> {
    compression: Compression,
    inner: Box<dyn BufRead + 'a>,
    /// Bytes read from the blob.
    stored: Arc<AtomicU64>,
    written: u64,
    most: u64,
    expansion: u64,
}

impl BoundedDecoder<'_> {
    pub(super) const fn compression(&self) -> Compression {
        self.compression
    }

    /// The expansion ratio exposes a decompression bomb long before it fills anything. Small blobs may consist of
    /// zeros.
    fn check(&self) -> Result<(), OverLimit> {
        const SMALL: u64 = 64 << 20;
        let stored = self.stored.load(Ordering::Relaxed);
        let unpacked = self.written;
        if unpacked > self.most {
            return Err(OverLimit::new(format!("the layer unpacks to {unpacked} bytes"), "unpacked", self.most));
        }
        if unpacked > SMALL && unpacked / self.expansion > stored {
            let limit = self.expansion;
            let what = format!("the layer expands {}-fold from {stored} bytes", unpacked / stored.max(1));
            return Err(OverLimit::new(what, "expansion", limit));
        }
        Ok(())
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
