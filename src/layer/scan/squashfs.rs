//! Scans a squashfs image as if it were one layer.

use std::collections::BTreeSet;

use crate::layer::squashfs::{Squashfs, SquashfsContent, SquashfsError, SquashfsInode, SquashfsKind};
use crate::model::{EntryKind, Limits, Meter};
use unpack::pipe::Cancel;

use super::extract::FileContent;
use super::tree::{Mark, Tree, TreeName, scan_tree};
use super::{LayerScan, ScanError};

/// Scans an image. Reads its directories, and of its files only what the extractors want; `name` is for messages.
pub fn scan_squashfs(
    image: &mut Squashfs,
    name: &str,
    limits: &Limits,
    meter: &dyn Meter,
    cancel: &Cancel,
) -> Result<LayerScan, ScanError> {
    scan_tree(&mut SquashfsTree { image, name, entered: BTreeSet::new() }, limits, meter, cancel)
}

struct SquashfsTree<'a> {
    image: &'a mut Squashfs,
    name: &'a str,
    /// Numbers of the directories that were listed: each has one name.
    entered: BTreeSet<u32>,
}

impl Tree for SquashfsTree<'_> {
    type Node = SquashfsInode;
    type Error = SquashfsError;
    type Opened<'f>
        = SquashfsContent<'f>
    where
        Self: 'f;

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
                size,
                inode: (kind == EntryKind::File && node.is_linked()).then_some((0, u64::from(node.number))),
                mark: Mark::None,
                is_entered: kind == EntryKind::Directory,
                kind,
                node,
            })
        });
        Ok(known.collect())
    }

    fn open<'f>(&'f mut self, file: &SquashfsInode) -> Result<SquashfsContent<'f>, SquashfsError> {
        self.image.content(file)
    }
}

impl FileContent for SquashfsContent<'_> {
    type Error = SquashfsError;

    fn read(&mut self, place: u64) -> Result<(u64, &[u8]), SquashfsError> {
        SquashfsContent::read(self, place).map(|bytes| (place, bytes))
    }
}
