//! Directories.

use model::OverLimit;

use super::Squashfs;
use super::error::SquashfsError;
use super::inode::{SquashfsInode, SquashfsKind};

/// A name in a directory.
#[derive(Clone, Debug)]
pub struct SquashfsName {
    /// One component of a path.
    pub name: Box<[u8]>,
    /// The file of this name.
    pub inode: SquashfsInode,
}

impl Squashfs {
    /// The names in a directory, in the order of the image: sorted, unless it is damaged.
    pub fn list(&mut self, directory: &SquashfsInode) -> Result<Vec<SquashfsName>, SquashfsError> {
        let SquashfsKind::Directory(place) = directory.kind else {
            return Err(directory.damaged("a file is used as a directory"));
        };
        let mut names: Vec<SquashfsName> = Vec::new();
        let mut cursor = place.cursor;
        let mut rest = place.length;
        while rest > 0 {
            let at = self.blocks.place(cursor.block);
            let damaged = |what: &str| SquashfsError::damaged(at, what);
            let too_long = || damaged("a directory is longer than its size");
            let [count, block, _number] = self.longs(&mut cursor)?;
            rest = rest.checked_sub(12).ok_or_else(too_long)?;
            if count >= 256 {
                return Err(damaged("a directory has more than 256 names under one header"));
            }
            for _ in 0..=count {
                let offset = self.blocks.short(&mut cursor)?;
                // Number and type, which the inode has too.
                self.blocks.array::<4>(&mut cursor)?;
                let length = u32::from(self.blocks.short(&mut cursor)?) + 1;
                rest = rest.checked_sub(8 + length).ok_or_else(too_long)?;
                if length > 256 {
                    return Err(damaged("a name has more than 256 bytes"));
                }
                let mut name = vec![0; length as usize];
                self.blocks.read(&mut cursor, &mut name)?;
                if name == b"." || name == b".." || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
                    return Err(damaged("a name is not a file name"));
                }
                // Linux finds names by their order, so a name that is out of order or there twice has no one meaning.
                if names.last().is_some_and(|last| *last.name >= *name) {
                    return Err(damaged("the names of a directory are not in order"));
                }
                if names.len() as u64 >= self.blocks.limits().entries {
                    let limit = self.blocks.limits().entries;
                    let what = format!("a directory at byte {at} has more than {limit} names");
                    return Err(SquashfsError::Limit(OverLimit::new(what, "entries", limit)));
                }
                let inode = self.inode(u64::from(block) << 16 | u64::from(offset))?;
                names.push(SquashfsName { name: name.into(), inode });
            }
        }
        Ok(names)
    }
}
