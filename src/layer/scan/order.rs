//! What engines refuse or read differently in the order of a layer's entries. Docker, containerd and Podman unpack a
//! layer into an empty folder of its own, which overlayfs then lays over the lower ones: an entry can conflict with
//! those before it, and cannot use files of lower layers.

#![expect(clippy::disallowed_types, reason = "paths are looked up, and never listed in the order of the map")]

mod own_tree;

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::layer::tar::{GlobalHeader, Spelling};
use crate::model::{Ambiguities, AmbiguousForm, Entry, EntryKind, ImagePath};

/// Prefix of the name of a whiteout (OCI image-spec, `layer.md`, "Whiteouts").
const WHITEOUT: &[u8] = b".wh.";

/// Prefix of an opaque whiteout, and of AUFS metadata.
const META: &[u8] = b".wh..wh.";

/// The header of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Its offset in the tar.
    pub(super) offset: u64,
    /// How it spells the path.
    pub(super) spelling: Spelling,
}

/// An entry with its header.
type Placed<'a> = (&'a Entry, Place);

/// Adds the ambiguities in the order of entries; `places` are their headers, `globals` the PAX global headers of the tar.
pub(super) fn note(entries: &[Entry], places: &[Place], globals: &[GlobalHeader], ambiguities: &mut Ambiguities) {
    let written = HashMap::with_capacity(entries.len());
    let mut order = Order { entries, places, written, ..Order::default() };
    for index in 0..entries.len() {
        order.check(index, ambiguities);
    }
    order.check_globals(globals, ambiguities);
    if order.needs_tree {
        own_tree::note(entries, places, &order.replaced_by_links, ambiguities);
    }
    order.check_whiteouts(ambiguities);
}

/// The sorted paths from this one on.
fn from<'s, 'e>(sorted: &'s [(&'e ImagePath, u64)], path: &ImagePath) -> &'s [(&'e ImagePath, u64)] {
    sorted.get(sorted.partition_point(|(other, _)| *other < path)..).unwrap_or_default()
}

/// The entries seen so far.
#[derive(Default)]
struct Order<'a> {
    entries: &'a [Entry],
    places: &'a [Place],
    /// Index of the last entry of each path.
    written: HashMap<&'a ImagePath, usize>,
    /// The spellings of paths that have several.
    spellings: BTreeSet<(&'a ImagePath, Spelling)>,
    /// Paths that whiteouts hide.
    whiteouts: BTreeMap<ImagePath, Placed<'a>>,
    /// The directory of the last entry: neighbours share it.
    last: Option<ImagePath>,
    /// True if only the folder of the layer shows what an entry leads to: one is below a link or a file, or a directory
    /// made way for something else.
    needs_tree: bool,
    /// Links that took the place of directories.
    replaced_by_links: Vec<Placed<'a>>,
}

impl<'a> Order<'a> {
    fn check(&mut self, index: usize, ambiguities: &mut Ambiguities) {
        let Some((entry, place)) = self.placed(index) else { return };
        if self.last.as_ref().is_none_or(|last| !last.is_parent_of(&entry.path)) {
            let parent = entry.path.parent();
            self.needs_tree |= self.nearest(&parent).is_some_and(|above| above.kind != EntryKind::Directory);
            self.last = Some(parent);
        }
        let mut push = |form| ambiguities.push(form, place.offset, entry.path.clone());
        let name = entry.path.file_name();
        if name.starts_with(WHITEOUT) {
            // A name makes a whiteout, whatever the type.
            self.check_whiteout((entry, place), &mut push);
        } else if entry.path.is_root() && entry.kind != EntryKind::Directory {
            let form = if place.spelling.is_plain() { AmbiguousForm::RootAsFile } else { AmbiguousForm::RootReplaced };
            push(form);
        } else if let EntryKind::Hardlink(target) = &entry.kind {
            self.check_hard_link(entry, target, &mut push);
        } else if entry.kind == EntryKind::CharDevice(0, 0) {
            push(AmbiguousForm::WhiteoutDevice);
        }
        if let Some(before) = self.written.insert(&entry.path, index).and_then(|before| self.placed(before)) {
            self.check_twice(before, (entry, place), &mut push);
        }
    }

