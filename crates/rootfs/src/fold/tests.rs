use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::ROOT;
use layer::scan::Compression;

use super::*;

fn layer(entries: &[(&str, EntryKind)]) -> Arc<LayerScan> {
    let entries = entries
        .iter()
        .map(|(path, kind)| Entry { path: (*path).into(), kind: kind.clone(), mode: 0o644, owner: None, size: 1 })
        .collect();
    Arc::new(LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found: BTreeMap::new() })
}

/// The paths of the merged image, directories with a trailing slash, and the layer of each.
fn paths(layers: Vec<Arc<LayerScan>>) -> Vec<String> {
    let rootfs = RootFs::fold(layers, &Limits::default());
    rootfs
        .walk(|_, _| true)
        .map(|(path, id)| match rootfs.node(id).what {
            What::Directory(_) => format!("{path}/"),
            _ => format!("{path} {}", rootfs.node(id).layer),
        })
        .collect()
}

const FILE: EntryKind = EntryKind::File;
const DIR: EntryKind = EntryKind::Directory;

fn symlink(target: &str) -> EntryKind {
    EntryKind::Symlink(target.as_bytes().into())
}

#[test]
fn whiteouts_hide_lower_layers_only_whatever_their_order() {
    let lower = layer(&[("a/x", FILE), ("a/y", FILE)]);
    for upper in [layer(&[("a/.wh.x", FILE), ("a/x", FILE)]), layer(&[("a/x", FILE), ("a/.wh.x", FILE)])] {
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/a/x 1", "/a/y 0"]);
    }
    for upper in [layer(&[("a/.wh..wh..opq", FILE), ("a/z", FILE)]), layer(&[("a/z", FILE), ("a/.wh..wh..opq", FILE)])]
    {
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/a/z 1"]);
    }
    assert_eq!(paths(vec![lower.clone(), layer(&[(".wh.a", FILE)])]), [""; 0]);
    assert_eq!(
        paths(vec![lower.clone(), layer(&[("a/.wh.nothing", FILE), ("b/.wh.x", FILE)])]),
        ["/a/", "/a/x 0", "/a/y 0", "/b/"],
        "engines make the directory of a whiteout"
    );
    for upper in [
        layer(&[("a/.wh..wh..opq", FILE), ("a/b/.wh.x", FILE)]),
        layer(&[("a/b/.wh..wh..opq", FILE), ("a/.wh..wh..opq", FILE)]),
    ] {
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/a/b/"], "which none of its layer's whiteouts hides");
    }
    assert_eq!(paths(vec![lower, layer(&[("a/.wh.", FILE), ("a/.wh..", FILE), ("a/.wh..wh.plnk", FILE)])]).len(), 3);
}

#[test]
fn kinds_replace_each_other() {
    let tree = layer(&[("a", DIR), ("a/x", FILE)]);
    let file = layer(&[("a", FILE)]);
    assert_eq!(paths(vec![tree.clone(), file.clone()]), ["/a 1"]);
    assert_eq!(paths(vec![file.clone(), tree.clone()]), ["/a/", "/a/x 1"]);
    assert_eq!(paths(vec![file, layer(&[("a/x", FILE)])]), ["/a/", "/a/x 1"]);
    assert_eq!(paths(vec![tree, layer(&[("a", DIR)])]), ["/a/", "/a/x 0"]);
}

#[test]
fn lower_links_become_directories_and_hard_links_may_leave_the_layer() {
    let usrmerge = layer(&[("usr/lib", DIR), ("lib", symlink("usr/lib")), ("up", symlink("../../usr"))]);
    let upper = layer(&[
        ("lib/x", FILE),
        ("up/y", FILE),
        ("hard", EntryKind::Hardlink("lib/x".into())),
        ("lost", EntryKind::Hardlink("none".into())),
    ]);
    assert_eq!(
        paths(vec![usrmerge.clone(), upper.clone()]),
        ["/hard 1", "/lib/", "/lib/x 1", "/up/", "/up/y 1", "/usr/", "/usr/lib/"]
    );
    let last = layer(&[("lib/.wh.x", FILE)]);
    assert_eq!(paths(vec![usrmerge, upper, last]), ["/hard 1", "/lib/", "/up/", "/up/y 1", "/usr/", "/usr/lib/"]);
}

