//! Spans: independent parts of a gzip stream, for which a zTOC has the block boundaries and the window of bytes before
//! each. The stored bytes of a span are verified before they are decoded.

use std::io::{self, Read as _};
use std::ops::Range;

use crate::model::{Digest, part};
use unpack::inflate::CheckpointDecoder;

use super::piece_error::PieceError;
use super::stored::StoredEntries;

/// A span of a gzip stream.
#[derive(Debug)]
pub(super) struct Span<'z> {
    /// Range in the blob. Its last byte may also be the first one of the next span.
    pub(super) stored: Range<u64>,
    /// Bit offset in its first byte.
    pub(super) bit: u8,
    /// Range in the unpacked stream; never empty.
    pub(super) unpacked: Range<u64>,
    /// Unpacked bytes before it: 32 KiB, or fewer at the beginning.
    pub(super) window: &'z [u8],
    /// Digest of its stored bytes.
    pub(super) digest: Digest,
}

/// Decodes spans.
pub(super) struct Spans<'a, 'z> {
    stored: StoredEntries<'a>,
    all: &'z [Span<'z>],
    /// The stored bytes of the open span, and their end in the blob.
    bytes: Vec<u8>,
    end: u64,
    is_last: bool,
    decoder: CheckpointDecoder,
    /// Unpacked bytes of the span that are left.
    left: u64,
    /// The part of the last decoded chunk that is not read yet.
    ready: Range<usize>,
}

impl<'a, 'z> Spans<'a, 'z> {
    pub(super) fn new(stored: StoredEntries<'a>, all: &'z [Span<'z>]) -> Self {
        let (bytes, decoder) = (Vec::new(), CheckpointDecoder::default());
        Self { stored, all, bytes, end: 0, is_last: false, decoder, left: 0, ready: 0..0 }
    }

    /// Opens the span with this number.
    pub(super) fn open(&mut self, number: usize) -> Result<(), PieceError> {
        let span = self.all.get(number).ok_or(PieceError::NoSpan)?;
        // The span stays empty until it has been read and verified completely.
        let mut bytes = std::mem::take(&mut self.bytes);
        self.left = 0;
        self.ready = 0..0;
        // The byte that two spans share was read with the first one.
        let shared = usize::from(!bytes.is_empty() && self.end == span.stored.start + 1);
        bytes.drain(..bytes.len() - shared);
        let rest = span.stored.start + shared as u64..span.stored.end;
        self.stored.seek(&rest).map_err(PieceError::Medium)?;
        io::copy(&mut self.stored.by_ref().take(rest.end - rest.start), &mut bytes)?;
        let mut hasher = span.digest.hasher();
        hasher.update(&bytes);
        let found = hasher.finish();
        if found != span.digest {
            return Err(PieceError::SpanDigest { found, expected: span.digest.clone() });
        }
        self.decoder.begin(usize::from(span.bit), span.window)?;
        self.bytes = bytes;
        self.end = span.stored.end;
        self.is_last = number + 1 == self.all.len();
        self.left = span.unpacked.end - span.unpacked.start;
        Ok(())
    }

    /// Bytes of the blob read so far.
    pub(super) const fn read_so_far(&self) -> u64 {
        self.stored.read_so_far()
    }

    fn unpack(&mut self) -> Result<(), PieceError> {
        let enough = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.decoder.next(&self.bytes, enough)?;
        let count = self.decoder.piece()?.len();
        if count > enough && !self.is_last {
            return Err(PieceError::SpanEnd);
        }
        // The last span may be followed by padding, which the zTOC does not cover.
        self.ready = 0..count.min(enough);
        self.left -= self.ready.len() as u64;
        Ok(())
    }

    /// Reads bytes of the open span into `buffer` and returns their number; 0 at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, PieceError> {
        if self.ready.is_empty() && self.left > 0 {
            self.unpack()?;
        }
        let count = part(self.decoder.piece()?, self.ready.clone())?.read(buffer)?;
        self.ready.start += count;
        Ok(count)
    }
}
