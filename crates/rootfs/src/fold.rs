//! Unpacks layers and merges them as Docker, containerd and Podman do: each layer goes into an empty folder of its own,
//! where it can use nothing of lower layers (OCI image-spec, `layer.md`), and overlayfs lays it over them.

mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use layer::scan::LayerScan;
use model::{Entry, EntryKind, FileOwner, ImagePath, Limits};

use super::{LayerFindings, LayerTrace, NodeId, RootFs, TreeNode, What};

/// `layer.md`, "Whiteouts".
const WHITEOUT: &[u8] = b".wh.";

/// `layer.md`, "Opaque Whiteout".
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Other names with this prefix are AUFS metadata, not files of the image.
const AUFS: &[u8] = b".wh..wh.";

/// The mode of a directory that no layer describes but a path contains.
const IMPLIED_DIRECTORY: u32 = 0o755;

/// The folder into which a layer is unpacked.
struct OwnFolder {
    layer: u32,
    root: NodeId,
    /// True if the layer has an entry for the root.
    has_root: bool,
    /// The directories that do more than hold their entries.
    marks: BTreeMap<NodeId, Marks>,
    /// The directories on the path to the last entry: the next one is often in one of them.
    open: Vec<(ImagePath, NodeId)>,
}

/// What a directory of a layer does to the lower one of its path.
#[derive(Debug, Default)]
struct Marks {
    /// The names that whiteouts hide.
    hidden: BTreeSet<Box<[u8]>>,
    /// True if it hides all names.
    is_opaque: bool,
    /// True if it was made for an entry below it.
    is_implied: bool,
    /// True if an entry described it after that.
    is_described: bool,
}

impl OwnFolder {
    fn marks(&mut self, directory: NodeId) -> &mut Marks {
        self.marks.entry(directory).or_default()
    }

    /// Returns true if a whiteout of this layer hides a name.
    fn hides(&self, directory: NodeId, name: &[u8]) -> bool {
        self.marks.get(&directory).is_some_and(|marks| marks.hidden.contains(name))
    }
}

impl RootFs {
    /// Folds layers, lowest first.
    pub fn fold(layers: Vec<Arc<LayerScan>>, limits: &Limits) -> Self {
        let mut rootfs = Self {
            nodes: Vec::new(),
            owners: BTreeMap::new(),
            layers: Vec::new(),
            removed: Vec::new(),
            read: OnceLock::new(),
            symlink_limit: limits.symlinks,
            loader_steps: limits.loader_steps,
            python_steps: limits.python_steps,
            unknown: None,
            refused: None,
        };
        rootfs.push_directory(0);
        for (index, layer) in (0..).zip(layers) {
            let root = rootfs.push_directory(index);
            let mut own = OwnFolder { layer: index, root, has_root: false, marks: BTreeMap::new(), open: Vec::new() };
            let layer = each(layer, |entry, number| rootfs.unpack(entry, number, &mut own));
            rootfs.layers.push(layer);
            rootfs.merge(own);
        }
        rootfs
    }

    /// Unpacks an entry into the folder of its layer. `number` is the index of the entry in the layer, if it has
    /// findings.
    fn unpack(&mut self, entry: &Entry, number: Option<usize>, own: &mut OwnFolder) {
        if is_marker(entry) {
            return self.white_out(entry, own);
        }
        if entry.path.is_root() {
            if entry.kind == EntryKind::Directory {
                self.node_mut(own.root).mode = entry.mode;
                self.own(own.root, entry);
                own.has_root = true;
            }
            return;
        }
        let what = match &entry.kind {
            EntryKind::Hardlink(target) => return self.link(entry, target, own),
            EntryKind::File => What::File { size: entry.size, entry: number },
            EntryKind::Directory => return self.describe_directory(entry, own),
            EntryKind::Symlink(target) => What::Symlink(target.clone()),
            EntryKind::CharDevice(..) | EntryKind::BlockDevice(..) | EntryKind::Fifo => {
                What::Special(Box::new(entry.kind.clone()))
            }
        };
        let parent = self.parent(entry, own);
        let id = self.push(TreeNode { mode: entry.mode, layer: own.layer, what });
        self.own(id, entry);
        self.name(parent, entry.path.file_name(), id);
    }

    /// Records the owner of a node.
    fn own(&mut self, id: NodeId, entry: &Entry) {
        if entry.owner == Some(FileOwner::ROOT) {
            self.owners.remove(&id);
        } else {
            self.owners.insert(id, entry.owner);
        }
    }

    /// Gives a node the owner of another.
    fn copy_owner(&mut self, from: NodeId, to: NodeId) {
        match self.owners.get(&from).copied() {
            Some(owner) => self.owners.insert(to, owner),
            None => self.owners.remove(&to),
        };
    }

    /// Marks the directory of a whiteout, which is made if the layer has none: whatever lower layers have there, a link
    /// for example, this directory replaces it.
    fn white_out(&mut self, entry: &Entry, own: &mut OwnFolder) {
        let directory = self.parent(entry, own);
        let name = entry.path.file_name();
        let hidden = name.strip_prefix(WHITEOUT).unwrap_or_default();
        if name == OPAQUE {
            own.marks(directory).is_opaque = true;
        } else if matches!(hidden, b"" | b"." | b"..") {
            self.refuse(own, &entry.path, "is a whiteout that names nothing");
        } else if !name.starts_with(AUFS) {
            let is_written = self.child(directory, hidden).is_some();
            if is_written || !own.marks(directory).hidden.insert(hidden.into()) {
                self.refuse(own, &entry.path, "is a whiteout of what the same layer has before it");
            }
        }
    }

