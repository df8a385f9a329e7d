//! What engines read differently in the layers of an image, and which of it concerns files that facts depend on.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::layer::scan::{LayerScan, is_read_by_name};
use crate::model::{AmbiguousForm, Entry, EntryKind, ImagePath};

/// The ambiguities of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageAmbiguities {
    /// Ambiguities in the order of layers and offsets.
    pub listed: Vec<ImageAmbiguity>,
    /// Number of further ambiguities. What they concern is not known.
    pub more: u64,
}

/// A part of an image that engines read differently, or that some of them refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageAmbiguity {
    /// The form.
    pub form: AmbiguousForm,
    /// Index of the layer, from 0; `None` if it is not in a layer.
    pub layer: Option<usize>,
    /// Offset in the layer's uncompressed tar, in bytes.
    pub offset: Option<u64>,
    /// Path of the member concerned.
    pub path: Option<ImagePath>,
    /// True if a fact can depend on the path.
    pub is_read: bool,
}

impl ImageAmbiguities {
    /// Collects the ambiguities of layers, lowest first.
    pub(super) fn of(layers: &[Arc<LayerScan>]) -> Self {
        let mut all = Self::default();
        let is_ambiguous = |layer: &Arc<LayerScan>| layer.ambiguities.as_ref().is_some_and(|own| !own.kept.is_empty());
        // Nearly all images have none, and need no look at each entry.
        let read = if layers.iter().any(is_ambiguous) { ReadPaths::of(layers) } else { ReadPaths::default() };
        for (index, layer) in layers.iter().enumerate() {
            // A layer that was judged by its table of contents has none: the report says which.
            let Some(own) = &layer.ambiguities else { continue };
            all.more += own.more;
            all.listed.extend(own.kept.iter().map(|ambiguity| ImageAmbiguity {
                form: ambiguity.form,
                layer: Some(index),
                offset: ambiguity.offset,
                path: Some(ambiguity.path.clone()),
                is_read: read.concerns(&ambiguity.path),
            }));
        }
        all
    }
}

/// Paths that facts can depend on: files with findings in any layer, and links to them or to their directories.
#[derive(Debug, Default)]
struct ReadPaths(BTreeSet<ImagePath>);

impl ReadPaths {
    fn of(layers: &[Arc<LayerScan>]) -> Self {
        let with_findings =
            layers.iter().flat_map(|layer| layer.found.keys().filter_map(|index| layer.entries.get(*index)));
        let mut paths = Self(with_findings.map(|entry| entry.path.clone()).collect());
        let links: Vec<_> = layers.iter().flat_map(|layer| &layer.entries).filter_map(target).collect();
        // A link may lead to a link, so repeat until no path is added.
        loop {
            let count = paths.0.len();
            for (path, target) in &links {
                if paths.holds(target) {
                    paths.0.insert((*path).clone());
                }
            }
            if paths.0.len() == count {
                return paths;
            }
        }
    }

    /// Returns true if facts can depend on a path, on one below it, or, for a whiteout, on what it hides.
    fn concerns(&self, path: &ImagePath) -> bool {
        let name = path.file_name();
        if name == b".wh..wh..opq" {
            return self.holds(&path.parent());
        }
        let hidden = name.strip_prefix(b".wh.").map(|hidden| path.parent().child(hidden));
        let path = hidden.as_ref().unwrap_or(path);
        is_read_by_name(path) || self.holds(path)
    }

    /// Returns true for one of these paths, and for a directory above one.
    fn holds(&self, path: &ImagePath) -> bool {
        if path.is_root() {
            return !self.0.is_empty();
        }
        // Names that go on after the path, such as `a-b` after `a`, sort between it and what is below it.
        let below = self.0.range((Bound::Included(path.child(b"")), Bound::Unbounded)).next();
        self.0.contains(path) || below.is_some_and(|next| next.starts_with(path))
    }
}

/// The path of a link, and what it leads to.
fn target(entry: &Entry) -> Option<(&ImagePath, ImagePath)> {
    match &entry.kind {
        EntryKind::Symlink(target) => Some((&entry.path, entry.path.parent().join(target))),
        EntryKind::Hardlink(target) => Some((&entry.path, target.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::layer::scan::Compression;
    use crate::model::{Ambiguities, Found};

    use super::*;

    fn layer(entries: &[(&str, EntryKind)], read: &[usize], ambiguous: &[&str]) -> Arc<LayerScan> {
        let entry = |(path, kind): &(&str, EntryKind)| Entry {
            path: (*path).into(),
            kind: kind.clone(),
            mode: 0,
            owner: None,
            size: 1,
        };
        let mut ambiguities = Ambiguities::default();
        for path in ambiguous {
            ambiguities.push(AmbiguousForm::OverlayAttribute, 512, (*path).into());
        }
        Arc::new(LayerScan {
            compression: Compression::None,
            unpacked: 0,
            diff_id: None,
            entries: entries.iter().map(entry).collect(),
            found: read.iter().map(|index| (*index, vec![Ok(Found::Text(Box::default()))])).collect::<BTreeMap<_, _>>(),
            ambiguities: Some(ambiguities),
        })
    }

    #[test]
    fn paths_that_facts_can_depend_on() {
        let symlink = |target: &str| EntryKind::Symlink(target.as_bytes().into());
        let lower = layer(
            &[
                ("opt/a/file", EntryKind::File),
                ("opt/a-b", EntryKind::File),
                ("opt/link", symlink("a")),
                ("link", symlink("opt/link")),
                ("other", symlink("opt/a-b")),
            ],
            &[0],
            &[],
        );
        for (path, is_read) in [
            ("opt/a/file", true),
            ("opt/a", true),
            ("opt", true),
            ("", true),
            ("opt/link", true),
            ("link", true),
            ("other", false),
            ("opt/a-b", false),
            ("opt/a/other", false),
            ("opt/.wh.a", true),
            ("opt/a/.wh..wh..opq", true),
            ("opt/a-b/.wh..wh..opq", false),
            // No layer has these, but the loader or Python would find them.
            ("srv/libnccl.so.2", true),
            ("srv/.wh.libnccl.so.2", true),
            ("srv/site-packages/torch/version.py", true),
            ("usr/bin/python3", true),
            ("srv/readme", false),
        ] {
            let all = ImageAmbiguities::of(&[lower.clone(), layer(&[], &[], &[path])]);
            let [one] = &*all.listed else { panic!("{all:?}") };
            assert_eq!((one.layer, one.is_read), (Some(1), is_read), "{path}");
        }
    }
}