    fn check_whiteout(&mut self, (entry, place): Placed<'a>, push: &mut impl FnMut(AmbiguousForm)) {
        let name = entry.path.file_name();
        if entry.path.as_bytes() == b".wh..wh..opq" {
            push(AmbiguousForm::OpaqueRoot);
        }
        match name.strip_prefix(WHITEOUT).filter(|_| !name.starts_with(META)) {
            None => {}
            Some(b"" | b"." | b"..") => push(AmbiguousForm::WhiteoutWithoutName),
            Some(hidden) => match self.whiteouts.entry(entry.path.parent().child(hidden)) {
                btree_map::Entry::Vacant(slot) => _ = slot.insert((entry, place)),
                // Engines make a device, which the second one cannot make again.
                btree_map::Entry::Occupied(_) => push(AmbiguousForm::WhiteoutAfterEntry),
            },
        }
    }

    fn check_hard_link(&mut self, entry: &Entry, target: &ImagePath, push: &mut impl FnMut(AmbiguousForm)) {
        match self.written(target).filter(|_| !is_whiteout(target)) {
            Some((found, _)) => hard_link_forms(found, entry, push),
            None if self.nearest(target).is_some_and(|above| matches!(above.kind, EntryKind::Symlink(_))) => {
                self.needs_tree = true;
            }
            None if self.whiteouts.contains_key(target) => push(AmbiguousForm::HardLinkToWhiteout),
            None => push(AmbiguousForm::HardLinkOutsideLayer),
        }
    }

    /// Checks an entry whose path the layer has already.
    fn check_twice(&mut self, before: Placed<'a>, (entry, place): Placed<'a>, push: &mut impl FnMut(AmbiguousForm)) {
        if before.1.spelling.is_same(place.spelling) || self.is_spelled(&entry.path, place.spelling) {
            push(AmbiguousForm::DuplicatePath);
        } else {
            self.spellings.extend([before.1.spelling, place.spelling].map(|spelling| (&entry.path, spelling)));
        }
        if before.0.kind == EntryKind::Directory && entry.kind != EntryKind::Directory {
            self.needs_tree = true;
            if matches!(entry.kind, EntryKind::Symlink(_)) {
                self.replaced_by_links.push((entry, place));
            }
        }
    }

    /// Returns true if an entry spells a path of several spellings in this way.
    fn is_spelled(&self, path: &ImagePath, spelling: Spelling) -> bool {
        let mut spellings = self.spellings.range((path, Spelling::default())..).take_while(|(other, _)| *other == path);
        spellings.any(|(_, other)| other.is_same(spelling))
    }

    /// Notes PAX global headers named as one before or as a member.
    fn check_globals(&self, globals: &[GlobalHeader], ambiguities: &mut Ambiguities) {
        let mut seen: BTreeMap<&ImagePath, Vec<Spelling>> = BTreeMap::new();
        for global in globals {
            let earlier = seen.entry(&global.path).or_default();
            let member = self.written(&global.path).map(|(_, place)| place.spelling);
            let is_named = earlier.iter().copied().chain(member).any(|spelling| spelling.is_same(global.spelling));
            if is_named || self.is_spelled(&global.path, global.spelling) {
                ambiguities.push(AmbiguousForm::PaxGlobalTwice, global.offset, global.path.clone());
            } else {
                earlier.push(global.spelling);
            }
        }
    }

    /// Checks whiteouts against the layer's own entries for what they hide.
    fn check_whiteouts(&self, ambiguities: &mut Ambiguities) {
        if self.whiteouts.is_empty() {
            return;
        }
        let offsets = self.places.iter().map(|place| place.offset);
        let mut sorted: Vec<(&ImagePath, u64)> = self.entries.iter().map(|entry| &entry.path).zip(offsets).collect();
        sorted.sort_unstable();
        for (hidden, &(marker, Place { offset, .. })) in &self.whiteouts {
            let is_directory = self.written(hidden).is_some_and(|(entry, _)| entry.kind == EntryKind::Directory);
            // An entry for the hidden path itself replaces the whiteout.
            let own = from(&sorted, hidden).iter().take_while(|(path, _)| *path == hidden).map(|(_, at)| *at);
            let below = from(&sorted, &hidden.child(b"")).iter().take_while(|(path, _)| path.starts_with(hidden));
            if own.clone().chain(below.clone().map(|(_, at)| *at)).any(|at| at < offset) {
                ambiguities.push(AmbiguousForm::WhiteoutAfterEntry, offset, marker.path.clone());
            }
            if is_directory && own.clone().any(|at| at > offset) {
                ambiguities.push(AmbiguousForm::WhiteoutBeforeDirectory, offset, marker.path.clone());
            }
            let replaced = own.filter(|at| *at > offset).min().unwrap_or(u64::MAX);
            if let Some((path, at)) = below.clone().find(|(_, at)| (offset..replaced).contains(at)) {
                ambiguities.push(AmbiguousForm::EntryBelowWhiteout, *at, (*path).clone());
            }
        }
    }

