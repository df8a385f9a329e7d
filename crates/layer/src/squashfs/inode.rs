//! Inodes.

use model::{FileOwner, OverLimit};

use super::Squashfs;
use super::blocks::TableCursor;
use super::error::SquashfsError;

/// A file, directory, link or device.
#[derive(Clone, Debug)]
pub struct SquashfsInode {
    /// Number of the inode: names with the same number are hard links.
    pub number: u32,
    /// Permission bits.
    pub mode: u32,
    /// Its user and group; `None` if the image does not say.
    pub owner: Option<FileOwner>,
    /// Its type.
    pub kind: SquashfsKind,
    /// Number of its names.
    pub(super) links: u32,
    /// Offset in the file of its block.
    pub(super) at: u64,
}

/// Types of inodes.
#[derive(Clone, Debug)]
pub enum SquashfsKind {
    /// A directory.
    Directory(DirectoryPlace),
    /// A regular file.
    File(FilePlace),
    /// A symlink, with its target.
    Symlink(Box<[u8]>),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A character device: major and minor number.
    CharDevice(u32, u32),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// The place of a directory's names.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryPlace {
    /// Position in the directory table.
    pub(super) cursor: TableCursor,
    /// Length in the table, in bytes.
    pub(super) length: u32,
}

/// The place of a file's bytes.
#[derive(Clone, Copy, Debug)]
pub struct FilePlace {
    /// Size of the file, in bytes.
    pub size: u64,
    /// Offset of the first block of data.
    pub(super) start: u64,
    /// Fragment block with the file's last bytes, and their offset in it.
    pub(super) tail: Option<(u32, u32)>,
    /// Position of the list of the blocks' lengths.
    pub(super) lengths: TableCursor,
}

impl SquashfsInode {
    /// True if the inode may have several names.
    pub const fn is_linked(&self) -> bool {
        self.links > 1
    }

    /// Orders files so that those whose bytes share a block, or follow each other, are neighbours.
    pub const fn content_place(&self) -> (u32, u64) {
        match &self.kind {
            SquashfsKind::File(FilePlace { tail: Some((fragment, inside)), .. }) => (*fragment, *inside as u64),
            SquashfsKind::File(FilePlace { start, .. }) => (u32::MAX, *start),
            _ => (u32::MAX, u64::MAX),
        }
    }

    /// Damage that concerns this inode.
    pub fn damaged(&self, what: &str) -> SquashfsError {
        SquashfsError::damaged(self.at, what)
    }
}

impl Squashfs {
    /// Reads an inode: the upper bits of a reference are the offset of a block in the inode table, the lower 16 the
    /// offset in that block.
    pub(super) fn inode(&mut self, reference: u64) -> Result<SquashfsInode, SquashfsError> {
        let table = self.superblock.inode_table;
        // Cannot overflow: the table lies within the image, and a reference has 48 bits for the offset.
        let block = table + (reference >> 16);
        let at = self.blocks.place(block);
        if block >= self.superblock.directory_table {
            return Err(SquashfsError::damaged(at, "a name refers to an inode outside the table"));
        }
        let mut cursor = TableCursor { block, inside: usize::from((reference & 0xffff) as u16) };
        let cursor = &mut cursor;
        let kind = self.blocks.short(cursor)?;
        let mode = u32::from(self.blocks.short(cursor)? & 0o7777);
        let user = self.blocks.short(cursor)?;
        let group = self.blocks.short(cursor)?;
        // The time.
        self.blocks.array::<4>(cursor)?;
        let number = self.blocks.long(cursor)?;
        let mut links = 1;
        let kind = match kind {
            1 | 8 => {
                let (start, length, inside) = if kind == 1 {
                    let start = self.blocks.long(cursor)?;
                    self.blocks.long(cursor)?;
                    (start, u32::from(self.blocks.short(cursor)?), self.blocks.short(cursor)?)
                } else {
                    self.blocks.long(cursor)?;
                    let length = self.blocks.long(cursor)?;
                    let start = self.blocks.long(cursor)?;
                    // Parent, and number of index entries.
                    self.blocks.array::<6>(cursor)?;
                    (start, length, self.blocks.short(cursor)?)
                };
                let block = self.superblock.directory_table + u64::from(start);
                SquashfsKind::Directory(DirectoryPlace {
                    cursor: TableCursor { block, inside: usize::from(inside) },
                    // The size includes three bytes for `.` and `..`, which are not stored.
                    length: length.saturating_sub(3),
                })
            }
            2 | 9 => {
                let (start, size, fragment, offset) = if kind == 2 {
                    let [start, fragment, offset, size] = self.longs(cursor)?;
                    (u64::from(start), u64::from(size), fragment, offset)
                } else {
                    let start = self.blocks.wide(cursor)?;
                    let size = self.blocks.wide(cursor)?;
                    self.blocks.wide(cursor)?;
                    let [count, fragment, offset, _attributes] = self.longs(cursor)?;
                    links = count;
                    (start, size, fragment, offset)
                };
                let tail = (fragment != u32::MAX).then_some((fragment, offset));
                SquashfsKind::File(FilePlace { size, start, tail, lengths: *cursor })
            }
            3 | 10 => {
                let [count, length] = self.longs(cursor)?;
                links = count;
                let length = length as usize;
                let most = self.blocks.limits().path;
                if length > most {
                    let what = format!("the target of a link at byte {at} has {length} bytes");
                    return Err(SquashfsError::Limit(OverLimit::new(what, "path", most as u64)));
                }
                let mut target = vec![0; length];
                self.blocks.read(cursor, &mut target)?;
                SquashfsKind::Symlink(target.into())
            }
            4 | 5 | 11 | 12 => {
                let [count, device] = self.longs(cursor)?;
                links = count;
                // Linux's encoding of device numbers (`new_decode_dev`).
                let major = (device >> 8) & 0xfff;
                let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
                if matches!(kind, 4 | 11) {
                    SquashfsKind::BlockDevice(major, minor)
                } else {
                    SquashfsKind::CharDevice(major, minor)
                }
            }
            6 | 13 => SquashfsKind::Fifo,
            7 | 14 => SquashfsKind::Socket,
            _ => return Err(SquashfsError::damaged(at, format!("an inode has the unknown type {kind}"))),
        };
        let owner = self.owner(user, group);
        Ok(SquashfsInode { number, mode, owner, kind, links, at })
    }

    /// Reads little-endian numbers of a table.
    pub(super) fn longs<const N: usize>(&mut self, cursor: &mut TableCursor) -> Result<[u32; N], SquashfsError> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.blocks.long(cursor)?;
        }
        Ok(numbers)
    }
}
