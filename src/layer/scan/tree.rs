//! Scans a tree of files that is not a tar, as if it were one layer.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;

use crate::model::{Ambiguities, Entry, EntryKind, Gap, ImagePath, Limits, Meter, OverLimit};
use unpack::pipe::Cancel;

use super::extract::{FileContent, look};
use super::{Compression, EXTRACTORS, LayerScan, ScanError};

/// A tree whose folders can be listed and whose files can be opened.
pub(super) trait Tree {
    /// The place of a file in the tree.
    type Node;
    /// Error of reading a file.
    type Error: Display;
    /// An open file.
    type Opened<'a>: FileContent<Error = Self::Error>
    where
        Self: 'a;

    /// Advice on a file that cannot be read.
    const ADVICE: &'static str;

    /// The name of the tree, for messages.
    fn name(&self) -> String;

    /// The root folder.
    fn root(&mut self) -> Result<Self::Node, ScanError>;

    /// The names in a folder, sorted.
    fn list(&mut self, folder: &Self::Node) -> Result<Vec<TreeName<Self::Node>>, ScanError>;

    /// Opens a regular file.
    fn open<'a>(&'a mut self, file: &Self::Node) -> Result<Self::Opened<'a>, Self::Error>;
}

/// A name in a folder.
pub(super) struct TreeName<N> {
    pub(super) name: Box<[u8]>,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    /// Size of a regular file, in bytes.
    pub(super) size: u64,
    /// Identifies a file that may have several names.
    pub(super) inode: Option<(u64, u64)>,
    pub(super) mark: Mark,
    /// True if this folder's content belongs to the tree.
    pub(super) is_entered: bool,
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

/// Scans a tree from its root down.
pub(super) fn scan_tree<T: Tree>(
    tree: &mut T,
    limits: &Limits,
    meter: &dyn Meter,
    cancel: &Cancel,
) -> Result<LayerScan, ScanError> {
    let mut scan = LayerScan {
        compression: Compression::None,
        unpacked: 0,
        diff_id: None,
        entries: Vec::new(),
        found: BTreeMap::new(),
        // A tree holds no tar: another program has unpacked it.
        ambiguities: Some(Ambiguities::default()),
    };
    let mut inodes = BTreeMap::new();
    let mut waiting = vec![(ImagePath::root(), tree.root()?)];
    while let Some((folder, node)) = waiting.pop() {
        for found in tree.list(&node)? {
            if cancel.is_cancelled() {
                return Err(ScanError::Read(io::Error::other("cancelled")));
            }
            let path = folder.child(&found.name);
            if path.as_bytes().len() > limits.path {
                let what = format!("{}: a path has {} bytes", tree.name(), path.as_bytes().len());
                return Err(ScanError::Limit(OverLimit::new(what, "path", limits.path as u64).to_string()));
            }
            let marker = |path: ImagePath| Entry { path, kind: EntryKind::File, mode: 0, size: 0 };
            match found.mark {
                Mark::None => {}
                // Layers spell it this way (OCI image-spec, `layer.md`, "Whiteouts").
                Mark::Opaque => scan.entries.push(marker(path.join(b".wh..wh..opq"))),
                Mark::Whiteout => {
                    let hidden = [b".wh.", path.file_name()].concat();
                    scan.entries.push(marker(path.parent().join(&hidden)));
                    continue;
                }
            }
            let known = found.inode.and_then(|inode| inodes.insert(inode, path.clone()));
            let kind = known.map_or(found.kind, EntryKind::Hardlink);
            let entry = Entry { path, kind, mode: found.mode, size: found.size };
            if entry.kind == EntryKind::File && entry.size > 0 {
                let looked = tree.open(&found.node).and_then(|mut file| look(&mut file, EXTRACTORS, &entry, limits));
                let answers = looked.unwrap_or_else(|error| {
                    vec![Err(Gap::new(format!("{}: {error}", entry.path)).settled_by(T::ADVICE))]
                });
                if !answers.is_empty() {
                    scan.found.insert(scan.entries.len(), answers);
                }
                meter.add(entry.size);
                scan.unpacked += entry.size;
            }
            if found.is_entered {
                waiting.push((entry.path.clone(), found.node));
            }
            scan.entries.push(entry);
            if scan.entries.len() as u64 > limits.entries {
                let what = format!("{} has {} entries", tree.name(), scan.entries.len());
                return Err(ScanError::Limit(OverLimit::new(what, "entries", limits.entries).to_string()));
            }
        }
    }
    Ok(scan)
}