    /// The entry of a path, or else of the nearest directory above it. The root is always a directory, and a whiteout is
    /// no entry for its own name.
    fn nearest(&self, path: &ImagePath) -> Option<&'a Entry> {
        let entry = |path: &ImagePath| self.written(path).filter(|_| !is_whiteout(path) && !path.is_root());
        let mut found = entry(path);
        let mut above = if found.is_none() { path.parent() } else { ImagePath::root() };
        while found.is_none() && !above.is_root() {
            found = entry(&above);
            above = above.parent();
        }
        found.map(|(entry, _)| entry)
    }

    /// The last entry of a path.
    fn written(&self, path: &ImagePath) -> Option<Placed<'a>> {
        self.placed(*self.written.get(path)?)
    }

    fn placed(&self, index: usize) -> Option<Placed<'a>> {
        Some((self.entries.get(index)?, *self.places.get(index)?))
    }
}

/// The forms of a hard link to an entry of its layer.
fn hard_link_forms(target: &Entry, link: &Entry, push: &mut impl FnMut(AmbiguousForm)) {
    match target.kind {
        EntryKind::Directory => push(AmbiguousForm::HardLinkToDirectory),
        // A link's mode does not matter.
        EntryKind::Symlink(_) => {}
        _ if target.mode != link.mode => push(AmbiguousForm::HardLinkMode),
        _ => {}
    }
}

