//! Spans: parts of one gzip stream that can be unpacked by themselves, since somebody noted where blocks begin and what lies
//! before them. A span is verified as it is stored, before anything of it is unpacked.

use std::io::{self, Read as _};
use std::ops::Range;

use crate::model::{Digest, part};
use unpack::inflate::CheckpointDecoder;

use super::piece_error::PieceError;
use super::stored::StoredEntries;

/// A part of a gzip stream.
#[derive(Debug)]
pub(super) struct Span<'z> {
    /// Its bytes in the blob. Its last byte may be the first one of the next span, too.
    pub(super) stored: Range<u64>,
    /// The bit of its first byte that it begins with.
    pub(super) bit: u8,
    /// Its bytes in what is unpacked; at least one.
    pub(super) unpacked: Range<u64>,
    /// What was unpacked before: 32 KiB, or less at the beginning.
    pub(super) window: &'z [u8],
    /// Of its bytes as they are stored.
    pub(super) digest: Digest,
}

/// Unpacks spans.
pub(super) struct Spans<'a, 'z> {
    stored: StoredEntries<'a>,
    all: &'z [Span<'z>],
    /// The bytes of the open span, as they are stored, and where in the blob they end.
    bytes: Vec<u8>,
    end: u64,
    is_last: bool,
    decoder: CheckpointDecoder,
    /// Bytes of the span that are not unpacked yet.
    left: u64,
    /// What of the piece that was unpacked last nobody took yet.
    ready: Range<usize>,
}

impl<'a, 'z> Spans<'a, 'z> {
    pub(super) fn new(stored: StoredEntries<'a>, all: &'z [Span<'z>]) -> Self {
        let (bytes, decoder) = (Vec::new(), CheckpointDecoder::default());
        Self { stored, all, bytes, end: 0, is_last: false, decoder, left: 0, ready: 0..0 }
    }

    /// Goes to the first byte of the span of this number.
    pub(super) fn open(&mut self, number: usize) -> Result<(), PieceError> {
        let span = self.all.get(number).ok_or(PieceError::NoSpan)?;
        // Until all of it is there, none of it is.
        let mut bytes = std::mem::take(&mut self.bytes);
        self.left = 0;
        self.ready = 0..0;
        // The byte that two spans share was read already.
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

    /// Bytes of the blob that were read.
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
        // Behind the last span there may be padding, of which a zTOC knows nothing.
        self.ready = 0..count.min(enough);
        self.left -= self.ready.len() as u64;
        Ok(())
    }

    /// Reads the next bytes of the open span into `buffer` and returns how many; none at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, PieceError> {
        if self.ready.is_empty() && self.left > 0 {
            self.unpack()?;
        }
        let count = part(self.decoder.piece()?, self.ready.clone())?.read(buffer)?;
        self.ready.start += count;
        Ok(count)
    }
}
