//! What engines refuse or read differently in the order of a layer's entries. Docker, containerd and Podman unpack a
//! layer into an empty folder of its own, which overlayfs then lays over the lower ones: an entry can conflict with
//! those before it, and cannot use files of lower layers.

#![expect(clippy::disallowed_types, reason = "paths are looked up, and never listed in the order of the map")]

use std::collections::{BTreeMap, HashMap};

use crate::model::{Ambiguities, AmbiguousForm, Entry, EntryKind, ImagePath};

/// Prefix of the name of a whiteout (OCI image-spec, `layer.md`, "Whiteouts").
const WHITEOUT: &[u8] = b".wh.";

/// Prefix of an opaque whiteout, and of AUFS metadata.
const META: &[u8] = b".wh..wh.";

/// An entry with the offset of its header.
type Placed<'a> = (&'a Entry, u64);

/// Adds the ambiguities in the order of entries; `offsets` are those of their headers.
pub(super) fn note(entries: &[Entry], offsets: &[u64], ambiguities: &mut Ambiguities) {
    let mut order = Order { written: HashMap::with_capacity(entries.len()), whiteouts: BTreeMap::new(), last: None };
    for placed in entries.iter().zip(offsets.iter().copied()) {
        order.check(placed, ambiguities);
    }
    let whiteouts = std::mem::take(&mut order.whiteouts);
    if whiteouts.is_empty() {
        return;
    }
    let mut sorted: Vec<(&ImagePath, u64)> =
        entries.iter().map(|entry| &entry.path).zip(offsets.iter().copied()).collect();
    sorted.sort_unstable();
    for (hidden, (marker, offset)) in whiteouts {
        let is_directory = |path: &ImagePath| matches!(order.written.get(path), Some(EntryKind::Directory));
        // An entry for the hidden path itself replaces the whiteout.
        let own = from(&sorted, &hidden).iter().take_while(|(path, _)| **path == hidden).map(|(_, at)| *at);
        let below = from(&sorted, &hidden.child(b"")).iter().take_while(|(path, _)| path.starts_with(&hidden));
        if own.clone().chain(below.clone().map(|(_, at)| *at)).any(|at| at < offset) {
            ambiguities.push(AmbiguousForm::WhiteoutAfterEntry, offset, marker.path.clone());
        }
        if is_directory(&hidden) && own.clone().any(|at| at > offset) {
            ambiguities.push(AmbiguousForm::WhiteoutBeforeDirectory, offset, marker.path.clone());
        }
        let replaced = own.filter(|at| *at > offset).min().unwrap_or(u64::MAX);
        if let Some((path, at)) = below.clone().find(|(_, at)| (offset..replaced).contains(at)) {
            ambiguities.push(AmbiguousForm::EntryBelowWhiteout, *at, (*path).clone());
        }
    }
}

/// The sorted paths from this one on.
fn from<'s, 'e>(sorted: &'s [(&'e ImagePath, u64)], path: &ImagePath) -> &'s [(&'e ImagePath, u64)] {
    sorted.get(sorted.partition_point(|(other, _)| *other < path)..).unwrap_or_default()
}

/// The entries seen so far.
struct Order<'a> {
    written: HashMap<&'a ImagePath, &'a EntryKind>,
    /// Paths that whiteouts hide.
    whiteouts: BTreeMap<ImagePath, Placed<'a>>,
    /// The directory of the last entry: neighbours share it.
    last: Option<ImagePath>,
}

impl<'a> Order<'a> {
    fn check(&mut self, (entry, offset): Placed<'a>, ambiguities: &mut Ambiguities) {
        let mut push = |form| ambiguities.push(form, offset, entry.path.clone());
        if self.last.as_ref().is_none_or(|last| !last.is_parent_of(&entry.path)) {
            let parent = entry.path.parent();
            // Engines pass over a file that is called as the root.
            if matches!(self.written.get(&parent), Some(kind) if !is_passable(kind) && !parent.is_root()) {
                push(AmbiguousForm::EntryBelowFile);
            }
            self.last = Some(parent);
        }
        let name = entry.path.file_name();
        if let Some(hidden) = name.strip_prefix(WHITEOUT).filter(|_| !name.starts_with(META)) {
            match hidden {
                b"" | b"." | b".." => push(AmbiguousForm::WhiteoutWithoutName),
                _ => _ = self.whiteouts.entry(entry.path.parent().child(hidden)).or_insert((entry, offset)),
            }
        }
        if entry.path.as_bytes() == b".wh..wh..opq" {
            push(AmbiguousForm::OpaqueRoot);
        }
        match &entry.kind {
            // A name makes a whiteout, whatever the type.
            _ if name.starts_with(WHITEOUT) => {}
            EntryKind::CharDevice(0, 0) => push(AmbiguousForm::WhiteoutDevice),
            EntryKind::Hardlink(target) if !self.has(target) => push(AmbiguousForm::HardLinkOutsideLayer),
            _ => {}
        }
        if self.written.insert(&entry.path, &entry.kind).is_some() {
            push(AmbiguousForm::DuplicatePath);
        }
    }