#[test]
fn a_parent_that_leads_nowhere_is_made_where_it_leads() {
    let own = layer(&[("var/run", symlink("/run")), ("var/run/x", FILE)]);
    assert_eq!(paths(vec![own]), ["/run/", "/run/x 0", "/var/", "/var/run 0"]);
    let lower = layer(&[("var/run", symlink("/run"))]);
    let rootfs =
        RootFs::fold(vec![lower, layer(&[("var/run/libx.so", FILE), ("var/run/y", FILE)])], &Limits::default());
    assert!(rootfs.is_directory(&"var/run".into()) && !rootfs.is_directory(&"run".into()));
}

#[test]
fn a_marker_below_a_directory_that_replaces_a_link_hides_nothing_elsewhere() {
    let lower = layer(&[("t/old", FILE), ("a", symlink("t"))]);
    for upper in [layer(&[("a", DIR), ("a/.wh..wh..opq", FILE)]), layer(&[("a/.wh.old", FILE), ("a", DIR)])] {
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/t/", "/t/old 0"]);
    }
}

#[test]
fn a_directory_that_replaces_another_entry_of_its_layer_merges_with_the_lower_one() {
    let lower = layer(&[("a/old", FILE)]);
    let both = ["/a/", "/a/new 1", "/a/old 0"];
    for first in [FILE, symlink("b"), EntryKind::Fifo] {
        assert_eq!(paths(vec![lower.clone(), layer(&[("a", first), ("a", DIR), ("a/new", FILE)])]), both);
    }
    assert_eq!(paths(vec![lower.clone(), layer(&[(".wh.a", FILE), ("a", DIR), ("a/new", FILE)])]), both);
    assert_eq!(paths(vec![lower.clone(), layer(&[(".wh.a", FILE), ("a", FILE), ("a", DIR), ("a/new", FILE)])]), both);
    assert_eq!(paths(vec![lower.clone(), layer(&[(".wh.a", FILE), ("a/new", FILE)])]), ["/a/", "/a/new 1"]);
    assert_eq!(paths(vec![lower, layer(&[("a/new", FILE), ("a", FILE)])]), ["/a 1"]);
}

#[test]
fn an_opaque_directory_hides_what_lies_below_it_and_the_root_hides_nothing() {
    let lower = layer(&[("a/b/old", FILE), ("a/old", FILE)]);
    for marker in ["a/.wh..wh..opq", "l/.wh..wh..opq"] {
        let upper = layer(&[("l", symlink("a")), ("a/b/new", FILE), (marker, FILE)]);
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/a/b/", "/a/b/new 1", "/l 1"]);
    }
    let everything = [("l", symlink("/")), ("l/.wh..wh..opq", FILE), (".wh..wh..opq", FILE)];
    assert_eq!(paths(vec![lower, layer(&everything)]), ["/a/", "/a/b/", "/a/b/old 0", "/a/old 0", "/l 1"]);
}

#[test]
fn a_hard_link_to_a_whiteout_is_one() {
    let lower = layer(&[("a", FILE), ("b", FILE), ("t/c", FILE)]);
    let link = |path: &str, target: &'static str| (path.to_owned(), EntryKind::Hardlink(target.into()));
    for (path, target, left) in [
        ("b", "a", &["/l 1", "/t/", "/t/c 0"][..]),
        ("l/c", "a", &["/b 0", "/l 1", "/t/"]),
        ("none", "a", &["/b 0", "/l 1", "/t/", "/t/c 0"]),
    ] {
        let (path, link) = link(path, target);
        let upper = layer(&[("l", symlink("t")), (".wh.a", FILE), (&path, link)]);
        assert_eq!(paths(vec![lower.clone(), upper]), left, "{path}");
    }
}

#[test]
fn loops_end() {
    let rootfs = RootFs::fold(vec![layer(&[("a", symlink("b")), ("b", symlink("/a"))])], &Limits::default());
    assert_eq!(rootfs.open(&"a/x".into()).unwrap_err(), crate::NoFile::Loop);
}

/// What Docker and containerd refuse in an image of these layers, if anything.
fn refused(layers: Vec<Arc<LayerScan>>) -> Option<String> {
    RootFs::fold(layers, &Limits::default()).refused
}

