//! Applies layers on top of each other (OCI image-spec, `layer.md`).

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::layer::scan::LayerScan;
use crate::model::{Entry, EntryKind, ImagePath, Limits};

use super::{ImageAmbiguities, LayerFindings, LayerTrace, NodeId, ROOT, RootFs, TreeNode, What};

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
            notes: Vec::new(),
            ambiguities: ImageAmbiguities::of(&layers),
        };
        for (index, layer) in (0..).zip(layers) {
            // Whiteouts apply to lower layers only, whatever their position in the layer, so process all of them first.
            let markers: Vec<_> = layer.entries.iter().filter(|entry| is_marker(entry)).collect();
            if !markers.is_empty() {
                let directories = layer.entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
                let directories: BTreeSet<_> = directories.map(|entry| &entry.path).collect();
                for marker in markers {
                    rootfs.white_out(marker, &directories, index);
                }
            }
            let mut last = None;
            let layer = each(layer, |entry, number| {
                if !is_marker(entry) {
                    rootfs.apply(entry, index, number, &mut last);
                }
            });
            rootfs.layers.push(layer);
        }
        rootfs
    }

    /// `directories` are the directories of the whiteout's own layer.
    fn white_out(&mut self, entry: &Entry, directories: &BTreeSet<&ImagePath>, layer: u32) {
        let name = entry.path.file_name();
        let Some(hidden) = name.strip_prefix(WHITEOUT) else { return };
        let parent = entry.path.parent();
        let Ok((real, directory)) = self.resolve(&parent) else { return };
        // If this layer replaces a lower symlink with a directory, the whiteout refers to that directory, which has no
        // lower entries; the target of the link stays untouched.
        if real != parent && self.replaces_link(&parent, directories) {
            return;
        }
        let What::Directory(children) = &mut self.node_mut(directory).what else {
            return;
        };
        if name == OPAQUE {
            children.clear();
        } else if !name.starts_with(AUFS) {
            if matches!(hidden, b"" | b"." | b"..") {
                self.notes.push(format!("layer {layer}: the whiteout {} names nothing", entry.path));
                return;
            }
            children.remove(hidden);
        }
    }

    fn replaces_link(&self, path: &ImagePath, directories: &BTreeSet<&ImagePath>) -> bool {
        let mut prefix = ImagePath::root();
        path.components().any(|name| {
            let parent = self.resolve(&prefix).ok().map(|(_, id)| id);
            prefix = prefix.join(name);
            let is_link = parent
                .and_then(|id| self.child(id, name))
                .is_some_and(|id| matches!(self.node(id).what, What::Symlink(_)));
            is_link && directories.contains(&prefix)
        })
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
            self.notes.push(format!("layer {layer}: {} is a hard link to {target}, which does not exist", entry.path));
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

    /// The directory at this path, created if missing. Symlinks on the path are followed inside the root, even to
    /// places that do not exist yet, as runtimes do when they unpack; other entries on the path are replaced. Also
    /// returns the number of followed links.
    fn make_directory(&mut self, path: &ImagePath, layer: u32) -> (NodeId, usize) {
        let mut rest: Vec<Box<[u8]>> = path.components().rev().map(Into::into).collect();
        let mut place = vec![ROOT];
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let here = place.last().copied().unwrap_or(ROOT);
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    place.truncate(place.len().saturating_sub(1).max(1));
                    continue;
                }
                _ => {}
            }
            let child = self.child(here, &name);
            match child.map(|id| (id, &self.node(id).what)) {
                Some((id, What::Directory(_))) => place.push(id),
                Some((_, What::Symlink(target))) if links < self.symlink_limit => {
                    links += 1;
                    if target.first() == Some(&b'/') {
                        place.truncate(1);
                    }
                    rest.extend(target.split(|&b| b == b'/').rev().map(Into::into));
                }
                _ => {
                    let what = What::Directory(Box::default());
                    let id = self.push(TreeNode { mode: IMPLICIT_DIRECTORY, layer, what });
                    self.name(here, &name, id);
                    place.push(id);
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

fn is_marker(entry: &Entry) -> bool {
    entry.path.file_name().starts_with(WHITEOUT)
}

#[cfg(test)]
mod tests;
