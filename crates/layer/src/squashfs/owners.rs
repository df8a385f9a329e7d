//! The table of users and groups, to which inodes refer by number.

use model::FileOwner;

use super::Squashfs;
use super::blocks::TableCursor;

/// Number of entries in a block of the table.
const ENTRIES: u16 = 2048;

impl Squashfs {
    /// The owner that an inode's two numbers mean; `None` where the table does not say.
    pub(super) fn owner(&mut self, user: u16, group: u16) -> Option<FileOwner> {
        Some(FileOwner { user: self.id(user)?, group: self.id(group)? })
    }

    fn id(&mut self, number: u16) -> Option<u32> {
        if number >= self.superblock.ids {
            return None;
        }
        if let Some(id) = self.ids.get(&number) {
            return Some(*id);
        }
        let slot = self.superblock.id_table.checked_add(8 * u64::from(number / ENTRIES))?;
        let block = u64::from_le_bytes(self.blocks.stored(slot).ok()?);
        let mut cursor = TableCursor { block, inside: 4 * usize::from(number % ENTRIES) };
        let id = self.blocks.long(&mut cursor).ok()?;
        self.ids.insert(number, id);
        Some(id)
    }
}