fn is_whiteout(path: &ImagePath) -> bool {
    path.file_name().starts_with(WHITEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms in a layer of members with these names, each with the index of its entry.
    fn forms(members: &[(&str, EntryKind)]) -> Vec<(&'static str, u64)> {
        forms_with(members, 0, &[])
    }

    /// As `forms`, in a layer with PAX global headers. Each mode is `step` more than the one before.
    fn forms_with(members: &[(&str, EntryKind)], step: u32, globals: &[&str]) -> Vec<(&'static str, u64)> {
        let entry = |((name, kind), mode): (&(&str, EntryKind), u32)| Entry {
            path: (*name).into(),
            kind: kind.clone(),
            mode,
            owner: None,
            size: 0,
        };
        let entries: Vec<_> = members.iter().zip((0..).map(|number| number * step)).map(entry).collect();
        let place = |(offset, (name, _)): (u64, &(&str, _))| Place { offset, spelling: Spelling::of(name.as_bytes()) };
        let places: Vec<_> = (0..).zip(members).map(place).collect();
        let global = |(offset, name): (u64, &&str)| GlobalHeader {
            path: (*name).into(),
            spelling: Spelling::of(name.as_bytes()),
            offset,
        };
        let globals: Vec<_> = (100..).zip(globals).map(global).collect();
        let mut ambiguities = Ambiguities::default();
        note(&entries, &places, &globals, &mut ambiguities);
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
            ("m", symlink("/c2/d")),
            ("d", hard_link("l/b")),
            ("d2", hard_link("l")),
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
        assert_eq!(forms(&[(".wh.a", FILE), (".wh.a/b", FILE)]), [], "another name");
    }

    #[test]
    fn conflicts_are_noted_where_they_lie() {
        assert_eq!(forms(&[("a", FILE), ("b", FILE), ("a", FILE)]), [("duplicate-path", 2)]);
        assert_eq!(forms(&[("a", DIR), ("a", FILE)]), [("duplicate-path", 1)]);
        assert_eq!(forms(&[("a", hard_link("b")), ("b", FILE)]), [("hard-link-outside-layer", 0)]);
        assert_eq!(forms(&[("a", EntryKind::CharDevice(0, 0))]), [("whiteout-device", 0)]);
        assert_eq!(forms(&[("a", FILE), ("a/b", FILE)]), [("entry-below-file", 1)]);
        for name in [".wh.", ".wh..", ".wh..."] {
            assert_eq!(forms(&[(name, FILE)]), [("whiteout-without-name", 0)], "{name}");
        }
        assert_eq!(forms(&[(".wh..wh..opq", FILE)]), [("opaque-root", 0)]);
        for name in ["", ".", "a/.."] {
            assert_eq!(forms(&[(name, FILE), ("a", DIR)]), [("root-as-file", 0)], "{name}");
        }
        for name in ["/", "..", "/.."] {
            assert_eq!(forms(&[(name, symlink("a"))]), [("root-replaced", 0)], "{name}");
            assert_eq!(forms(&[(name, DIR)]), [], "{name}");
        }
    }

    #[test]
    fn names_that_are_spelled_differently_are_no_duplicates() {
        assert_eq!(forms(&[("a", FILE), ("./a", FILE)]), [("duplicate-path", 1)]);
        assert_eq!(forms(&[("a", FILE), ("/a", FILE)]), []);
        assert_eq!(forms(&[("../a", FILE), ("a", FILE)]), []);
        assert_eq!(forms(&[("a", FILE), ("/a", FILE), ("a", FILE)]), [("duplicate-path", 2)]);
        assert_eq!(forms(&[("/../a", FILE), ("a", FILE), ("/a", FILE)]).last(), Some(&("duplicate-path", 2)));
        assert_eq!(forms(&[("/a", DIR), ("/a/", DIR)]), [("duplicate-path", 1)]);
    }

    #[test]
    fn global_headers_are_named_as_no_other_and_as_no_member() {
        let members = [("a", FILE), ("b", FILE), ("/b", FILE)];
        assert_eq!(forms_with(&members, 0, &["c", "d", "/a"]), []);
        assert_eq!(forms_with(&members, 0, &["c", "./c"]), [("pax-global-twice", 101)]);
        assert_eq!(forms_with(&members, 0, &["a", "b", "/b"]).len(), 3);
    }

    #[test]
    fn hard_links_to_what_the_layer_has() {
        let link = ("h", hard_link("a"));
        assert_eq!(forms(&[("a", DIR), link.clone()]), [("hard-link-to-directory", 1)]);
        assert_eq!(forms(&[(".wh.a", FILE), link.clone()]), [("hard-link-to-whiteout", 1)]);
        assert_eq!(forms(&[(".wh.a", FILE), ("h", hard_link(".wh.a"))]), [("hard-link-outside-layer", 1)]);
        for (kind, expected) in
            [(FILE, &[("hard-link-mode", 1)][..]), (EntryKind::Fifo, &[("hard-link-mode", 1)]), (symlink("x"), &[])]
        {
            assert_eq!(forms_with(&[("a", kind.clone()), link.clone()], 1, &[]), expected, "{kind:?}");
            assert_eq!(forms(&[("a", kind), link.clone()]), []);
        }
    }

    #[test]
    fn a_whiteout_and_what_it_hides_conflict_in_either_order() {
        assert_eq!(forms(&[("a", FILE), (".wh.a", FILE)]), [("whiteout-after-entry", 1)]);
        assert_eq!(forms(&[("a/b", FILE), (".wh.a", FILE)]), [("whiteout-after-entry", 1)]);
        assert_eq!(forms(&[("ab", FILE), (".wh.a", FILE)]), []);
        assert_eq!(forms(&[(".wh.a", FILE), ("a", FILE)]), []);
        assert_eq!(forms(&[(".wh.a", FILE), ("/.wh.a", FILE)]), [("whiteout-after-entry", 1)], "the same whiteout");
        assert_eq!(forms(&[(".wh.a", FILE), ("a/b", FILE)]), [("entry-below-whiteout", 1)]);
        assert_eq!(
            forms(&[(".wh.a", FILE), ("a/b", FILE), ("a", DIR)]),
            [("whiteout-before-directory", 0), ("entry-below-whiteout", 1)]
        );
        assert_eq!(forms(&[(".wh.a", FILE), ("a", DIR), ("a/b", FILE)]), [("whiteout-before-directory", 0)]);
    }
}
