//! Verification of the CRC-32 and size of decoded bytes against the trailers of their members.

use super::member::{End, Trailer};
use super::{InflateError, Piece};
use crate::bounds::BoundsError;

/// CRC-32 and size of contiguous bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Checksum {
    crc: crc32fast::Hasher,
    size: u64,
}

/// Checksums of the bytes between ends of members: one more than there are ends.
#[derive(Debug)]
pub(super) struct Checksums {
    parts: Vec<Checksum>,
    trailers: Vec<Trailer>,
}

impl Checksums {
    /// Checksums of the bytes in `pieces`. Ends count from the first byte.
    pub(super) fn of(pieces: &[Piece], ends: &[End]) -> Result<Self, BoundsError> {
        let mut sums = Self { parts: vec![Checksum::default()], trailers: Vec::new() };
        let mut ends = ends.iter().peekable();
        let mut at = 0;
        for piece in pieces {
            let mut piece = piece.bytes()?;
            while let Some(end) = ends.next_if(|end| end.at <= at + piece.len()) {
                let split = end.at.checked_sub(at).and_then(|at| piece.split_at_checked(at));
                let (before, after) = split.ok_or_else(BoundsError::new)?;
                sums.add(before);
                sums.trailers.push(end.trailer);
                sums.parts.push(Checksum::default());
                at = end.at;
                piece = after;
            }
            sums.add(piece);
            at += piece.len();
        }
        Ok(sums)
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(sum) = self.parts.last_mut() {
            sum.crc.update(bytes);
            sum.size += bytes.len() as u64;
        }
    }
}

impl Checksum {
    /// Adds the following bytes. Every member that ends in them must match its trailer.
    pub(super) fn follow(&mut self, sums: &Checksums) -> Result<(), InflateError> {
        let mut trailers = sums.trailers.iter();
        for part in &sums.parts {
            self.crc.combine(&part.crc);
            self.size += part.size;
            let Some(trailer) = trailers.next() else { continue };
            let sum = std::mem::take(self);
            if sum.size as u32 != trailer.size {
                return Err(InflateError("the size of a gzip member differs from its trailer"));
            }
            if sum.crc.finalize() != trailer.crc {
                return Err(InflateError("the CRC-32 of a gzip member differs from its trailer"));
            }
        }
        Ok(())
    }
}
