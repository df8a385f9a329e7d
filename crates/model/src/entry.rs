//! Entries of a layer.

use serde::{Deserialize, Serialize};

use super::ImagePath;

/// A tar entry before layers are merged. A whiteout is an ordinary entry here; the merge applies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path of the entry.
    pub path: ImagePath,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Permission bits including setuid, setgid and sticky: the low twelve bits of `st_mode`.
    pub mode: u32,
    /// Numeric user and group; `None` if the medium does not record those of the image.
    pub owner: Option<FileOwner>,
    /// Apparent size of a file's content in bytes, including the holes of a sparse file; 0 for any other type.
    pub size: u64,
}

/// Numeric user and group that own a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOwner {
    /// The user; 0 is root.
    pub user: u32,
    /// The group; 0 is root.
    pub group: u32,
}

impl FileOwner {
    /// The user root and its group.
    pub const ROOT: Self = Self { user: 0, group: 0 };
}

/// Types of entries in a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file with content of its own.
    File,
    /// A directory.
    Directory,
    /// A symlink, with its target exactly as stored.
    Symlink(#[serde(with = "serde_bytes")] Box<[u8]>),
    /// A hard link to a file of this layer or of a lower one.
    Hardlink(ImagePath),
    /// A character device: major and minor number.
    CharDevice(u32, u32),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
}

impl EntryKind {
    /// Returns the letter that `ls -l` prints; a hard link is a file.
    pub const fn letter(&self) -> char {
        match self {
            Self::File | Self::Hardlink(_) => '-',
            Self::Directory => 'd',
            Self::Symlink(_) => 'l',
            Self::CharDevice(..) => 'c',
            Self::BlockDevice(..) => 'b',
            Self::Fifo => 'p',
        }
    }
}
