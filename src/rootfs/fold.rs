//! Applies layers on top of each other (OCI image-spec, `layer.md`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::layer::scan::{LayerScan, is_read_by_name};
use crate::model::{AmbiguousForm, Entry, EntryKind, ImagePath, Limits};

use super::{ImageAmbiguities, ImageAmbiguity, LayerFindings, LayerTrace, NodeId, ROOT, RootFs, TreeNode, What};

/// `layer.md`, "Whiteouts".
const WHITEOUT: &[u8] = b".wh.";

/// `layer.md`, "Opaque Whiteout".
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Other names with this prefix are AUFS metadata, not files of the image.
const AUFS: &[u8] = b".wh..wh.";

/// The mode of a directory that no layer describes but a path contains.
const IMPLICIT_DIRECTORY: u32 = 0o755;

/// A directory, with its path.
type Parent = (ImagePath, NodeId);

/// The symlinks of a layer, with their targets.
type OwnLinks<'a> = BTreeMap<&'a ImagePath, &'a [u8]>;

/// A symlink of a lower layer that became a directory.
#[derive(Debug)]
pub(super) struct ReplacedLink {
    layer: u32,
    path: ImagePath,
    target: ImagePath,
}

impl RootFs {
    /// Folds layers, lowest first.
    pub fn fold(layers: Vec<Arc<LayerScan>>, limits: &Limits) -> Self {
        let root = TreeNode { mode: IMPLICIT_DIRECTORY, layer: 0, what: What::Directory(Box::default()) };
        let mut rootfs = Self {
            nodes: vec![root],
            layers: Vec::new(),
            read: OnceLock::new(),
            symlink_limit: limits.symlinks,
            loader_steps: limits.loader_steps,
            unknown: None,
            notes: Vec::new(),
            ambiguities: ImageAmbiguities::of(&layers),
            replaced_links: Vec::new(),
        };
        for (index, layer) in (0..).zip(layers) {
            // Whiteouts apply to lower layers only, whatever their position in the layer, so process all of them first.
            if layer.entries.iter().any(is_marker) {
                rootfs.white_out_all(&layer.entries, index);
            }
            let mut last = None;
            let layer = each(layer, |entry, number| {
                if !is_marker(entry) {
                    rootfs.apply(entry, index, number, &mut last);
                }
            });
            rootfs.layers.push(layer);
        }
        rootfs.note_replaced_links();
        rootfs
    }

    /// Applies the whiteouts of a layer.
    fn white_out_all(&mut self, entries: &[Entry], layer: u32) {
        let directories = (0..).zip(entries).filter(|(_, entry)| entry.kind == EntryKind::Directory);
        let directories: BTreeMap<&ImagePath, usize> = directories.map(|(place, entry)| (&entry.path, place)).collect();
        let mut links = OwnLinks::new();
        let mut made = Vec::new();
        for (place, entry) in (0..).zip(entries) {
            if let EntryKind::Symlink(target) = &entry.kind {
                links.insert(&entry.path, target);
            }
            // Engines replace the whiteout of a directory by one that follows it, which merges with the lower one.
            let is_replaced =
                || hidden(entry).and_then(|path| directories.get(&path)).is_some_and(|later| *later > place);
            if is_marker(entry) && !is_replaced() {
                made.extend(self.white_out(entry, &links, layer));
            }
        }
        // Last, since a directory of this layer is hidden by none of its whiteouts.
        for path in made {
            self.make_directory(&path, layer);
        }
    }

    /// Hides what a whiteout names. `links` are the links of its own layer before it. Returns the directory of the whiteout,
    /// which engines make in the layer.
    fn white_out(&mut self, entry: &Entry, links: &OwnLinks<'_>, layer: u32) -> Option<ImagePath> {
        let name = entry.path.file_name();
        let hidden = name.strip_prefix(WHITEOUT)?;
        let parent = follow_own(&entry.path.parent(), links, self.symlink_limit);
        // Anything else on the way, such as a lower link, becomes a directory of this layer; there are no lower entries
        // in it, and a link's target stays untouched.
        let Some(directory) = self.lower_directory(&parent) else { return Some(parent) };
        // The root of a container is the one directory that no layer can hide.
        if name == OPAQUE && directory == ROOT {
            return None;
        }
        let What::Directory(children) = &mut self.node_mut(directory).what else { return None };
        if name == OPAQUE {
            children.clear();
        } else if !name.starts_with(AUFS) {
            if matches!(hidden, b"" | b"." | b"..") {
                self.notes.push(format!("layer {}: the whiteout {} names nothing", layer + 1, entry.path));
            } else {
                children.remove(hidden);
            }
        }
        Some(parent)
    }