    /// Returns true if the layer has this path, or can have it through a link of its own.
    fn has(&self, path: &ImagePath) -> bool {
        let mut folder = path.clone();
        while !folder.is_root() {
            folder = folder.parent();
            if matches!(self.written.get(&folder), Some(EntryKind::Symlink(_))) {
                return true;
            }
        }
        self.written.contains_key(path)
    }
}

/// Returns true for what can be a directory of other entries.
const fn is_passable(kind: &EntryKind) -> bool {
    matches!(kind, EntryKind::Directory | EntryKind::Symlink(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms in a layer of these entries, each with the index of its entry.
    fn forms(entries: &[(&str, EntryKind)]) -> Vec<(&'static str, u64)> {
        let entries: Vec<_> = entries
            .iter()
            .map(|(path, kind)| Entry { path: (*path).into(), kind: kind.clone(), mode: 0, size: 0 })
            .collect();
        let offsets: Vec<u64> = (0..entries.len() as u64).collect();
        let mut ambiguities = Ambiguities::default();
        note(&entries, &offsets, &mut ambiguities);
        ambiguities.kept.iter().filter_map(|ambiguity| Some((ambiguity.form.name(), ambiguity.offset?))).collect()
    }

    const FILE: EntryKind = EntryKind::File;
    const DIR: EntryKind = EntryKind::Directory;

    fn symlink(target: &str) -> EntryKind {
        EntryKind::Symlink(target.as_bytes().into())
    }

    fn hard_link(target: &str) -> EntryKind {
        EntryKind::Hardlink(target.into())
    }

    #[test]
    fn an_ordinary_layer_has_none() {
        let entries = [
            ("", DIR),
            ("a", DIR),
            ("a/b", FILE),
            ("a/.wh.old", FILE),
            ("a/.wh..wh..opq", FILE),
            ("c", hard_link("a/b")),
            ("l", symlink("a")),
            ("l/x", FILE),
            ("d", hard_link("l/b")),
            (".wh.e", FILE),
            ("e", FILE),
            ("null", EntryKind::CharDevice(1, 3)),
            ("a/.wh..wh.plnk", FILE),
        ];
        assert_eq!(forms(&entries), []);
    }

    #[test]
    fn a_name_makes_a_whiteout_whatever_the_type() {
        assert_eq!(forms(&[(".wh.a", hard_link("b")), (".wh.c", EntryKind::CharDevice(0, 0))]), []);
        assert_eq!(forms(&[("", FILE), ("a", DIR)]), []);
    }

    #[test]
    fn conflicts_are_noted_where_they_lie() {
        assert_eq!(forms(&[("a", FILE), ("b", FILE), ("a", FILE)]), [("duplicate-path", 2)]);
        assert_eq!(forms(&[("a", DIR), ("a", symlink("b"))]), [("duplicate-path", 1)]);
        assert_eq!(forms(&[("a", hard_link("b")), ("b", FILE)]), [("hard-link-outside-layer", 0)]);
        assert_eq!(forms(&[("a", EntryKind::CharDevice(0, 0))]), [("whiteout-device", 0)]);
        assert_eq!(forms(&[("a", FILE), ("a/b", FILE)]), [("entry-below-file", 1)]);
        for name in [".wh.", ".wh..", ".wh..."] {
            assert_eq!(forms(&[(name, FILE)]), [("whiteout-without-name", 0)], "{name}");
        }
        assert_eq!(forms(&[(".wh..wh..opq", FILE)]), [("opaque-root", 0)]);
    }

    #[test]
    fn a_whiteout_and_what_it_hides_conflict_in_either_order() {
        assert_eq!(forms(&[("a", FILE), (".wh.a", FILE)]), [("whiteout-after-entry", 1)]);
        assert_eq!(forms(&[("a/b", FILE), (".wh.a", FILE)]), [("whiteout-after-entry", 1)]);
        assert_eq!(forms(&[("ab", FILE), (".wh.a", FILE)]), []);
        assert_eq!(forms(&[(".wh.a", FILE), ("a", FILE)]), []);
        assert_eq!(forms(&[(".wh.a", FILE), ("a/b", FILE)]), [("entry-below-whiteout", 1)]);
        assert_eq!(
            forms(&[(".wh.a", FILE), ("a/b", FILE), ("a", DIR)]),
            [("whiteout-before-directory", 0), ("entry-below-whiteout", 1)]
        );
        assert_eq!(forms(&[(".wh.a", FILE), ("a", DIR), ("a/b", FILE)]), [("whiteout-before-directory", 0)]);
    }
}