#[test]
fn layers_that_engines_refuse_are_refused() {
    let lower = || layer(&[("a/x", FILE)]);
    let hard_link = |target: &str| EntryKind::Hardlink(target.into());
    let nothing = "is a whiteout that names nothing";
    let not_before = "which is not a file that the same layer has before it";
    let after = "is a whiteout of what the same layer has before it";
    let below = "is below a file, or below links in a circle, of the same layer";
    for (entries, path, what) in [
        (vec![("a/.wh.", FILE)], "/a/.wh.", nothing.to_owned()),
        (vec![("a/.wh..", FILE)], "/a/.wh..", nothing.to_owned()),
        (vec![("a/.wh...", FILE)], "/a/.wh...", nothing.to_owned()),
        (vec![("h", hard_link("none"))], "/h", format!("is a hard link to /none, {not_before}")),
        (vec![("h", hard_link("a/x"))], "/h", format!("is a hard link to /a/x, {not_before}")),
        (vec![("d", DIR), ("h", hard_link("d"))], "/h", format!("is a hard link to /d, {not_before}")),
        (vec![("b", FILE), (".wh.b", FILE)], "/.wh.b", after.to_owned()),
        (vec![("b/c", FILE), (".wh.b", FILE)], "/.wh.b", after.to_owned()),
        (vec![(".wh.b", FILE), (".wh.b", FILE)], "/.wh.b", after.to_owned()),
        (vec![("b", FILE), ("b/c", FILE)], "/b", below.to_owned()),
        (vec![("l", symlink("l")), ("l/c", FILE)], "/l", below.to_owned()),
        (vec![(".wh.b", FILE), ("b/c", FILE)], "/b", "is below what the same layer hides before it".to_owned()),
    ] {
        assert_eq!(refused(vec![lower(), layer(&entries)]), Some(format!("layer 2: {path} {what}")), "{entries:?}");
    }
}

/// What builders write: BuildKit, kaniko, buildah, Bazel, Nix, ko and Jib.
#[test]
fn layers_of_builders_are_not_refused() {
    let hard_link = |target: &str| EntryKind::Hardlink(target.into());
    for entries in [
        vec![("a/.wh.x", FILE), ("a/.wh.y", FILE), ("a/.wh..x", FILE), ("a/.wh..wh.plnk", FILE)],
        vec![("a/.wh..wh..opq", FILE), ("a/new", FILE)],
        vec![("./a", DIR), ("a", DIR), ("/a/b", FILE), ("a/b", FILE)],
        vec![("b", FILE), ("b", FILE), ("c", hard_link("b")), ("./d", hard_link("/c"))],
        vec![(".wh.a", FILE), ("a", DIR), ("a/b", FILE)],
        vec![("usr/lib", DIR), ("lib", symlink("usr/lib")), ("lib/x", FILE), ("h", hard_link("lib/x"))],
        vec![("var/run", symlink("/run")), ("var/run/x", FILE)],
        vec![("dev/null", EntryKind::CharDevice(1, 3)), ("run/pipe", EntryKind::Fifo)],
    ] {
        assert_eq!(refused(vec![layer(&[("a/x", FILE)]), layer(&entries)]), None, "{entries:?}");
    }
}

#[test]
fn a_bookkeeping_file_hides_nothing() {
    let lower = layer(&[("a/.wh.plnk", FILE), ("a/x", FILE)]);
    assert_eq!(paths(vec![lower, layer(&[("a/.wh..wh.x", FILE)])]), ["/a/", "/a/x 0"]);
}

#[test]
fn a_marker_goes_through_links_of_its_own_layer() {
    let lower = layer(&[("t/old", FILE), ("t/u/old", FILE), ("a", symlink("t"))]);
    assert_eq!(paths(vec![lower.clone(), layer(&[("t/.wh.old", FILE)])]), ["/a 0", "/t/", "/t/u/", "/t/u/old 0"]);
    for marker in ["a/.wh.old", "a/.wh..wh..opq"] {
        assert_eq!(
            paths(vec![lower.clone(), layer(&[(marker, FILE)])]),
            ["/a/", "/t/", "/t/old 0", "/t/u/", "/t/u/old 0"]
        );
    }
    let own = |target: &str, marker: &str| layer(&[("a", symlink(target)), (marker, FILE)]);
    assert_eq!(paths(vec![lower.clone(), own("t", "a/.wh.old")]), ["/a 1", "/t/", "/t/u/", "/t/u/old 0"]);
    assert_eq!(paths(vec![lower.clone(), own("t/u", "a/.wh..wh..opq")]), ["/a 1", "/t/", "/t/old 0", "/t/u/"]);
    // A link that follows its marker replaces the directory that was made for the marker.
    let later = layer(&[("a/.wh.old", FILE), ("a", symlink("t"))]);
    assert_eq!(paths(vec![lower.clone(), later]), ["/a 1", "/t/", "/t/old 0", "/t/u/", "/t/u/old 0"]);
    // A directory that replaces the link, anywhere on the path.
    let upper = layer(&[("a/u/.wh.old", FILE), ("a", DIR), ("a/u", DIR)]);
    assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/a/u/", "/t/", "/t/old 0", "/t/u/", "/t/u/old 0"]);
    // A directory of the layer that is not a link below does not change what the whiteout refers to.
    let upper = layer(&[("t", DIR), ("t/u", DIR), ("a/u/.wh.old", FILE)]);
    assert_eq!(paths(vec![lower, upper]), ["/a/", "/a/u/", "/t/", "/t/old 0", "/t/u/", "/t/u/old 0"]);
}

