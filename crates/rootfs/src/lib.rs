//! The file system that a container would see: ordered layers folded into one tree that records the layer of each file.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod access;
mod fold;
mod listing;
pub mod loader;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use layer::scan::LayerScan;
use model::{EntryKind, FileOwner, Found, Gap, ImagePath, Site};

pub use access::{Credentials, Denied, FileAccess, Refusal};
pub use listing::listing;

/// The merged file system.
#[derive(Debug)]
pub struct RootFs {
    nodes: Vec<TreeNode>,
    /// Owners other than root: few nodes have one. `None` is an unknown owner.
    owners: BTreeMap<NodeId, Option<FileOwner>>,
    layers: Vec<LayerTrace>,
    /// Libraries that layers remove from lower ones.
    removed: Vec<(ImagePath, u32)>,
    /// The files with findings, computed on first use: several callers need them, and they are few.
    read: OnceLock<Vec<(ImagePath, NodeId)>>,
    symlink_limit: usize,
    loader_steps: usize,
    /// The steps that the start of one Python may take ([`Limits::python_steps`](model::Limits)).
    pub python_steps: usize,
    /// The reason why the content of a layer is unknown: any file may then be another one, or missing.
    pub unknown: Option<Gap>,
    /// Why Docker and containerd refuse to unpack a layer, if they do.
    pub refused: Option<String>,
}

type NodeId = usize;

/// What remains of a layer after its entries are in the tree: the findings, by entry index.
#[derive(Debug)]
enum LayerTrace {
    Own(LayerFindings),
    /// A layer that other images share.
    Shared(Arc<LayerScan>),
}

type LayerFindings = BTreeMap<usize, Vec<Result<Found, Gap>>>;

impl LayerTrace {
    fn found(&self, entry: usize) -> &[Result<Found, Gap>] {
        let found = match self {
            Self::Own(found) => found,
            Self::Shared(layer) => &layer.found,
        };
        found.get(&entry).map_or(&[], Vec::as_slice)
    }
}

const ROOT: NodeId = 0;

/// The entries of a directory, by name.
type Children = BTreeMap<Box<[u8]>, NodeId>;

/// One inode. Names are in the directories, so hard links are two names of one node.
#[derive(Debug)]
struct TreeNode {
    mode: u32,
    /// The layer that added it. A `u32` saves memory because there are many nodes.
    layer: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Boxed because most nodes are files, which need less space than a map.
    Directory(Box<Children>),
    File {
        size: u64,
        /// Index of the entry with the content in the node's layer, if it has findings.
        entry: Option<usize>,
    },
    Symlink(Box<[u8]>),
    /// Devices and pipes.
    Special(Box<EntryKind>),
}

/// A file of the merged image.
#[derive(Clone, Copy, Debug)]
pub struct RootFile<'a> {
    /// Index of the layer that added its content, from 0.
    pub layer: usize,
    /// Size in bytes.
    pub size: u64,
    /// Findings of the extractors, and their gaps.
    pub found: &'a [Result<Found, Gap>],
    node: NodeId,
}

impl RootFile<'_> {
    /// Returns true when both are the same file, possibly under two names.
    pub const fn is_same(&self, other: &RootFile<'_>) -> bool {
        self.node == other.node
    }

    /// The site of a finding in this file.
    pub fn site(&self, path: &ImagePath, within: Option<&str>) -> Site {
        Site::File { layer: self.layer, path: path.clone(), within: within.map(ToOwned::to_owned) }
    }
}

/// Why a path does not lead to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFile {
    /// A component does not exist.
    Missing,
    /// Too many symlinks on the path.
    Loop,
    /// The path leads to a directory, a device or a pipe.
    NotAFile,
}

impl RootFs {
    /// The file that a path leads to, and its path after symlinks. Follows symlinks inside the image, as a process in
    /// the container would.
    pub fn open(&self, path: &ImagePath) -> Result<(ImagePath, RootFile<'_>), NoFile> {
        let (real, node) = self.resolve(path)?;
        self.file(node).map(|file| (real, file)).ok_or(NoFile::NotAFile)
    }

