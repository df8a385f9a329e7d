use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::layer::scan::Compression;
use crate::rootfs::listing;

use super::*;

fn layer(entries: &[(&str, Kind)]) -> Arc<LayerScan> {
    let entries = entries
        .iter()
        .map(|(path, kind)| Entry { path: (*path).into(), kind: kind.clone(), mode: 0o644, size: 1 })
        .collect();
    Arc::new(LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found: BTreeMap::new() })
}

/// The paths of the merged image, directories with a slash, and the layer of each.
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

const FILE: Kind = Kind::File;
const DIR: Kind = Kind::Directory;

fn symlink(target: &str) -> Kind {
    Kind::Symlink(target.as_bytes().into())
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
        ["/a/", "/a/x 0", "/a/y 0"]
    );
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
fn parents_may_be_links_and_links_may_leave_the_layer() {
    let usrmerge = layer(&[("usr/lib", DIR), ("lib", symlink("usr/lib")), ("up", symlink("../../usr"))]);
    let upper = layer(&[
        ("lib/x", FILE),
        ("up/y", FILE),
        ("hard", Kind::Hardlink("lib/x".into())),
        ("lost", Kind::Hardlink("none".into())),
    ]);
    assert_eq!(
        paths(vec![usrmerge.clone(), upper.clone()]),
        ["/hard 1", "/lib 0", "/up 0", "/usr/", "/usr/lib/", "/usr/lib/x 1", "/usr/y 1"]
    );
    let last = layer(&[("lib/.wh.x", FILE)]);
    assert_eq!(paths(vec![usrmerge, upper, last]), ["/hard 1", "/lib 0", "/up 0", "/usr/", "/usr/lib/", "/usr/y 1"]);
}

#[test]
fn a_parent_that_leads_nowhere_is_made_where_it_leads() {
    let lower = layer(&[("var/run", symlink("/run"))]);
    assert_eq!(paths(vec![lower, layer(&[("var/run/x", FILE)])]), ["/run/", "/run/x 1", "/var/", "/var/run 0"]);
}

#[test]
fn a_marker_below_a_directory_that_replaces_a_link_hides_nothing_elsewhere() {
    let lower = layer(&[("t/old", FILE), ("a", symlink("t"))]);
    for upper in [layer(&[("a", DIR), ("a/.wh..wh..opq", FILE)]), layer(&[("a/.wh.old", FILE), ("a", DIR)])] {
        assert_eq!(paths(vec![lower.clone(), upper]), ["/a/", "/t/", "/t/old 0"]);
    }
}

#[test]
fn loops_end() {
    let rootfs = RootFs::fold(vec![layer(&[("a", symlink("b")), ("b", symlink("/a"))])], &Limits::default());
    assert_eq!(rootfs.open(&"a/x".into()).unwrap_err(), crate::rootfs::NoFile::Loop);
}

fn any_entry() -> impl Strategy<Value = (String, Kind)> {
    let name = prop::sample::select(vec!["a", "b", "c", ".wh.a", ".wh.b", ".wh..wh..opq"]);
    let path = (prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3), name)
        .prop_map(|(dirs, name)| [dirs.join("/").as_str(), name].join("/"));
    let kind = prop::sample::select(vec![
        FILE,
        DIR,
        symlink("a"),
        symlink("/b/c"),
        symlink(".."),
        Kind::Hardlink("a/b".into()),
    ]);
    (path, kind)
}

proptest! {
    /// A marker's place in its layer never matters, nothing is named like a marker, and every path leads to its node.
    #[test]
    fn merging_is_sound(layers in prop::collection::vec(prop::collection::vec(any_entry(), 0..12), 1..5)) {
        let fold = |rotate: bool| {
            let scans = layers.iter().map(|entries| {
                let (mut markers, mut others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|(path, _)| path.contains(".wh."));
                if rotate { others.append(&mut markers); markers = others } else { markers.append(&mut others) }
                layer(&markers.iter().map(|(path, kind)| (path.as_str(), kind.clone())).collect::<Vec<_>>())
            });
            RootFs::fold(scans.collect(), &Limits::default())
        };
        let (one, other) = (fold(false), fold(true));
        prop_assert_eq!(listing(&one), listing(&other));
        for (path, id) in one.walk(|_, _| true) {
            prop_assert!(!path.file_name().starts_with(b".wh."));
            let (parent, _) = one.resolve(&path.parent()).unwrap();
            prop_assert_eq!(parent, path.parent());
            prop_assert!(id < one.nodes.len());
        }
    }
}
