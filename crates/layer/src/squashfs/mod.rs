//! Reader of squashfs 4.0 images (Linux, `Documentation/filesystems/squashfs.rst` and `fs/squashfs/squashfs_fs.h`).
//!
//! It reads the tables and blocks that are requested, and keeps only a few of them. The crate for squashfs reads all
//! inodes and directories at once, without a limit, refuses symlinks over 255 bytes, and panics on names that are not
//! UTF-8; enroot's images need LZO, which it decodes only with code under the GPL.

mod blocks;
mod content;
mod decompress;
mod directory;
mod error;
mod inode;
mod lzo;
mod owners;
mod superblock;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use model::Limits;

use blocks::Blocks;

pub use content::SquashfsContent;
pub use directory::SquashfsName;
pub use error::SquashfsError;
pub use inode::{SquashfsInode, SquashfsKind};
pub use superblock::MAGIC;

use superblock::Superblock;

/// An image whose tables and files can be read in any order.
#[derive(Debug)]
pub struct Squashfs {
    blocks: Blocks,
    superblock: Superblock,
    /// Users and groups that were looked up, by their numbers in the table.
    ids: BTreeMap<u16, u32>,
}

impl Squashfs {
    /// Opens the image in this range of a file.
    pub fn open(file: File, range: Range<u64>, limits: &Limits) -> Result<Self, SquashfsError> {
        let mut blocks = Blocks::new(file, range, limits);
        let superblock = Superblock::read(&mut blocks)?;
        Ok(Self { blocks, superblock, ids: BTreeMap::new() })
    }

    /// Another reader of the same image, for another thread. What all readers decompress counts against the limits.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { blocks: self.blocks.another(), superblock: self.superblock, ids: BTreeMap::new() }
    }

    /// The root directory.
    pub fn root(&mut self) -> Result<SquashfsInode, SquashfsError> {
        self.inode(self.superblock.root)
    }
}

#[cfg(test)]
mod tests;