    /// Like [`Self::open`], for a path as a program spells it: `..` goes up from the target of the links before it,
    /// which a normalised path no longer has. A path without a leading slash starts at the root.
    pub fn open_raw(&self, path: &[u8]) -> Result<(ImagePath, RootFile<'_>), NoFile> {
        let (real, node) = self.follow(path)?;
        self.file(node).map(|file| (real, file)).ok_or(NoFile::NotAFile)
    }

    /// Returns true when any entry in the image has this name; if none has, no path leads through it.
    pub fn has_name(&self, name: &[u8]) -> bool {
        (0..self.nodes.len()).any(|id| self.child(id, name).is_some())
    }

    /// Returns true when the last component of a path is a symlink itself.
    pub fn is_link(&self, path: &[u8]) -> bool {
        self.target(path).is_some()
    }

    /// The target of the symlink at a path, as stored.
    pub fn link_target(&self, path: &ImagePath) -> Option<&[u8]> {
        self.target(path.as_bytes())
    }

    fn target(&self, path: &[u8]) -> Option<&[u8]> {
        let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (folder, name) = path.split_at(end);
        let (_, folder) = self.follow(folder).ok()?;
        match &self.node(self.child(folder, name)?).what {
            What::Symlink(target) => Some(target),
            _ => None,
        }
    }

    /// Returns true when a path leads to a directory.
    pub fn is_directory(&self, path: &ImagePath) -> bool {
        self.real_directory(path).is_some()
    }

    /// The directory that a path leads to, as its path after symlinks.
    pub fn real_directory(&self, path: &ImagePath) -> Option<ImagePath> {
        let (real, node) = self.resolve(path).ok()?;
        self.children(node).is_some().then_some(real)
    }

    /// Names in a directory, sorted; empty if the path does not lead to one.
    pub fn names(&self, path: &ImagePath) -> impl Iterator<Item = &[u8]> {
        let children = self.resolve(path).ok().and_then(|(_, folder)| self.children(folder));
        children.into_iter().flat_map(|children| children.keys().map(|name| &**name))
    }

    /// Names in a directory that begin with `prefix`, sorted.
    pub fn names_with(&self, path: &ImagePath, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        let children = self.resolve(path).ok().and_then(|(_, folder)| self.children(folder));
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let names =
            children.into_iter().flat_map(move |children| children.range::<[u8], _>(from).map(|(name, _)| &**name));
        names.take_while(move |name| name.starts_with(prefix))
    }

    /// The regular files with findings or gaps, under their own names (symlinks are not followed), sorted by path.
    pub fn read_files(&self) -> impl Iterator<Item = (&ImagePath, RootFile<'_>)> {
        let is_read = |_: &[u8], what: &What| matches!(what, What::File { entry: Some(_), .. });
        let files = self.read.get_or_init(|| self.walk(is_read).collect());
        files.iter().filter_map(|(path, id)| self.file(*id).map(|file| (path, file)))
    }

    /// The regular files with matching names, with or without findings, sorted by path.
    pub fn files_named(&self, is_wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (ImagePath, RootFile<'_>)> {
        self.walk(move |name, what| matches!(what, What::File { .. }) && is_wanted(name))
            .filter_map(|(path, id)| self.file(id).map(|file| (path, file)))
    }

    /// The libraries that layers remove from lower ones, each with the index of the layer.
    pub fn removed_libraries(&self) -> impl Iterator<Item = (&ImagePath, usize)> {
        self.removed.iter().map(|(path, layer)| (path, *layer as usize))
    }

    fn file(&self, id: NodeId) -> Option<RootFile<'_>> {
        let node = self.node(id);
        let What::File { size, entry } = node.what else {
            return None;
        };
        let layer = node.layer as usize;
        let found = entry.and_then(|entry| Some(self.layers.get(layer)?.found(entry))).unwrap_or_default();
        Some(RootFile { layer, size, found, node: id })
    }

