//! Scans a tree of files that is not a tar, as if it were one layer: lists its folders, then inspects its files on
//! several threads.

mod inspect;
mod walk;

use std::fmt::Display;
use std::num::NonZeroUsize;

use model::{EntryKind, FileOwner, Limits, Meter};
use unpack::pipe::Cancel;

use super::ScanError;
use super::extract::FileContent;

pub(super) use walk::scan_tree;

/// The means of a scan.
#[derive(Clone, Copy, Debug)]
pub struct TreeJobs<'a> {
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Limits of the run.
    pub limits: &'a Limits,
    /// Counts the sizes of the files that were inspected.
    pub meter: &'a dyn Meter,
    /// Ends the scan early.
    pub cancel: &'a Cancel,
}

/// A tree whose folders can be listed.
pub(super) trait Tree {
    /// The place of a file in the tree.
    type Node: Send;
    /// Opens the tree's files.
    type Files: TreeFiles<Node = Self::Node> + Send;

    /// Advice on a file that cannot be read.
    const ADVICE: &'static str;

    /// The name of the tree, for messages.
    fn name(&self) -> String;

    /// The root folder.
    fn root(&mut self) -> Result<Self::Node, ScanError>;

    /// The names in a folder, sorted.
    fn list(&mut self, folder: &Self::Node) -> Result<Vec<TreeName<Self::Node>>, ScanError>;

    /// Opens files for one thread.
    fn files(&self) -> Self::Files;
}

/// Opens the regular files of a tree.
pub(super) trait TreeFiles {
    /// The place of a file in the tree.
    type Node;
    /// Error of reading a file.
    type Error: Display;
    /// An open file.
    type Opened<'a>: FileContent<Error = Self::Error>
    where
        Self: 'a;

    /// Opens a regular file.
    fn open<'a>(&'a mut self, file: &Self::Node) -> Result<Self::Opened<'a>, Self::Error>;
}

/// A name in a folder.
pub(super) struct TreeName<N> {
    pub(super) name: Box<[u8]>,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    /// Numeric user and group; `None` if the tree does not record those of the image.
    pub(super) owner: Option<FileOwner>,
    /// Size of a regular file, in bytes.
    pub(super) size: u64,
    /// Identifies a file that may have several names.
    pub(super) inode: Option<(u64, u64)>,
    pub(super) mark: Mark,
    /// True if this folder's content belongs to the tree.
    pub(super) is_entered: bool,
    /// Orders regular files as they lie in the medium.
    pub(super) place: (u32, u64),
    pub(super) node: N,
}

/// Meaning of a file that is not content of its folder, but marks other files.
pub(super) enum Mark {
    None,
    /// The path does not exist, whatever lower layers contain.
    Whiteout,
    /// The directory hides the contents of lower layers.
    Opaque,
}
