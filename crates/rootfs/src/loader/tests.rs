mod binding;
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;

use layer::scan::{Compression, LayerScan};
use model::{Endian, Entry, EntryKind, Limits};

use super::*;

fn object(rpath: &[&str], runpath: &[&str], machine: u16) -> ElfInfo {
    let list = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    ElfInfo { rpath: list(rpath), runpath: list(runpath), ..ElfInfo::bare(64, Endian::Little, machine) }
}

/// An image of libraries, each with a machine; 62 is the tested one.
fn image(libraries: &[(&str, u16)]) -> RootFs {
    let found = |machine| Found::Elf(Box::new(object(&[], &[], machine)));
    files_of(libraries.iter().map(|(path, machine)| ((*path).into(), found(*machine))).collect())
}

fn files_of(files: Vec<(ImagePath, Found)>) -> RootFs {
    let entries = files.iter().map(|(path, _)| Entry {
        path: path.clone(),
        kind: EntryKind::File,
        mode: 0o755,
        owner: None,
        size: 4096,
    });
    let entries = entries.collect();
    let found = files.into_iter().enumerate().map(|(index, (_, found))| (index, vec![Ok(found)]));
    let layer = LayerScan {
        compression: Compression::None,
        unpacked: 0,
        diff_id: None,
        entries,
        found: found.collect::<BTreeMap<_, _>>(),
    };
    RootFs::fold(vec![Arc::new(layer)], &Limits::default())
}

fn find(rootfs: &RootFs, library_path: Option<&str>, object: &ElfInfo) -> String {
    let settings = LoaderSettings {
        library_path: library_path.map(ToOwned::to_owned),
        working_directory: Some(ImagePath::root()),
        ..LoaderSettings::default()
    };
    let bound =
        Rc::new(Loader::new(rootfs, settings)).find("libx.so", &"opt/torch/lib/libt.so".into(), object).unwrap();
    bound.map_or("nothing".into(), |bound| format!("{} by {}", bound.path, bound.route))
}

#[test]
fn ldconfig_at_the_start_finds_what_the_cache_lacks() {
    let elf = |soname: Option<&str>| {
        Found::Elf(Box::new(ElfInfo { soname: soname.map(ToOwned::to_owned), ..object(&[], &[], 62) }))
    };
    let conf = |text: &str| Found::Text(text.as_bytes().into());
    let of = |files: Vec<(&str, Found)>, runs_ldconfig: bool| {
        let files = files.into_iter().map(|(path, found)| (path.into(), found));
        let rootfs = files_of(files.chain([("etc/ld.so.conf".into(), conf("include /etc/c/*.conf\n"))]).collect());
        let settings = LoaderSettings { runs_ldconfig, ..LoaderSettings::default() };
        let bound = Rc::new(Loader::new(&rootfs, settings)).find("libx.so", &"a".into(), &object(&[], &[], 62));
        bound.unwrap().map_or("nothing".into(), |bound| format!("{} by {}", bound.path, bound.route))
    };
    let both = || {
        let conf = ("etc/c/b.conf", conf("/opt/other\n/opt/x\n"));
        vec![("opt/x/libx.so", elf(None)), ("usr/lib/libx.so", elf(None)), conf]
    };
    assert_eq!(of(both(), true), "/opt/x/libx.so by ldconfig at the start, by /etc/c/b.conf");
    assert_eq!(of(both(), false), "/usr/lib/libx.so by default directory /usr/lib");
    // A link is made to the latest file with the name; another soname is not the name.
    let conf = || ("etc/c/a.conf", conf("/opt/x\n"));
    let latest = vec![
        ("opt/x/libx.so.1.9", elf(Some("libx.so"))),
        ("opt/x/libx.so.1.10", elf(Some("libx.so"))),
        ("opt/x/libx.so.2.100", elf(Some("libx.so.2"))),
        conf(),
    ];
    assert_eq!(of(latest, true), "/opt/x/libx.so.1.10 by ldconfig at the start, by /etc/c/a.conf");
    assert_eq!(of(vec![("opt/x/libx.so", elf(Some("liby.so"))), conf()], true), "nothing");
}

#[test]
fn order_of_the_search() {
    let all = image(&[
        ("opt/torch/lib/libt.so", 62),
        ("opt/nccl/lib/libx.so", 62),
        ("env/libx.so", 62),
        ("usr/lib/libx.so", 62),
    ]);
    let path = &["$ORIGIN/../../nccl/lib"];
    let rpath = object(path, &[], 62);
    let runpath = object(&[], path, 62);
    let none = object(&[], &[], 62);
    let both = object(&["/usr/lib"], path, 62);
    assert_eq!(find(&all, Some("/env"), &rpath), "/opt/nccl/lib/libx.so by DT_RPATH $ORIGIN/../../nccl/lib");
    assert_eq!(find(&all, Some("/env"), &runpath), "/env/libx.so by LD_LIBRARY_PATH /env");
    assert_eq!(find(&all, None, &runpath), "/opt/nccl/lib/libx.so by DT_RUNPATH $ORIGIN/../../nccl/lib");
    assert_eq!(find(&all, None, &both), "/opt/nccl/lib/libx.so by DT_RUNPATH $ORIGIN/../../nccl/lib");
    assert_eq!(find(&all, Some(":/none;/env"), &none), "/env/libx.so by LD_LIBRARY_PATH /env");
    assert_eq!(find(&all, None, &none), "/usr/lib/libx.so by default directory /usr/lib");
    assert_eq!(find(&image(&[]), None, &none), "nothing");
}

#[test]
fn another_machine_is_passed_over() {
    let mixed = image(&[("env/libx.so", 183), ("usr/lib/libx.so", 62)]);
    assert_eq!(find(&mixed, Some("/env"), &object(&[], &[], 62)), "/usr/lib/libx.so by default directory /usr/lib");
}

#[test]
fn tokens_are_replaced() {
    let all = image(&[("opt/torch/lib/aarch64/libx.so", 183)]);
    let object = object(&["${ORIGIN}/$PLATFORM", "$ORIGINAL"], &[], 183);
    assert_eq!(find(&all, None, &object), "/opt/torch/lib/aarch64/libx.so by DT_RPATH ${ORIGIN}/$PLATFORM");
}

#[test]
fn a_token_may_depend_on_the_loader_or_the_host() {
    let empty = image(&[]);
    let gap = |path| {
        let loader = Rc::new(Loader::new(&empty, LoaderSettings::default()));
        loader.find("libx.so", &"a".into(), &object(&[path], &[], 62)).unwrap_err().why
    };
    assert_eq!(gap("/usr/$LIB"), "/usr/$LIB: what $LIB stands for depends on the build of the loader");
    assert_eq!(
        gap("/opt/$PLATFORM"),
        "/opt/$PLATFORM: what $PLATFORM stands for depends on the vendor of the host's processor"
    );
}