    /// Adds a directory. One that the layer has already gets the entry's attributes and keeps its contents. One that
    /// replaces a whiteout does not hide what lower layers have there.
    fn describe_directory(&mut self, entry: &Entry, own: &mut OwnFolder) {
        let parent = self.parent(entry, own);
        let name = entry.path.file_name();
        if let Some(existing) = self.child(parent, name).filter(|&id| self.children(id).is_some()) {
            let node = self.node_mut(existing);
            node.mode = entry.mode;
            self.own(existing, entry);
            if let Some(marks) = own.marks.get_mut(&existing) {
                marks.is_described = true;
            }
            return;
        }
        if let Some(marks) = own.marks.get_mut(&parent) {
            marks.hidden.remove(name);
        }
        let id = self.push_directory(own.layer);
        self.node_mut(id).mode = entry.mode;
        self.own(id, entry);
        self.name(parent, name, id);
    }

    /// Adds a hard link, which gives its file the entry's mode; a link to a whiteout is one.
    fn link(&mut self, entry: &Entry, target: &ImagePath, own: &mut OwnFolder) {
        let folder = self.follow_from(own.root, target.parent().as_bytes()).ok().map(|(_, folder)| folder);
        let found = folder.and_then(|folder| self.file_named(folder, target.file_name()));
        if let Some(id) = found {
            let node = self.node_mut(id);
            if !matches!(node.what, What::Symlink(_)) {
                node.mode = entry.mode;
                self.own(id, entry);
            }
        }
        if found.is_none() && folder.is_some_and(|folder| own.hides(folder, target.file_name())) {
            let parent = self.parent(entry, own);
            own.marks(parent).hidden.insert(entry.path.file_name().into());
        } else if let Some(id) = found {
            let parent = self.parent(entry, own);
            self.name(parent, entry.path.file_name(), id);
        } else {
            let what = format!("is a hard link to {target}, which is not a file that the same layer has before it");
            self.refuse(own, &entry.path, &what);
        }
    }

    /// What has this name in a directory, if it is not a directory itself.
    fn file_named(&self, directory: NodeId, name: &[u8]) -> Option<NodeId> {
        self.child(directory, name).filter(|&id| self.children(id).is_none())
    }

    /// The directory of an entry. Those that are open are not looked up again: entries added to them cannot change the
    /// paths to them, which have no symlinks.
    fn parent(&mut self, entry: &Entry, own: &mut OwnFolder) -> NodeId {
        let (folder, _) = entry.path.split_name();
        let is_on_path = |open: &ImagePath| open.as_bytes().len() <= folder.len() && entry.path.starts_with(open);
        while own.open.pop_if(|(open, _)| !is_on_path(open)).is_some() {}
        let known = own.open.last().map_or(0, |(open, _)| open.as_bytes().len());
        let rest = folder.get(known..).unwrap_or_default().split(|&byte| byte == b'/');
        for name in rest.filter(|name| !name.is_empty()) {
            let (above, here) = own.open.last().cloned().unwrap_or_else(|| (ImagePath::root(), own.root));
            let Some(id) = self.child(here, name).filter(|&id| self.children(id).is_some()) else {
                own.open.clear();
                return self.make_directory(&entry.path.parent(), own);
            };
            own.open.push((above.child(name), id));
        }
        own.open.last().map_or(own.root, |(_, id)| *id)
    }

    /// Notes an entry for which Docker and containerd refuse its layer. The first one counts.
    fn refuse(&mut self, own: &OwnFolder, path: &ImagePath, what: &str) {
        self.refused.get_or_insert_with(|| format!("layer {}: {path} {what}", own.layer + 1));
    }

    /// The directory at this path of the layer's folder, created if missing. Symlinks are followed inside the root, even
    /// to places that do not exist yet.
    fn make_directory(&mut self, path: &ImagePath, own: &mut OwnFolder) -> NodeId {
        let mut rest: Vec<Box<[u8]>> = path.components().rev().map(Into::into).collect();
        let mut place = vec![own.root];
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let here = place.last().copied().unwrap_or(own.root);
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    place.truncate((place.len() - 1).max(1));
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
                other => {
                    if other.is_some() {
                        self.refuse(own, path, "is below a file, or below links in a circle, of the same layer");
                    } else if own.hides(here, &name) {
                        self.refuse(own, path, "is below what the same layer hides before it");
                    }
                    let id = self.push_directory(own.layer);
                    own.marks(id).is_implied = true;
                    self.name(here, &name, id);
                    place.push(id);
                }
            }
        }
        place.last().copied().unwrap_or(own.root)
    }

    fn name(&mut self, directory: NodeId, name: &[u8], id: NodeId) {
        if let What::Directory(children) = &mut self.node_mut(directory).what {
            children.insert(name.into(), id);
        }
    }

    fn push_directory(&mut self, layer: u32) -> NodeId {
        self.push(TreeNode { mode: IMPLIED_DIRECTORY, layer, what: What::Directory(Box::default()) })
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
