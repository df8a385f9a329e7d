//! The folder into which engines unpack a layer, for entries whose paths lead through links or files of the layer.

use std::collections::BTreeMap;

use crate::model::{Ambiguities, AmbiguousForm, Entry, EntryKind, ImagePath};

use super::{META, Place, Placed, WHITEOUT, hard_link_forms};

/// Maximum number of links on a path (Linux, `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

const ROOT: usize = 0;

/// A name of the folder.
#[derive(Clone, Debug)]
enum Node<'a> {
    Directory(BTreeMap<&'a [u8], usize>),
    Link(&'a [u8]),
    /// A file or a device.
    File(&'a Entry),
    /// What stands for a whiteout.
    Whiteout,
}

/// Where a path leads.
#[derive(Debug)]
struct OwnWalk {
    /// The node; `None` if there is none.
    end: Option<usize>,
    /// Number of followed links.
    links: usize,
    /// True if a link's target leads out of the root.
    is_out: bool,
    /// What engines refuse on the way.
    form: Option<AmbiguousForm>,
}

#[derive(Debug)]
struct OwnTree<'a> {
    nodes: Vec<Node<'a>>,
}

/// Adds the ambiguities of entries below links and files, and of hard links through links. `replaced_by_links` are links
/// that took the place of directories.
pub(super) fn note(
    entries: &[Entry],
    places: &[Place],
    replaced_by_links: &[Placed<'_>],
    ambiguities: &mut Ambiguities,
) {
    let mut tree = OwnTree { nodes: vec![Node::Directory(BTreeMap::new())] };
    for (entry, place) in entries.iter().zip(places) {
        tree.add(entry, |form| ambiguities.push(form, place.offset, entry.path.clone()));
    }
    // Engines set the times of directories last, and follow what has taken their place.
    for (link, place) in replaced_by_links {
        if tree.walk(link.path.as_bytes(), false).end.is_none() {
            ambiguities.push(AmbiguousForm::LinkReplacesDirectory, place.offset, link.path.clone());
        }
    }
}

impl<'a> OwnTree<'a> {
    fn add(&mut self, entry: &'a Entry, mut push: impl FnMut(AmbiguousForm)) {
        let (folder, name) = split(&entry.path);
        let walk = self.walk(folder, true);
        let out = walk.is_out.then_some(AmbiguousForm::EntryBelowLinkOut);
        walk.form.into_iter().chain(out).for_each(&mut push);
        let Some(parent) = walk.end else { return };
        if name.is_empty() || name.starts_with(META) {
            return;
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            let id = self.push(Node::Whiteout);
            if let Node::Directory(names) = self.node_mut(parent) {
                names.entry(hidden).or_insert(id);
            }
            return;
        }
        let id = match &entry.kind {
            EntryKind::Directory => match self.child(parent, name) {
                Some(id) if matches!(self.node(id), Node::Directory(_)) => return,
                _ => self.push(Node::Directory(BTreeMap::new())),
            },
            EntryKind::Symlink(target) => self.push(Node::Link(target)),
            EntryKind::Hardlink(target) => self.hard_link(entry, target, push),
            _ => self.push(Node::File(entry)),
        };
        if let Node::Directory(names) = self.node_mut(parent) {
            names.insert(name, id);
        }
    }

    /// The node of a hard link. Paths without links are checked before.
    fn hard_link(&mut self, link: &'a Entry, target: &'a ImagePath, mut push: impl FnMut(AmbiguousForm)) -> usize {
        let (folder, name) = split(target);
        let walk = self.walk(folder, false);
        let found = walk.end.and_then(|folder| self.child(folder, name));
        let node = found.map(|id| self.node(id));
        if walk.links > 0 {
            match node {
                Some(Node::Directory(_)) => push(AmbiguousForm::HardLinkToDirectory),
                Some(Node::Whiteout) => push(AmbiguousForm::HardLinkToWhiteout),
                Some(Node::File(file)) => hard_link_forms(file, link, &mut push),
                Some(Node::Link(_)) => {}
                None => push(AmbiguousForm::HardLinkOutsideLayer),
            }
        }
        match (node, found) {
            (Some(Node::Link(_) | Node::Whiteout), Some(id)) => id,
            _ => self.push(Node::File(link)),
        }
    }

    /// Follows a path with all its links. With `makes`, makes the directories that are missing.
    fn walk(&mut self, path: &'a [u8], makes: bool) -> OwnWalk {
        let names =
            |text: &'a [u8], is_target: bool| text.split(|&b| b == b'/').rev().map(move |name| (name, is_target));
        // Names left, and whether they are a part of a link's target.
        let mut rest: Vec<(&[u8], bool)> = names(path, false).collect();
        let mut place = vec![ROOT];
        let mut walk = OwnWalk { end: None, links: 0, is_out: false, form: None };
        while let Some((name, is_target)) = rest.pop() {
            let here = place.last().copied().unwrap_or(ROOT);
            match name {
                b"" | b"." => continue,
                b".." => {
                    walk.is_out |= place.len() == 1;
                    place.truncate((place.len() - 1).max(1));
                    continue;
                }
                _ => {}
            }
            let found = self.child(here, name).map(|id| (id, self.node(id)));
            match found {
                Some((id, Node::Directory(_))) => {
                    place.push(id);
                    continue;
                }
                Some((id, Node::File(_))) if !makes && rest.is_empty() => {
                    place.push(id);
                    continue;
                }
                Some((_, &Node::Link(target))) => {
                    walk.links += 1;
                    if walk.links > MOST_LINKS {
                        walk.form = Some(AmbiguousForm::EntryBelowLinkLoop);
                        return walk;
                    }
                    if target.first() == Some(&b'/') {
                        place.truncate(1);
                    }
                    rest.extend(names(target, true));
                    continue;
                }
                Some((_, Node::File(_))) => walk.form = Some(AmbiguousForm::EntryBelowFile),
                None if is_target => walk.form = Some(AmbiguousForm::EntryBelowMissingTarget),
                Some((_, Node::Whiteout)) | None => {}
            }
            if !makes {
                return walk;
            }
            let id = self.push(Node::Directory(BTreeMap::new()));
            if let Node::Directory(names) = self.node_mut(here) {
                names.insert(name, id);
            }
            place.push(id);
        }
        walk.end = place.last().copied();
        walk
    }

    fn child(&self, directory: usize, name: &[u8]) -> Option<usize> {
        match self.node(directory) {
            Node::Directory(names) => names.get(name).copied(),
            _ => None,
        }
    }

    fn push(&mut self, node: Node<'a>) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    #[expect(clippy::indexing_slicing, reason = "every id is the index of a node")]
    fn node(&self, id: usize) -> &Node<'a> {
        &self.nodes[id]
    }

    #[expect(clippy::indexing_slicing, reason = "every id is the index of a node")]
    fn node_mut(&mut self, id: usize) -> &mut Node<'a> {
        &mut self.nodes[id]
    }
}

/// The directory of a path, and its last component.
fn split(path: &ImagePath) -> (&[u8], &[u8]) {
    let name = path.file_name();
    let folder = path.as_bytes().strip_suffix(name).unwrap_or_default();
    (folder, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms in a layer that is written as `f:PATH d:PATH l:PATH>TARGET h:PATH>TARGET`, with the number of the entry.
    fn forms(layer: &str) -> Vec<(&'static str, u64)> {
        let entry = |word: &str| {
            let (letter, rest) = word.split_once(':').unwrap();
            let (path, target) = rest.split_once('>').unwrap_or((rest, ""));
            let kind = match letter {
                "d" => EntryKind::Directory,
                "l" => EntryKind::Symlink(target.as_bytes().into()),
                "h" => EntryKind::Hardlink(target.into()),
                _ => EntryKind::File,
            };
            Entry { path: path.into(), kind, mode: 0, owner: None, size: 0 }
        };
        let entries: Vec<_> = layer.split(' ').map(entry).collect();
        let places: Vec<_> = (0..).map(|offset| Place { offset, ..Place::default() }).take(entries.len()).collect();
        let mut ambiguities = Ambiguities::default();
        super::super::note(&entries, &places, &[], &mut ambiguities);
        ambiguities.kept.iter().filter_map(|ambiguity| Some((ambiguity.form.name(), ambiguity.offset?))).collect()
    }

    #[test]
    fn links_to_directories_of_the_layer_can_be_passed() {
        for layer in [
            "d:y l:x>y f:x/in",
            "d:y l:x>/y f:x/in f:x/z/in",
            "f:y/z/in l:x>y/z f:x/other",
            "l:x>/ f:x/in",
            "d:a d:a/y l:a/x>../a/./y/ f:a/x/in",
            "d:y l:x>y d:x/z f:y/z/in l:v>y/z f:v/in",
            "l:x>y d:y f:x/in",
        ] {
            assert_eq!(forms(layer), [], "{layer}");
        }
    }

    #[test]
    fn what_engines_refuse_below_links_and_files() {
        for (layer, form, at) in [
            ("l:x>none f:x/in f:x/other", "entry-below-missing-target", 1),
            ("l:x>none f:x/y/in", "entry-below-missing-target", 1),
            ("l:x>y f:x/in d:y", "entry-below-missing-target", 1),
            ("d:y l:x>y l:x/z>none f:y/z/in", "entry-below-missing-target", 3),
            ("d:a d:y l:a/x>../../y f:a/x/in", "entry-below-link-out", 3),
            ("l:x>x f:x/in", "entry-below-link-loop", 1),
            ("l:x>y l:y>x f:x/in", "entry-below-link-loop", 2),
            ("f:x f:x/in", "entry-below-file", 1),
            ("f:x f:x/y/in f:x/y/other", "entry-below-file", 1),
            ("f:y l:x>y f:x/in", "entry-below-file", 2),
        ] {
            assert_eq!(forms(layer), [(form, at)], "{layer}");
        }
        let both = [("entry-below-missing-target", 2), ("entry-below-link-out", 2)];
        assert_eq!(forms("d:a l:a/x>../../y f:a/x/in"), both);
        assert_eq!(forms("d:x d:x/y f:x f:x/y/in"), [("duplicate-path", 2), ("entry-below-file", 3)]);
    }

    #[test]
    fn hard_links_through_links() {
        for (link, form) in [
            ("h:h>l/file", None),
            ("h:h>l/link", None),
            ("h:h>l/dir", Some("hard-link-to-directory")),
            ("h:h>l/none", Some("hard-link-outside-layer")),
            ("h:h>l/hidden", Some("hard-link-to-whiteout")),
            ("h:h>l/file/in", Some("hard-link-outside-layer")),
        ] {
            let found = forms(&format!("d:y f:y/file d:y/dir l:y/link>none f:y/.wh.hidden l:l>y {link}"));
            assert_eq!(found, Vec::from_iter(form.map(|form| (form, 6))), "{link}");
        }
    }

    #[test]
    fn a_link_that_replaces_a_directory_must_lead_somewhere() {
        let twice = ("duplicate-path", 2);
        assert_eq!(forms("f:file d:x l:x>file"), [twice]);
        assert_eq!(forms("d:dir d:x l:x>dir"), [twice]);
        assert_eq!(forms("d:dir d:x l:x>none"), [twice, ("link-replaces-directory", 2)]);
        assert_eq!(forms("d:dir d:x l:x>x"), [twice, ("link-replaces-directory", 2)]);
    }
}