#[test]
fn modes_and_layers_are_those_of_the_last_description() {
    let entry = |path: &str, kind: EntryKind, mode: u32| Entry { path: path.into(), kind, mode, owner: None, size: 1 };
    let scan = |entries: Vec<Entry>| {
        Arc::new(LayerScan {
            compression: Compression::None,
            unpacked: 0,
            diff_id: None,
            entries,
            found: BTreeMap::new(),
        })
    };
    let lower = scan(vec![entry("", DIR, 0o700), entry("a", DIR, 0o700), entry("b/c", FILE, 0o600)]);
    let upper = scan(vec![entry("a", DIR, 0o711), entry("", FILE, 0o777)]);
    let rootfs = RootFs::fold(vec![lower, upper], &Limits::default());
    let node = |path: &str| {
        let (_, id) = rootfs.resolve(&path.into()).unwrap();
        (rootfs.node(id).mode, rootfs.node(id).layer)
    };
    assert_eq!(node("a"), (0o711, 1));
    assert_eq!(node("b"), (0o755, 0), "a directory that no layer describes");
    assert_eq!(rootfs.node(ROOT).mode, 0o700, "the root is a directory");
    assert_eq!(rootfs.walk(|_, _| true).count(), 3, "the root is not an entry of itself");
    assert_eq!(rootfs.refused, None);
}

#[test]
fn a_hard_link_gives_its_file_another_mode_and_owner() {
    let entry = |path: &str, kind: EntryKind, mode: u32| Entry { path: path.into(), kind, mode, owner: None, size: 1 };
    let scan = |entries: Vec<Entry>| Arc::new(LayerScan { entries, ..LayerScan::empty() });
    let seven = Some(FileOwner { user: 7, group: 7 });
    let link = |path: &str, target: &str, mode| Entry {
        owner: seven,
        ..entry(path, EntryKind::Hardlink(target.into()), mode)
    };
    let lower = scan(vec![entry("a", FILE, 0o600), link("b", "a", 0o640), entry("lower", FILE, 0o600)]);
    let upper = scan(vec![entry("l", symlink("a"), 0o777), link("m", "l", 0o600), link("n", "lower", 0o640)]);
    let rootfs = RootFs::fold(vec![lower, upper], &Limits::default());
    let described = |name: &[u8]| {
        let id = rootfs.child(ROOT, name).unwrap();
        (rootfs.node(id).mode, rootfs.owners[&id])
    };
    assert_eq!((described(b"a"), described(b"b")), ((0o640, seven), (0o640, seven)));
    assert_eq!(described(b"m"), (0o777, None), "a link has no mode of its own");
    assert_eq!(described(b"lower"), (0o600, None), "no layer changes a lower file");
}

#[test]
fn lower_directories_without_an_entry_keep_their_mode() {
    let entry = |path: &str, kind: EntryKind, mode: u32| Entry { path: path.into(), kind, mode, owner: None, size: 1 };
    let directories = vec![entry("a", DIR, 0o700), entry("b", DIR, 0o755), entry("c", DIR, 0o700)];
    let lower = Arc::new(LayerScan { entries: directories, ..LayerScan::empty() });
    let upper = layer(&[("a/.wh.x", FILE), ("b/new", FILE), ("c/new", FILE), ("c", DIR), ("d/new", FILE)]);
    let rootfs = RootFs::fold(vec![lower, upper], &Limits::default());
    let modes = [b"a", b"b", b"c", b"d"].map(|name| rootfs.node(rootfs.child(ROOT, name).unwrap()).mode);
    assert_eq!(modes, [0o700, 0o755, 0o644, 0o755]);
    assert_eq!(rootfs.refused, None);
}

