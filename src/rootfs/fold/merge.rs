//! Lays the folder of a layer over those of lower layers (Linux, `Documentation/filesystems/overlayfs.rst`).

use crate::layer::scan::is_read_by_name;
use crate::model::{AmbiguousForm, ImagePath};
use crate::rootfs::{Children, ImageAmbiguity, NodeId, ROOT, RootFs, What};

use super::{IMPLIED_DIRECTORY, Marks, OwnFolder};

/// A directory that engines make differently, because its layer has no entry for it.
#[derive(Debug)]
pub(super) struct Conflict {
    layer: u32,
    path: ImagePath,
    /// Target of the lower link that the directory replaces; `None` for a lower directory.
    target: Option<ImagePath>,
}

impl RootFs {
    /// Merges the folder of a layer with those below.
    pub(super) fn merge(&mut self, mut own: OwnFolder, conflicts: &mut Vec<Conflict>) {
        if own.has_root {
            self.node_mut(ROOT).mode = self.node(own.root).mode;
            self.copy_owner(own.root, ROOT);
        }
        let mut waiting = vec![(ROOT, own.root, ImagePath::root())];
        while let Some((lower, upper, path)) = waiting.pop() {
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
                    let existing = merged.get(&name).copied().filter(|_| self.children(id).is_some());
                    if let Some(existing) = existing {
                        let path = path.child(&name);
                        conflicts.extend(self.conflict(existing, &own, id, &path));
                        if self.children(existing).is_some() {
                            self.overlay_attributes(existing, id, own.marks.get(&id));
                            waiting.push((existing, id, path));
                            continue;
                        }
                    }
                    merged.insert(name, id);
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
            let (mode, layer) = (self.node(upper).mode, self.node(upper).layer);
            let node = self.node_mut(lower);
            (node.mode, node.layer) = (mode, layer);
            self.copy_owner(upper, lower);
        }
    }

    /// The conflict of a directory of the layer with what lower layers have at its path.
    fn conflict(&self, existing: NodeId, own: &OwnFolder, directory: NodeId, path: &ImagePath) -> Option<Conflict> {
        let marks = own.marks.get(&directory).filter(|marks| marks.is_implied)?;
        let lower = self.node(existing);
        let target = match &lower.what {
            What::Symlink(target) => Some(path.parent().join(target)),
            What::Directory(_) if lower.mode != IMPLIED_DIRECTORY && !marks.is_described => None,
            _ => return None,
        };
        Some(Conflict { layer: own.layer, path: path.clone(), target })
    }

    /// Takes the entries of a directory.
    fn take_children(&mut self, directory: NodeId) -> Children {
        match &mut self.node_mut(directory).what {
            What::Directory(children) => std::mem::take(children),
            _ => Children::new(),
        }
    }

    /// Reports the conflicts, and whether facts depend on them.
    pub(super) fn note_conflicts(&mut self, conflicts: Vec<Conflict>) {
        for Conflict { layer, path, target } in conflicts {
            let concerns = |read: &ImagePath| {
                read.starts_with(&path) || target.as_ref().is_some_and(|target| read.starts_with(target))
            };
            let is_read = is_read_by_name(&path) || self.read_files().any(|(read, _)| concerns(read));
            let form =
                if target.is_some() { AmbiguousForm::EntryBelowLowerLink } else { AmbiguousForm::UndescribedDirectory };
            let layer = Some(layer as usize);
            self.ambiguities.listed.push(ImageAmbiguity { form, layer, offset: None, path: Some(path), is_read });
        }
    }
}
