//! Reads one file of a layer, piece by piece. A piece is read to its end once it is begun, and verified.

use std::ops::Range;

use crate::model::{Hasher, ImagePath};

use super::super::ScanError;
use super::super::extract::FileContent;
use super::piece_error::PieceError;
use super::pieces::Pieces;
use super::table::{Seal, TableChunk};

/// A file, and the position in it.
pub(super) struct RangedFile<'f, 'a, 'z> {
    path: &'f ImagePath,
    chunks: &'f [TableChunk],
    pieces: &'f mut Pieces<'a, 'z>,
    current: Option<CurrentChunk<'f>>,
}

/// The piece being read.
struct CurrentChunk<'f> {
    chunk: &'f TableChunk,
    /// Offset in the file of its next byte.
    at: u64,
    /// Hasher of a piece with a digest; taken at its end.
    hasher: Option<Hasher>,
}

impl CurrentChunk<'_> {
    const fn end(&self) -> u64 {
        self.chunk.offset + self.chunk.size
    }
}

impl<'f, 'a, 'z> RangedFile<'f, 'a, 'z> {
    pub(super) const fn new(path: &'f ImagePath, chunks: &'f [TableChunk], pieces: &'f mut Pieces<'a, 'z>) -> Self {
        Self { path, chunks, pieces, current: None }
    }

    /// Reads the current piece to its end if its digest can only be verified there.
    pub(super) fn finish(&mut self) -> Result<(), ScanError> {
        let is_open =
            |current: &CurrentChunk<'_>| current.at < current.end() && matches!(current.chunk.seal, Seal::Digest(_));
        while let Some(current) = self.current.take().filter(is_open) {
            self.step(current)?;
        }
        Ok(())
    }

    /// Reads the next bytes of a piece with some left, and returns their range in the file.
    fn step(&mut self, mut current: CurrentChunk<'f>) -> Result<Range<u64>, ScanError> {
        let chunk = current.chunk;
        let (offset, left) = (current.at, current.end() - current.at);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        if self.pieces.next(most).map_err(|error| failed(self.path, chunk, error))? == 0 {
            let what = format!("it ends after {} of its {} bytes", offset - chunk.offset, chunk.size);
            return Err(damaged(self.path, chunk, &what));
        }
        let bytes = self.pieces.bytes().map_err(|error| failed(self.path, chunk, error.into()))?;
        current.at += bytes.len() as u64;
        // The bytes of a span were verified before they were decoded.
        if let Seal::Digest(digest) = &chunk.seal {
            let hasher = current.hasher.get_or_insert_with(|| digest.hasher());
            hasher.update(bytes);
            if current.at == current.end()
                && let Some(found) = current.hasher.take().map(Hasher::finish)
                && found != *digest
            {
                let what = format!("it has the digest {found}, the table of contents says {digest}");
                return Err(damaged(self.path, chunk, &what));
            }
        }
        let read = offset..current.at;
        self.current = Some(current);
        Ok(read)
    }
}

impl FileContent for RangedFile<'_, '_, '_> {
    type Error = ScanError;

    fn read(&mut self, place: u64) -> Result<(u64, &[u8]), ScanError> {
        loop {
            if self.current.as_ref().is_none_or(|current| place >= current.end()) {
                self.finish()?;
                let next = self.chunks.partition_point(|chunk| chunk.offset + chunk.size <= place);
                let Some(chunk) = self.chunks.get(next) else { return Ok((place, &[])) };
                self.pieces.open(chunk).map_err(|error| failed(self.path, chunk, error))?;
                self.current = Some(CurrentChunk { chunk, at: chunk.offset, hasher: None });
            }
            let Some(current) = self.current.take().filter(|current| current.at < current.end()) else {
                return Ok((place, &[]));
            };
            let chunk = current.chunk;
            let read = self.step(current)?;
            if place < read.end {
                let bytes = self.pieces.bytes().map_err(|error| failed(self.path, chunk, error.into()))?;
                break Ok((read.start, bytes));
            }
        }
    }
}

fn failed(path: &ImagePath, chunk: &TableChunk, error: PieceError) -> ScanError {
    match error {
        PieceError::Medium(error) => ScanError::Read(error),
        PieceError::Limit(over) => ScanError::Limit(over.advice()),
        damage => damaged(path, chunk, &format!("its compressed data are damaged ({damage})")),
    }
}

fn damaged(path: &ImagePath, chunk: &TableChunk, what: &str) -> ScanError {
    let (offset, size, place) = (chunk.offset, chunk.size, chunk.stored.start);
    ScanError::Piece(format!(
        "{path}: the chunk of {size} bytes at its byte {offset}, stored at byte {place} of the blob, is corrupt: {what}"
    ))
}
