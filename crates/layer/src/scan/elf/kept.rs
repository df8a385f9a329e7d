//! The parts of a file that are kept during the scan.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::overflow::Overflowed;

/// Size of a block, in bytes. A small block reuses memory of an earlier file's blocks; large allocations come from the
/// system and go back to it, page by page.
const BLOCK: u64 = 64 << 10;

/// Bytes of a file by offset.
#[derive(Default)]
pub(super) struct Kept {
    /// Blocks by their file offset, a multiple of [`BLOCK`].
    blocks: BTreeMap<u64, KeptBlock>,
    size: usize,
    /// Bytes that are not in memory.
    pub(super) beyond: Option<Overflowed>,
}

#[derive(Debug)]
enum KeptBlock {
    /// The bytes received, from the beginning of the block.
    Bytes(Vec<u8>),
    /// Repetitions of one byte. When patchelf moves a table, it overwrites the old one with `X`: 25 MB of them in
    /// libcusparseLt.
    Only(u8),
}

impl Kept {
    /// Number of bytes that it holds in memory.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The blocks that cover a range.
    pub(super) const fn around(range: &Range<u64>) -> Range<u64> {
        range.start / BLOCK * BLOCK..range.end.saturating_add(BLOCK - 1) / BLOCK * BLOCK
    }

    /// Keeps bytes. Offsets ascend; a range skipped within a block reads as zeros.
    pub(super) fn push(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let from = within(offset % BLOCK);
            let (here, rest) = bytes.split_at(bytes.len().min(within(BLOCK) - from));
            self.fill(offset - from as u64, from, here);
            offset += here.len() as u64;
            bytes = rest;
        }
    }

    fn fill(&mut self, place: u64, from: usize, bytes: &[u8]) {
        let block = self.blocks.entry(place).or_insert_with(|| KeptBlock::Bytes(Vec::with_capacity(within(BLOCK))));
        let KeptBlock::Bytes(have) = block else { return };
        let before = have.len();
        have.resize(from, 0);
        have.extend_from_slice(bytes);
        self.size += have.len().saturating_sub(before);
        if let &[first, ..] = have.as_slice()
            && have.len() == within(BLOCK)
            && have.iter().all(|byte| *byte == first)
        {
            *block = KeptBlock::Only(first);
        }
    }

    /// Returns exactly `length` bytes at `offset`.
    pub(super) fn get(&self, what: &str, offset: u64, length: u64) -> Result<Cow<'_, [u8]>, String> {
        let bytes = self.up_to(what, offset, length)?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        Err(format!("{what} at offset {offset} has {length} bytes, {} are available", bytes.len()))
    }

    /// Returns the available bytes from `offset` on, at most `most`.
    pub(super) fn up_to(&self, what: &str, offset: u64, most: u64) -> Result<Cow<'_, [u8]>, String> {
        let mut bytes = Cow::Borrowed([].as_slice());
        let missing = |have: &[u8]| most.saturating_sub(have.len() as u64).min(BLOCK);
        while missing(&bytes) > 0 {
            let Some(at) = offset.checked_add(bytes.len() as u64) else { break };
            let more = self.within_block(at, missing(&bytes));
            if more.is_empty() {
                break;
            } else if bytes.is_empty() {
                bytes = more;
            } else {
                bytes.to_mut().extend_from_slice(&more);
            }
        }
        if bytes.is_empty() && most > 0 { Err(format!("{what} at offset {offset} is missing")) } else { Ok(bytes) }
    }

    /// Returns the available bytes from `at` on, at most `most` and no further than the end of the block.
    fn within_block(&self, at: u64, most: u64) -> Cow<'_, [u8]> {
        let from = at % BLOCK;
        let to = within((from + most).min(BLOCK));
        match self.blocks.get(&(at - from)) {
            Some(KeptBlock::Bytes(have)) if have.len() > within(from) => {
                Cow::Borrowed(have.get(within(from)..have.len().min(to)).unwrap_or_default())
            }
            Some(KeptBlock::Only(byte)) => Cow::Owned(vec![*byte; to - within(from)]),
            Some(KeptBlock::Bytes(_)) | None => {
                let beyond = self.beyond.as_ref().map(|beyond| beyond.up_to(at, most.min(BLOCK - from)));
                Cow::Owned(beyond.unwrap_or_default())
            }
        }
    }
}

/// Converts a number up to [`BLOCK`].
fn within(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_bytes_it_was_given_and_no_others() {
        let mut random = fastrand::Rng::with_seed(3);
        // Every kind of content: noise, blocks of one byte, and transitions between them.
        let mut file: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(150_000).collect();
        file.extend(std::iter::repeat_n(b'X', 200_000));
        file.extend(std::iter::repeat_n(0, 70_000));
        file.extend(std::iter::repeat_with(|| random.u8(..)).take(50_000));
        let mut kept = Kept::default();
        let mut at = 0;
        let left_out = 131_072..196_608_u64;
        while at < file.len() {
            let end = file.len().min(at + random.usize(1..90_000));
            let piece = at as u64..end as u64;
            for part in [piece.start..piece.end.min(left_out.start), piece.start.max(left_out.end)..piece.end] {
                if !part.is_empty() {
                    kept.push(part.start, &file[within(part.start)..within(part.end)]);
                }
            }
            at = end;
        }
        assert_eq!(kept.size(), file.len() - (1 << 16));
        for _ in 0..2000 {
            let from = random.u64(..file.len() as u64 + 10);
            let length = random.u64(1..250_000);
            let end = from + length;
            let is_there = end <= file.len() as u64 && (end <= left_out.start || from >= left_out.end);
            match kept.get("it", from, length) {
                Ok(bytes) => assert!(is_there && *bytes == file[within(from)..within(end)], "{from} {length}"),
                Err(why) => assert!(!is_there, "{from} {length}: {why}"),
            }
        }
    }

    #[test]
    fn a_hole_in_a_block_reads_as_zeros() {
        let mut kept = Kept::default();
        kept.push(0, b"ab");
        kept.push(5, b"c");
        assert_eq!(*kept.get("it", 0, 6).unwrap(), *b"ab\0\0\0c");
    }
}