    /// Ids come only from pushing a node, and nodes are never removed.
    #[expect(clippy::indexing_slicing, reason = "every id is the index of a node")]
    fn node(&self, id: NodeId) -> &TreeNode {
        &self.nodes[id]
    }

    #[expect(clippy::indexing_slicing, reason = "every id is the index of a node")]
    fn node_mut(&mut self, id: NodeId) -> &mut TreeNode {
        &mut self.nodes[id]
    }

    /// Resolves a path, including a link in the last component (path_resolution(7)).
    fn resolve(&self, path: &ImagePath) -> Result<(ImagePath, NodeId), NoFile> {
        self.follow(path.as_bytes())
    }

    fn follow<'a>(&'a self, path: &'a [u8]) -> Result<(ImagePath, NodeId), NoFile> {
        self.follow_from(ROOT, path)
    }

    /// Follows a path and its links in the tree with this root.
    fn follow_from<'a>(&'a self, root: NodeId, path: &'a [u8]) -> Result<(ImagePath, NodeId), NoFile> {
        self.follow_through(root, path, |_, _| Ok(()))
    }

    /// Like [`Self::follow_from`]. `enter` is called for each directory in which a name is looked up, with the names that
    /// lead to it, and may end the resolution.
    fn follow_through<'a, E: From<NoFile>>(
        &'a self,
        root: NodeId,
        path: &'a [u8],
        mut enter: impl FnMut(NodeId, &[&[u8]]) -> Result<(), E>,
    ) -> Result<(ImagePath, NodeId), E> {
        let mut rest: Vec<&[u8]> = path.split(|&byte| byte == b'/').rev().collect();
        let mut place = vec![root];
        let mut names: Vec<&[u8]> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name {
                b"" | b"." => continue,
                b".." => {
                    let here = place.last().copied().unwrap_or(root);
                    self.children(here).ok_or(NoFile::Missing)?;
                    enter(here, &names)?;
                    names.pop();
                    place.truncate(names.len() + 1);
                    continue;
                }
                _ => {}
            }
            let here = place.last().copied().unwrap_or(root);
            if self.children(here).is_some() {
                enter(here, &names)?;
            }
            let id = self.child(here, name).ok_or(NoFile::Missing)?;
            if let What::Symlink(target) = &self.node(id).what {
                links += 1;
                if links > self.symlink_limit {
                    return Err(NoFile::Loop.into());
                }
                if target.first() == Some(&b'/') {
                    names.clear();
                    place.truncate(1);
                }
                rest.extend(target.split(|&b| b == b'/').rev());
            } else {
                names.push(name);
                place.push(id);
            }
        }
        Ok((ImagePath::normalise(&names.join(&b'/')), place.last().copied().unwrap_or(root)))
    }

    /// Every path that `is_wanted` selects, by its last component and its node, without the root, sorted by the
    /// components of the path. Builds paths only for these and for directories.
    fn walk(&self, is_wanted: impl Fn(&[u8], &What) -> bool) -> impl Iterator<Item = (ImagePath, NodeId)> {
        let mut open = Vec::from_iter(self.children(ROOT).map(|children| (ImagePath::root(), children.iter())));
        std::iter::from_fn(move || {
            loop {
                let (folder, children) = open.last_mut()?;
                let Some((name, &id)) = children.next() else {
                    open.pop();
                    continue;
                };
                let wanted = is_wanted(name, &self.node(id).what).then(|| (folder.child(name), id));
                if let Some(below) = self.children(id) {
                    let path = folder.child(name);
                    open.push((path, below.iter()));
                }
                if wanted.is_some() {
                    return wanted;
                }
            }
        })
    }

    fn children(&self, id: NodeId) -> Option<&Children> {
        match &self.node(id).what {
            What::Directory(children) => Some(children),
            _ => None,
        }
    }

    fn child(&self, folder: NodeId, name: &[u8]) -> Option<NodeId> {
        self.children(folder)?.get(name).copied()
    }
}
