//! Lists the folders of a tree.

use std::collections::BTreeMap;
use std::io;

use model::{Entry, EntryKind, ImagePath, OverLimit};

use crate::tar::LayerPaths;

use super::super::{Compression, LayerScan, ScanError};
use super::inspect::{ListedFile, inspect};
use super::{Mark, Tree, TreeJobs};

/// Scans a tree from its root down.
pub(in super::super) fn scan_tree<T: Tree>(tree: &mut T, jobs: TreeJobs<'_>) -> Result<LayerScan, ScanError> {
    let TreeJobs { limits, cancel, .. } = jobs;
    let mut files = Vec::new();
    let mut scan = LayerScan {
        compression: Compression::None,
        unpacked: 0,
        diff_id: None,
        entries: Vec::new(),
        found: BTreeMap::new(),
        // A tree holds no tar: another program has unpacked it.
    };
    let mut inodes = BTreeMap::new();
    let mut paths = LayerPaths::default();
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
            let target = if let EntryKind::Symlink(target) = &found.kind { target.len() } else { 0 };
            paths
                .count_bytes(&path, target, limits)
                .map_err(|over| ScanError::Limit(format!("{}: {over}", tree.name())))?;
            let marker = |path: ImagePath| Entry { path, kind: EntryKind::File, mode: 0, owner: None, size: 0 };
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
            let entry = Entry { path, kind, mode: found.mode, owner: found.owner, size: found.size };
            if entry.kind == EntryKind::File && entry.size > 0 {
                scan.unpacked += entry.size;
                files.push(ListedFile {
                    index: scan.entries.len(),
                    size: entry.size,
                    place: found.place,
                    node: found.node,
                });
            } else if found.is_entered {
                waiting.push((entry.path.clone(), found.node));
            }
            scan.entries.push(entry);
            if scan.entries.len() as u64 > limits.entries {
                let what = format!("{} has {} entries", tree.name(), scan.entries.len());
                return Err(ScanError::Limit(OverLimit::new(what, "entries", limits.entries).to_string()));
            }
        }
    }
    scan.found = inspect(tree, files, &scan.entries, jobs)?;
    Ok(scan)
}
