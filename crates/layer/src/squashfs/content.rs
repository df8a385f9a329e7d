//! The bytes of files.

use std::sync::Arc;

use model::index;

use super::Squashfs;
use super::blocks::{TableCursor, stored_length};
use super::error::SquashfsError;
use super::inode::{FilePlace, SquashfsInode, SquashfsKind};

/// Reads a file at ascending offsets. Blocks that are skipped are not read.
#[derive(Debug)]
pub struct SquashfsContent<'a> {
    image: &'a mut Squashfs,
    file: FilePlace,
    /// Position of the length of the next block.
    lengths: TableCursor,
    /// Number of the next block.
    next: u64,
    /// Offset of the next block in the image.
    offset: u64,
    /// The last block that was read, and its offset in the file.
    block: Vec<u8>,
    start: u64,
}

impl Squashfs {
    /// Opens a regular file.
    pub fn content(&mut self, inode: &SquashfsInode) -> Result<SquashfsContent<'_>, SquashfsError> {
        let SquashfsKind::File(file) = inode.kind else {
            return Err(inode.damaged("a directory or device is used as a file"));
        };
        let lengths = file.lengths;
        let offset = file.start;
        Ok(SquashfsContent { image: self, file, lengths, next: 0, offset, block: Vec::new(), start: 0 })
    }

    /// The fragment block with this number.
    fn fragment(&mut self, number: u32, at: u64) -> Result<Arc<[u8]>, SquashfsError> {
        /// Number of entries in a block of the fragment table.
        const ENTRIES: u32 = 512;
        let superblock = self.superblock;
        if number >= superblock.fragments {
            return Err(SquashfsError::damaged(at, format!("a file refers to the unknown fragment {number}")));
        }
        let slot = superblock.fragment_table.checked_add(8 * u64::from(number / ENTRIES));
        let slot = slot.ok_or_else(|| SquashfsError::damaged(at, "the table of fragments is outside the image"))?;
        let block = u64::from_le_bytes(self.blocks.stored(slot)?);
        let mut cursor = TableCursor { block, inside: 16 * (number % ENTRIES) as usize };
        let start = self.blocks.wide(&mut cursor)?;
        let stored = self.blocks.long(&mut cursor)?;
        self.blocks.fragment(start, stored, superblock.block_size)
    }
}

impl SquashfsContent<'_> {
    /// Returns the bytes from `place` to the end of its block; empty at the end of the file. `place` must not be before
    /// that of the last call.
    pub fn read(&mut self, place: u64) -> Result<&[u8], SquashfsError> {
        if place >= self.file.size {
            return Ok(&[]);
        }
        let size = u64::from(self.image.superblock.block_size);
        if self.block.is_empty() || place >= self.start + self.block.len() as u64 {
            let loaded = self.load(place / size);
            if loaded.is_err() {
                self.block.clear();
            }
            loaded?;
            self.start = place / size * size;
        }
        // A block covers the place, because `load` checked its length.
        let inside = usize::try_from(place.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.block.get(inside..).unwrap_or_default())
    }

    /// Begins again: the next read may be anywhere.
    pub fn rewind(&mut self) {
        (self.lengths, self.next, self.offset) = (self.file.lengths, 0, self.file.start);
        self.block.clear();
    }

    /// Reads a block of the file, or its last bytes from a fragment.
    fn load(&mut self, number: u64) -> Result<(), SquashfsError> {
        let size = u64::from(self.image.superblock.block_size);
        // At most the size of a block, 1 MiB.
        let expected = size.min(self.file.size - number * size);
        let at = self.image.blocks.place(self.offset);
        if let (Some((fragment, inside)), true) = (self.file.tail, expected < size) {
            let block = self.image.fragment(fragment, at)?;
            let start = inside as usize;
            let tail = block.get(start..start + index(expected)?);
            let tail = tail.ok_or_else(|| SquashfsError::damaged(at, "the end of a file is outside its fragment"))?;
            tail.clone_into(&mut self.block);
            return Ok(());
        }
        loop {
            let stored = self.image.blocks.long(&mut self.lengths)?;
            let offset = self.offset;
            let outside = || SquashfsError::damaged(at, "a block of data is outside the image");
            self.offset = offset.checked_add(u64::from(stored_length(stored))).ok_or_else(outside)?;
            self.next += 1;
            if self.next <= number {
                continue;
            }
            if stored_length(stored) == 0 {
                self.image.blocks.count(expected)?;
                self.block.clear();
                self.block.resize(index(expected)?, 0);
                return Ok(());
            }
            self.image.blocks.data(offset, stored, self.image.superblock.block_size, &mut self.block)?;
            if self.block.len() as u64 != expected {
                let what = format!("a block of data has {} bytes, {expected} are expected", self.block.len());
                return Err(SquashfsError::damaged(self.image.blocks.place(offset), what));
            }
            return Ok(());
        }
    }
}
