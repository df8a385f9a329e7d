//! One entry of a layer.

use serde::{Deserialize, Serialize};

use super::ImagePath;

/// What a tar entry says of one path, before layers are merged. Whiteouts are entries like any other here; the merge
/// gives them their meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it is.
    pub path: ImagePath,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits with setuid, setgid and sticky: the low twelve bits of `st_mode`.
    pub mode: u32,
    /// Bytes of the file's content as a reader would see it (a sparse file's holes count); 0 for anything but a file.
    pub size: u64,
}

/// The kinds of file that a layer can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file with content of its own.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, with its target exactly as stored.
    Symlink(#[serde(with = "serde_bytes")] Box<[u8]>),
    /// A further name of a file of this layer or of one below.
    Hardlink(ImagePath),
    /// A character device: major and minor number.
    CharDevice(u32, u32),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
}

impl EntryKind {
    /// The letter that `ls -l` prints; hard links are files.
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