    /// The directory at this path, without following links.
    fn lower_directory(&self, path: &ImagePath) -> Option<NodeId> {
        let directory = path.components().try_fold(ROOT, |here, name| self.child(here, name))?;
        matches!(self.node(directory).what, What::Directory(_)).then_some(directory)
    }

    /// Reports links of lower layers that became directories: some engines write through them.
    fn note_replaced_links(&mut self) {
        let replaced = std::mem::take(&mut self.replaced_links);
        for ReplacedLink { layer, path, target } in replaced {
            let concerns = |read: &ImagePath| read.starts_with(&path) || read.starts_with(&target);
            let is_read = is_read_by_name(&path) || self.read_files().any(|(read, _)| concerns(read));
            let form = AmbiguousForm::EntryBelowLowerLink;
            let ambiguity =
                ImageAmbiguity { form, layer: Some(layer as usize), offset: None, path: Some(path), is_read };
            self.ambiguities.listed.push(ambiguity);
        }
    }

    /// `number` is the index of the entry in its layer, if it has findings.
    fn apply(&mut self, entry: &Entry, layer: u32, number: Option<usize>, last: &mut Option<Parent>) {
        if entry.path.is_root() {
            if entry.kind == EntryKind::Directory {
                self.node_mut(ROOT).mode = entry.mode;
            }
            return;
        }
        let what = match &entry.kind {
            EntryKind::Hardlink(target) => return self.link(entry, target, layer, last),
            EntryKind::File => What::File { size: entry.size, entry: number },
            EntryKind::Directory => What::Directory(Box::default()),
            EntryKind::Symlink(target) => What::Symlink(target.clone()),
            EntryKind::CharDevice(..) | EntryKind::BlockDevice(..) | EntryKind::Fifo => {
                What::Special(Box::new(entry.kind.clone()))
            }
        };
        let parent = self.parent(entry, layer, last);
        let existing = self.child(parent, entry.path.file_name());
        if let (What::Directory(_), Some(existing)) = (&what, existing)
            && matches!(self.node(existing).what, What::Directory(_))
        {
            // A directory over a directory changes its attributes and keeps its children.
            let node = self.node_mut(existing);
            node.mode = entry.mode;
            node.layer = layer;
            return;
        }
        let id = self.push(TreeNode { mode: entry.mode, layer, what });
        self.name(parent, entry.path.file_name(), id);
    }

    /// Adds a hard link. The target is resolved in the merged tree, because it may be in a lower layer.
    fn link(&mut self, entry: &Entry, target: &ImagePath, layer: u32, last: &mut Option<Parent>) {
        let found = self.resolve(&target.parent()).ok().and_then(|(_, dir)| self.child(dir, target.file_name()));
        let Some(id) = found.filter(|&id| !matches!(self.node(id).what, What::Directory(_))) else {
            let (number, path) = (layer + 1, &entry.path);
            self.notes.push(format!("layer {number}: {path} is a hard link to {target}, which does not exist"));
            return;
        };
        let parent = self.parent(entry, layer, last);
        self.name(parent, entry.path.file_name(), id);
    }

    /// The directory of an entry. Consecutive entries often share it, so the last one is cached. Entries added to it
    /// cannot change the path to it, as long as that path has no symlink.
    fn parent(&mut self, entry: &Entry, layer: u32, last: &mut Option<Parent>) -> NodeId {
        if let Some((_, id)) = last.as_ref().filter(|(known, _)| known.is_parent_of(&entry.path)) {
            return *id;
        }
        let path = entry.path.parent();
        let (id, links) = self.make_directory(&path, layer);
        *last = (links == 0).then_some((path, id));
        id
    }

