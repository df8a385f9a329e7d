//! Lays the folder of a layer over those of lower layers (Linux, `Documentation/filesystems/overlayfs.rst`).

use model::ImagePath;

use crate::{Children, NodeId, ROOT, RootFs, What};

use super::{Marks, OwnFolder};

impl RootFs {
    /// Merges the folder of a layer with those below.
    pub(super) fn merge(&mut self, mut own: OwnFolder) {
        if own.has_root {
            self.node_mut(ROOT).mode = self.node(own.root).mode;
            self.copy_owner(own.root, ROOT);
        }
        let mut waiting = vec![(ROOT, own.root, ImagePath::root())];
        while let Some((lower, upper, path)) = waiting.pop() {
            let marks = own.marks.remove(&upper).unwrap_or_default();
            let mut merged = self.take_children(lower);
            // The root of a container is the one directory that no layer can hide.
            let is_emptied = marks.is_opaque && lower != ROOT;
            if is_emptied || !marks.hidden.is_empty() {
                for (name, id) in merged.extract_if(.., |name, _| is_emptied || marks.hidden.contains(name)) {
                    self.note_removed(path.child(&name), id, own.layer);
                }
            }
            let added = self.take_children(upper);
            if merged.is_empty() {
                merged = added;
            } else {
                for (name, id) in added {
                    let existing = merged.get(&name).copied().filter(|lower| self.children(*lower).is_some());
                    if let Some(existing) = existing.filter(|_| self.children(id).is_some()) {
                        self.overlay_attributes(existing, id, own.marks.get(&id));
                        waiting.push((existing, id, path.child(&name)));
                    } else {
                        merged.insert(name, id);
                    }
                }
            }
            if let What::Directory(children) = &mut self.node_mut(lower).what {
                **children = merged;
            }
        }
    }

    /// Notes the libraries that a layer removes with a file or folder of lower layers.
    fn note_removed(&mut self, path: ImagePath, id: NodeId, layer: u32) {
        let mut waiting = vec![(path, id)];
        while let Some((path, id)) = waiting.pop() {
            match &self.node(id).what {
                What::Directory(children) => waiting.extend(children.iter().map(|(name, id)| (path.child(name), *id))),
                What::File { .. } | What::Symlink(_) if is_library(path.file_name()) => {
                    self.removed.push((path, layer));
                }
                _ => {}
            }
        }
    }

    /// Gives a directory the attributes of its description in the layer. Without one, Docker and Podman would give it
    /// other attributes than containerd, which keeps the lower ones.
    fn overlay_attributes(&mut self, lower: NodeId, upper: NodeId, marks: Option<&Marks>) {
        if marks.is_none_or(|marks| !marks.is_implied || marks.is_described) {
            let mode = self.node(upper).mode;
            let layer = self.node(upper).layer;
            let node = self.node_mut(lower);
            (node.mode, node.layer) = (mode, layer);
            self.copy_owner(upper, lower);
        }
    }

    /// Takes the entries of a directory.
    fn take_children(&mut self, directory: NodeId) -> Children {
        match &mut self.node_mut(directory).what {
            What::Directory(children) => std::mem::take(children),
            _ => Children::new(),
        }
    }
}

/// Returns true for `NAME.so` and `NAME.so.VERSION`.
fn is_library(name: &[u8]) -> bool {
    memchr::memmem::find(name, b".so").is_some_and(|at| matches!(name.get(at + 3), None | Some(b'.')))
}