#[test]
fn links_on_the_way_are_followed_up_to_a_limit() {
    let lower = layer(&[("b/c/x", FILE)]);
    let upper = [("a", symlink("../b/c/./../c")), ("loop", symlink("loop")), ("a/y", FILE), ("a/z", FILE)];
    assert_eq!(
        paths(vec![lower.clone(), layer(&upper)]),
        ["/a 1", "/b/", "/b/c/", "/b/c/x 0", "/b/c/y 1", "/b/c/z 1", "/loop 1"]
    );
    // A relative link starts in its own directory, an absolute one in the root.
    let links = [("d/a", symlink("t")), ("d/b", symlink("/t")), ("d/c", symlink("/t/../u"))];
    assert_eq!(
        paths(vec![layer(&[&links[..], &[("d/a/x", FILE), ("d/b/y", FILE), ("d/c/z", FILE)]].concat())]),
        ["/d/", "/d/a 0", "/d/b 0", "/d/c 0", "/d/t/", "/d/t/x 0", "/t/", "/t/y 0", "/u/", "/u/z 0"]
    );
    // A path that finally leads nowhere is replaced.
    assert_eq!(paths(vec![layer(&[("loop", symlink("loop")), ("loop/y", FILE)])]), ["/loop/", "/loop/y 0"]);
    let chain = layer(&[("a", symlink("b")), ("b", symlink("c")), ("c", DIR), ("a/x", FILE)]);
    let fold = |symlinks| {
        let limits = Limits { symlinks, ..Limits::default() };
        let rootfs = RootFs::fold(vec![chain.clone()], &limits);
        rootfs.walk(|_, _| true).map(|(path, _)| path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(fold(2), ["/a", "/b", "/c", "/c/x"]);
    assert_eq!(fold(1), ["/a", "/b", "/b/x", "/c"]);
}

#[test]
fn a_parent_that_is_replaced_meanwhile_is_found_again() {
    let lower = layer(&[("t/x", FILE)]);
    let upper = layer(&[("a/x", FILE), ("a", symlink("t")), ("a/y", FILE), ("b", symlink("a")), ("b/z", FILE)]);
    assert_eq!(paths(vec![lower, upper]), ["/a 1", "/b 1", "/t/", "/t/x 0", "/t/y 1", "/t/z 1"]);
    let own = [
        ("a/b/c/x", FILE),
        ("a/b/y", FILE),
        ("a/b", FILE),
        ("a/b", DIR),
        ("a/b/z", FILE),
        ("a/bc/z", FILE),
        ("a", DIR),
    ];
    assert_eq!(paths(vec![layer(&own)]), ["/a/", "/a/b/", "/a/b/z 0", "/a/bc/", "/a/bc/z 0"]);
}

#[test]
fn findings_stay_with_their_entries_whether_a_layer_is_shared_or_not() {
    let found = BTreeMap::from([(1, vec![Ok(model::Found::Text(b"text".as_slice().into()))])]);
    let entry = |path: &str| Entry { path: path.into(), kind: FILE, mode: 0o644, owner: None, size: 4 };
    let entries = vec![entry("a"), entry("b")];
    let scan = Arc::new(LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found });
    let shared = Arc::clone(&scan);
    for layers in [vec![shared], vec![scan]] {
        let rootfs = RootFs::fold(layers, &Limits::default());
        assert_eq!(rootfs.open(&"a".into()).unwrap().1.found.len(), 0);
        assert_eq!(rootfs.open(&"b".into()).unwrap().1.found.len(), 1);
    }
}

fn any_entry() -> impl Strategy<Value = (String, EntryKind)> {
    let name = prop::sample::select(vec!["a", "b", "c", ".wh.a", ".wh.b", ".wh..wh..opq"]);
    let path = (prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3), name)
        .prop_map(|(dirs, name)| [dirs.join("/").as_str(), name].join("/"));
    let kind = prop::sample::select(vec![
        FILE,
        DIR,
        symlink("a"),
        symlink("/b/c"),
        symlink(".."),
        EntryKind::Hardlink("a/b".into()),
    ]);
    (path, kind)
}

/// Panics if a node has a whiteout's name, or a path does not lead to its node.
fn assert_sound(layers: &[Vec<(String, EntryKind)>]) {
    let scans = layers
        .iter()
        .map(|entries| layer(&entries.iter().map(|(path, kind)| (path.as_str(), kind.clone())).collect::<Vec<_>>()));
    let one = RootFs::fold(scans.collect(), &Limits::default());
    for (path, id) in one.walk(|_, _| true) {
        assert!(!path.file_name().starts_with(b".wh."), "{path}");
        let (parent, _) = one.resolve(&path.parent()).unwrap();
        assert_eq!(parent, path.parent());
        assert!(id < one.nodes.len());
    }
}

#[test]
fn a_marker_below_a_link_that_leads_nowhere_is_sound() {
    assert_sound(&[vec![("a/b".to_owned(), symlink("a")), ("a/b/.wh.a".to_owned(), FILE)]]);
}

proptest! {
    #[test]
    fn merging_is_sound(layers in prop::collection::vec(prop::collection::vec(any_entry(), 0..12), 1..5)) {
        assert_sound(&layers);
    }
}