    /// The directory at this path, created if missing. Symlinks of the same layer are followed inside the root, even to
    /// places that do not exist yet. Any other entry on the path, such as a symlink of a lower layer, is replaced: Docker,
    /// containerd and Podman unpack each layer into a folder that does not have the lower ones. Also returns the number
    /// of followed links.
    fn make_directory(&mut self, path: &ImagePath, layer: u32) -> (NodeId, usize) {
        let mut rest: Vec<Box<[u8]>> = path.components().rev().map(Into::into).collect();
        let mut place = vec![ROOT];
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let here = place.last().copied().unwrap_or(ROOT);
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    names.pop();
                    place.truncate(names.len() + 1);
                    continue;
                }
                _ => {}
            }
            let child = self.child(here, &name);
            match child.map(|id| (id, &self.node(id).what)) {
                Some((id, What::Directory(_))) => {
                    place.push(id);
                    names.push(name);
                }
                Some((id, What::Symlink(target))) if self.node(id).layer == layer && links < self.symlink_limit => {
                    links += 1;
                    if target.first() == Some(&b'/') {
                        names.clear();
                        place.truncate(1);
                    }
                    rest.extend(target.split(|&b| b == b'/').rev().map(Into::into));
                }
                found => {
                    if let Some((_, What::Symlink(target))) = found {
                        let parent = ImagePath::normalise(&names.join(&b'/'));
                        let target = parent.join(target);
                        self.replaced_links.push(ReplacedLink { layer, path: parent.child(&name), target });
                    }
                    let what = What::Directory(Box::default());
                    let id = self.push(TreeNode { mode: IMPLICIT_DIRECTORY, layer, what });
                    self.name(here, &name, id);
                    place.push(id);
                    names.push(name);
                }
            }
        }
        (place.last().copied().unwrap_or(ROOT), links)
    }

    fn name(&mut self, directory: NodeId, name: &[u8], id: NodeId) {
        if let What::Directory(children) = &mut self.node_mut(directory).what {
            children.insert(name.into(), id);
        }
    }

    fn push(&mut self, node: TreeNode) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

/// Calls `show` with every entry of a layer, and with the entry's index if it has findings. An unshared layer's entries
/// are freed one by one, because the tree needs as much memory again. Returns the remaining trace of the layer.
fn each(layer: Arc<LayerScan>, mut show: impl FnMut(&Entry, Option<usize>)) -> LayerTrace {
    let number_in = |found: &LayerFindings, number| found.contains_key(&number).then_some(number);
    match Arc::try_unwrap(layer) {
        Ok(LayerScan { entries, found, .. }) => {
            (0..).zip(entries).for_each(|(number, entry)| show(&entry, number_in(&found, number)));
            LayerTrace::Own(found)
        }
        Err(shared) => {
            (0..).zip(&shared.entries).for_each(|(number, entry)| show(entry, number_in(&shared.found, number)));
            LayerTrace::Shared(shared)
        }
    }
}

/// The path without the layer's own symlinks. After too many links, the path that is left.
fn follow_own(path: &ImagePath, links: &OwnLinks<'_>, limit: usize) -> ImagePath {
    let mut path = path.clone();
    for _ in 0..limit {
        let Some(shorter) = follow_first(&path, links) else { break };
        path = shorter;
    }
    path
}

/// The path with its first link replaced by the link's target; `None` without a link.
fn follow_first(path: &ImagePath, links: &OwnLinks<'_>) -> Option<ImagePath> {
    let mut prefix = ImagePath::root();
    let mut rest = path.components();
    loop {
        let folder = prefix;
        prefix = folder.child(rest.next()?);
        if let Some(target) = links.get(&prefix) {
            return Some(rest.fold(folder.join(target), |path, name| path.child(name)));
        }
    }
}

/// The path that a whiteout hides; `None` for anything else, and for an opaque whiteout.
fn hidden(entry: &Entry) -> Option<ImagePath> {
    let name = entry.path.file_name().strip_prefix(WHITEOUT).filter(|_| !entry.path.file_name().starts_with(AUFS))?;
    Some(entry.path.parent().child(name))
}

fn is_marker(entry: &Entry) -> bool {
    entry.path.file_name().starts_with(WHITEOUT)
}

#[cfg(test)]
mod tests;
