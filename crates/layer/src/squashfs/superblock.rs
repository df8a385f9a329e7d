//! The first bytes of an image: its compressor, and the places of its tables.

use super::blocks::Blocks;
use super::decompress::Compressor;
use super::error::SquashfsError;

/// First bytes of an image.
pub const MAGIC: &[u8; 4] = b"hsqs";

/// Length of the superblock, in bytes.
const LENGTH: usize = 96;

/// Sizes that a block of data can have, in bytes.
const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 4 << 10..=1 << 20;

/// What is needed of the superblock. Offsets count from the image's first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Superblock {
    pub(super) block_size: u32,
    /// Reference to the inode of the root directory.
    pub(super) root: u64,
    pub(super) fragments: u32,
    /// Number of users and groups.
    pub(super) ids: u16,
    pub(super) id_table: u64,
    pub(super) inode_table: u64,
    pub(super) directory_table: u64,
    pub(super) fragment_table: u64,
}

impl Superblock {
    /// Reads the superblock, and sets the compressor of the blocks.
    pub(super) fn read(blocks: &mut Blocks) -> Result<Self, SquashfsError> {
        let raw: [u8; LENGTH] = blocks.stored(0)?;
        let at = |offset: u64| blocks.place(offset);
        if raw.first_chunk() != Some(MAGIC) {
            return Err(SquashfsError::damaged(at(0), "it does not begin with hsqs"));
        }
        let [short, long, wide] = [2, 4, 8].map(|width: usize| {
            let raw = &raw;
            move |offset: usize| -> u64 {
                let bytes = raw.iter().skip(offset).take(width).rev();
                bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
        });
        if (short(28), short(30)) != (4, 0) {
            let what = format!("squashfs {}.{} is not supported, only 4.0 is", short(28), short(30));
            return Err(SquashfsError::Unsupported(what));
        }
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let block_size = number(long(12));
        if !BLOCK_SIZES.contains(&block_size) || !block_size.is_power_of_two() {
            return Err(SquashfsError::damaged(at(12), format!("its blocks have {block_size} bytes")));
        }
        if wide(40) > blocks.length() {
            let what = format!("it has {} bytes of {}", blocks.length(), wide(40));
            return Err(SquashfsError::damaged(at(blocks.length()), what));
        }
        let superblock = Self {
            block_size,
            root: wide(32),
            fragments: number(long(16)),
            ids: u16::try_from(short(26)).unwrap_or(u16::MAX),
            id_table: wide(48),
            inode_table: wide(64),
            directory_table: wide(72),
            fragment_table: wide(80),
        };
        if superblock.inode_table > superblock.directory_table || superblock.directory_table > blocks.length() {
            return Err(SquashfsError::damaged(at(64), "its tables are in the wrong order"));
        }
        let compressor = u16::try_from(short(20)).unwrap_or(u16::MAX);
        blocks.compressor = Compressor::of(compressor).map_err(SquashfsError::Unsupported)?;
        Ok(superblock)
    }
}
