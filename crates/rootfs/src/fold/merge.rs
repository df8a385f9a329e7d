//! Lays the folder of a layer over those of lower layers (Linux, `Documentation/filesystems/overlayfs.rst`).

use crate::{Children, NodeId, ROOT, RootFs, What};

use super::{Marks, OwnFolder};

impl RootFs {
    /// Merges the folder of a layer with those below.
    pub(super) fn merge(&mut self, mut own: OwnFolder) {
        if own.has_root {
            self.node_mut(ROOT).mode = self.node(own.root).mode;
            self.copy_owner(own.root, ROOT);
        }
        let mut waiting = vec![(ROOT, own.root)];
        while let Some((lower, upper)) = waiting.pop() {
            let marks = own.marks.remove(&upper).unwrap_or_default();
            let mut merged = self.take_children(lower);
            // The root of a container is the one directory that no layer can hide.
            if marks.is_opaque && lower != ROOT {
                merged.clear();
            }
            for name in &marks.hidden {
                merged.remove(name);
            }
            let added = self.take_children(upper);
            if merged.is_empty() {
                merged = added;
            } else {
                for (name, id) in added {
                    let existing = merged.get(&name).copied().filter(|lower| self.children(*lower).is_some());
                    if let Some(existing) = existing.filter(|_| self.children(id).is_some()) {
                        self.overlay_attributes(existing, id, own.marks.get(&id));
                        waiting.push((existing, id));
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
