//! Scans a squashfs image as if it were one layer.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::squashfs::{Squashfs, SquashfsContent, SquashfsError, SquashfsInode, SquashfsKind};
use model::EntryKind;

use super::extract::FileContent;
use super::tree::{Mark, Tree, TreeFiles, TreeJobs, TreeName, scan_tree};
use super::{LayerScan, ScanError};

/// Scans an image. Reads its directories, and of its files only what the extractors want; `name` is for messages.
pub fn scan_squashfs(image: &mut Squashfs, name: &str, jobs: TreeJobs<'_>) -> Result<LayerScan, ScanError> {
    scan_tree(&mut SquashfsTree { image, name, entered: BTreeSet::new() }, jobs)
}

struct SquashfsTree<'a> {
    image: &'a mut Squashfs,
    name: &'a str,
    /// Numbers of the directories that were listed: each has one name.
    entered: BTreeSet<u32>,
}

impl Tree for SquashfsTree<'_> {
    type Node = SquashfsInode;
    type Files = SquashfsFiles;

    const ADVICE: &'static str = "build or copy the image again";

    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn root(&mut self) -> Result<SquashfsInode, ScanError> {
        Ok(self.image.root()?)
    }

    fn list(&mut self, folder: &SquashfsInode) -> Result<Vec<TreeName<SquashfsInode>>, ScanError> {
        if !self.entered.insert(folder.number) {
            return Err(folder.damaged("a directory has two names").into());
        }
        let names = self.image.list(folder)?.into_iter();
        let known = names.filter_map(|found| {
            let node = found.inode;
            let (kind, size) = match &node.kind {
                SquashfsKind::Directory(_) => (EntryKind::Directory, 0),
                SquashfsKind::File(place) => (EntryKind::File, place.size),
                SquashfsKind::Symlink(target) => (EntryKind::Symlink(target.clone()), 0),
                SquashfsKind::BlockDevice(major, minor) => (EntryKind::BlockDevice(*major, *minor), 0),
                SquashfsKind::CharDevice(major, minor) => (EntryKind::CharDevice(*major, *minor), 0),
                SquashfsKind::Fifo => (EntryKind::Fifo, 0),
                // A layer cannot contain one.
                SquashfsKind::Socket => return None,
            };
            Some(TreeName {
                name: found.name,
                mode: node.mode,
                owner: node.owner,
                size,
                inode: (kind == EntryKind::File && node.is_linked()).then_some((0, u64::from(node.number))),
                mark: Mark::None,
                is_entered: kind == EntryKind::Directory,
                place: node.content_place(),
                kind,
                node,
            })
        });
        Ok(known.collect())
    }

    fn files(&self) -> SquashfsFiles {
        SquashfsFiles(self.image.another())
    }
}

struct SquashfsFiles(Squashfs);

impl TreeFiles for SquashfsFiles {
    type Node = SquashfsInode;
    type Error = SquashfsError;
    type Opened<'f> = SquashfsContent<'f>;

    fn open(&mut self, file: &SquashfsInode) -> Result<SquashfsContent<'_>, SquashfsError> {
        self.0.content(file)
    }
}

impl FileContent for SquashfsContent<'_> {
    type Error = SquashfsError;

    fn read(&mut self, place: u64) -> Result<(u64, &[u8]), SquashfsError> {
        SquashfsContent::read(self, place).map(|bytes| (place, bytes))
    }

    fn peek(&mut self, range: Range<u64>) -> Result<Option<Vec<u8>>, SquashfsError> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let bytes = SquashfsContent::read(self, at)?;
            if bytes.is_empty() {
                break;
            }
            let missing = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let some = bytes.get(..missing).unwrap_or(bytes);
            found.extend_from_slice(some);
            at += some.len() as u64;
        }
        self.rewind();
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::num::NonZeroUsize;
    use std::path::Path;

    use unpack::pipe::Cancel;

    use super::*;
    use model::{Limits, NoProgress, Progress as _};

    #[test]
    fn the_scan_does_not_depend_on_the_number_of_threads() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/squashfs/good.sqsh");
        let limits = Limits::default();
        let cancel = Cancel::default();
        let meter = NoProgress.begin("layer", None);
        let scan = |threads| {
            let file = File::open(&path).unwrap();
            let length = file.metadata().unwrap().len();
            let mut image = Squashfs::open(file, 0..length, &limits).unwrap();
            let threads = NonZeroUsize::new(threads).unwrap();
            scan_squashfs(&mut image, "image", TreeJobs { threads, limits: &limits, meter: &*meter, cancel: &cancel })
        };
        let one = scan(1).unwrap();
        assert!(one.found.len() > 5, "{}", one.found.len());
        assert_eq!(scan(8).unwrap(), one);
    }
}
