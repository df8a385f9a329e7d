//! CRC-32 and size of unpacked bytes, against the trailers of their members.

use super::Fault;
use super::member::Trailer;
use super::stretch::End;

/// Of bytes that follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    crc: crc32fast::Hasher,
    size: u64,
}

/// Of the bytes between ends of members: one more than ends.
#[derive(Debug)]
pub(super) struct Sums {
    parts: Vec<Sum>,
    trailers: Vec<Trailer>,
}

impl Sums {
    /// Of some bytes in pieces. The ends are counted from the first on.
    pub(super) fn of<'b>(pieces: impl IntoIterator<Item = &'b [u8]>, ends: &[End]) -> Self {
        let mut sums = Self { parts: vec![Sum::default()], trailers: Vec::new() };
        let mut ends = ends.iter().peekable();
        let mut at = 0;
        for mut piece in pieces {
            while let Some(end) = ends.next_if(|end| end.at <= at + piece.len()) {
                let (before, after) = piece.split_at(end.at - at);
                sums.add(before);
                sums.trailers.push(end.trailer);
                sums.parts.push(Sum::default());
                at = end.at;
                piece = after;
            }
            sums.add(piece);
            at += piece.len();
        }
        sums
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(sum) = self.parts.last_mut() {
            sum.crc.update(bytes);
            sum.size += bytes.len() as u64;
        }
    }
}

impl Sum {
    /// Adds what follows. Every member that ends there must be what its trailer says.
    pub(super) fn follow(&mut self, sums: &Sums) -> Result<(), Fault> {
        let mut trailers = sums.trailers.iter();
        for part in &sums.parts {
            self.crc.combine(&part.crc);
            self.size += part.size;
            let Some(trailer) = trailers.next() else { continue };
            let sum = std::mem::take(self);
            if sum.size as u32 != trailer.size {
                return Err(Fault("a gzip member unpacks to another size than its trailer says"));
            }
            if sum.crc.finalize() != trailer.crc {
                return Err(Fault("a gzip member unpacks to bytes of another CRC-32 than its trailer says"));
            }
        }
        Ok(())
    }
}
