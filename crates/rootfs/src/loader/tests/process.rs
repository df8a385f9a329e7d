//! Whole processes, of synthetic programs and libraries. The rules are those of glibc 2.41.

use crate::Credentials;
use model::{FileOwner, VersionNeed};

use super::*;

const X86_64: u16 = 62;
const LD: &str = "lib64/ld-linux-x86-64.so.2";

/// A file of an image.
pub(super) enum Content {
    Elf(Box<ElfInfo>),
    /// A library that only root can read.
    Private(Box<ElfInfo>),
    Text(&'static str),
    Bytes(Vec<u8>),
    Link(&'static str),
    /// A file of this size without findings.
    Other(u64),
    Unread(&'static str),
    Folder,
}

use Content::{Bytes, Folder, Link, Other, Text, Unread};

/// A library with these dependencies.
pub(super) fn library(needed: &[&str]) -> ElfInfo {
    ElfInfo { needed: owned(needed), ..ElfInfo::bare(64, Endian::Little, X86_64) }
}

pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn elf_of(info: ElfInfo) -> Content {
    Content::Elf(Box::new(info))
}

fn plain(needed: &[&str]) -> Content {
    elf_of(library(needed))
}

/// A program at `bin/app`.
pub(super) fn app(needed: &[&str]) -> (&'static str, Content) {
    ("bin/app", elf_of(ElfInfo { interpreter: Some(format!("/{LD}")), kind: 2, ..library(needed) }))
}

/// glibc's loader with two default directories, and its C library.
pub(super) fn glibc() -> Vec<(&'static str, Content)> {
    let loader = ElfInfo { default_directories: owned(&["/lib64/", "/usr/lib64/"]), ..library(&[]) };
    let libc = ElfInfo { version_gives: owned(&["GLIBC_2.2.5", "GLIBC_2.41"]), ..library(&[]) };
    vec![(LD, elf_of(loader)), ("lib64/libc.so.6", elf_of(libc))]
}

pub(super) fn rootfs(files: Vec<(&str, Content)>) -> RootFs {
    let mut entries = Vec::new();
    let mut found = BTreeMap::new();
    for (number, (path, content)) in files.into_iter().enumerate() {
        let mode = if matches!(content, Content::Private(_)) { 0o600 } else { 0o755 };
        let (kind, size, what) = match content {
            Content::Elf(elf) | Content::Private(elf) => (EntryKind::File, 4096, Some(Ok(Found::Elf(elf)))),
            Text(text) => (EntryKind::File, text.len() as u64, Some(Ok(Found::Text(text.as_bytes().into())))),
            Bytes(bytes) => (EntryKind::File, bytes.len() as u64, Some(Ok(Found::Text(bytes.into())))),
            Link(target) => (EntryKind::Symlink(target.as_bytes().into()), 0, None),
            Other(size) => (EntryKind::File, size, None),
            Unread(why) => (EntryKind::File, 4096, Some(Err(Gap::new(why)))),
            Folder => (EntryKind::Directory, 0, None),
        };
        entries.push(Entry { path: path.into(), kind, mode, owner: Some(FileOwner::ROOT), size });
        found.extend(what.map(|what| (number, vec![what])));
    }
    let layer = LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found };
    RootFs::fold(vec![Arc::new(layer)], &Limits::default())
}

/// Starts the program with these files and glibc.
fn start(program: (&'static str, Content), files: Vec<(&'static str, Content)>, settings: LoaderSettings) -> Started {
    let files = glibc().into_iter().chain([program]).chain(files).collect();
    let rootfs = rootfs(files);
    let loader = Rc::new(Loader::new(&rootfs, settings));
    let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).map_err(|gap| gap.why)?;
    let mapped = |object: &LoadedObject<'_>| format!("{}: {}", object.path, object.route);
    // The program and its loader are always mapped.
    let objects = process.objects().iter().skip(2).map(mapped).collect();
    let asked = process.searches().iter().map(|search| search.by.clone()).collect();
    Ok((objects, process.failure().map(ToOwned::to_owned), asked))
}

/// Mapped objects, why the program does not start, and the origins of the requests; or why none of these is known.
type Started = Result<(Vec<String>, Option<String>, Vec<String>), String>;

fn mapped(program: (&'static str, Content), files: Vec<(&'static str, Content)>) -> Vec<String> {
    let (objects, failure, _) = start(program, files, settings("")).unwrap();
    assert_eq!(failure, None);
    objects
}

fn fails(program: (&'static str, Content), files: Vec<(&'static str, Content)>) -> String {
    start(program, files, settings("")).unwrap().1.unwrap()
}

fn settings(library_path: &str) -> LoaderSettings {
    LoaderSettings { library_path: Some(library_path.to_owned()), ..LoaderSettings::default() }
}

#[test]
fn dependencies_are_mapped_breadth_first_and_once() {
    let files = vec![
        ("lib64/liba.so", plain(&["libc.so", "libd.so"])),
        ("lib64/libb.so", plain(&["libd.so", "liba.so"])),
        ("lib64/libc.so", plain(&["libb.so"])),
        ("usr/lib64/libd.so", plain(&[])),
    ];
    let by = |path: &str| format!("{path}: default directory {}", path.rsplit_once('/').unwrap().0);
    assert_eq!(
        mapped(app(&["liba.so", "libb.so"]), files),
        ["/lib64/liba.so", "/lib64/libb.so", "/lib64/libc.so", "/usr/lib64/libd.so"].map(by)
    );
}

#[test]
fn one_file_by_two_names_is_one_object() {
    let files = vec![("lib64/liba.so", plain(&[])), ("lib64/libb.so", Link("liba.so"))];
    assert_eq!(mapped(app(&["libb.so", "liba.so"]), files), ["/lib64/liba.so: default directory /lib64"]);
    // A library's soname stands for it wherever the file is.
    let own = ElfInfo { soname: Some("libb.so".to_owned()), ..library(&[]) };
    let files = vec![("opt/liba.so", elf_of(own)), ("lib64/libb.so", plain(&[]))];
    assert_eq!(mapped(app(&["/opt/liba.so", "libb.so"]), files), ["/opt/liba.so: by its path"]);
}

#[test]
fn a_library_that_is_missing_stops_the_program_unless_it_is_the_drivers() {
    let missing = "cannot open shared object file: No such file or directory";
    assert_eq!(fails(app(&["libx.so.1"]), vec![]), format!("libx.so.1: {missing}"));
    assert_eq!(mapped(app(&["libcuda.so.1", "libnvidia-ml.so.1"]), vec![]), [""; 0]);
    assert_eq!(fails(app(&["libcudart.so.12"]), vec![]), format!("libcudart.so.12: {missing}"));
    // The libraries after it are still mapped.
    let after = vec![("lib64/liba.so", plain(&[]))];
    assert_eq!(mapped(app(&["libcuda.so.1", "liba.so"]), after), ["/lib64/liba.so: default directory /lib64"]);
}

#[test]
fn a_library_that_the_user_cannot_read_is_passed_over() {
    let private = || Content::Private(Box::new(library(&[])));
    let run = |user: Option<u32>, needed: &str, files| {
        let credentials = user.map(|user| Credentials { user, groups: vec![user] });
        let settings = LoaderSettings { credentials, ..settings("/opt") };
        let (objects, failure, _) = start(app(&[needed]), files, settings).unwrap();
        (objects, failure)
    };
    let both = || vec![("opt/liba.so", private()), ("lib64/liba.so", plain(&[]))];
    assert_eq!(run(Some(1000), "liba.so", both()).0, ["/lib64/liba.so: default directory /lib64"]);
    for user in [None, Some(0)] {
        assert_eq!(run(user, "liba.so", both()).0, ["/opt/liba.so: LD_LIBRARY_PATH /opt"]);
    }
    let only = || vec![("opt/liba.so", private())];
    let failure = |name, why| Some(format!("{name}: cannot open shared object file: {why}"));
    assert_eq!(run(Some(1000), "liba.so", only()).1, failure("liba.so", "No such file or directory"));
    assert_eq!(run(Some(1000), "/opt/liba.so", only()).1, failure("/opt/liba.so", "Permission denied"));
}

#[test]
fn a_program_needs_a_dynamic_loader_of_glibc() {
    let with = |interpreter: Option<&str>| {
        let elf = ElfInfo { interpreter: interpreter.map(ToOwned::to_owned), kind: 2, ..library(&[]) };
        start(("bin/app", elf_of(elf)), vec![("lib/ld-odd.so", Other(100))], settings(""))
    };
    assert_eq!(with(None), Err("/bin/app names no dynamic loader".to_owned()));
    assert!(with(Some("/lib/ld-musl-x86_64.so.1")).unwrap_err().contains("uses musl's loader"));
    assert_eq!(with(Some("/lib/none.so")).unwrap().1.unwrap(), "/lib/none.so: no such dynamic loader");
    assert_eq!(with(Some("/lib/ld-odd.so")), Err("/lib/ld-odd.so: this dynamic loader could not be read".to_owned()));
    assert_eq!(
        start(("bin/app", Text("#!/bin/sh")), vec![], settings("")),
        Err("/bin/app is not an ELF program, so what it runs is unknown".to_owned())
    );
    assert_eq!(start(("bin/app", Unread("cut off")), vec![], settings("")), Err("cut off".to_owned()));
    assert_eq!(
        start(("bin/other", plain(&[])), vec![], settings("")),
        Err("/bin/app does not lead to a file".to_owned())
    );
}

#[test]
fn preloads_come_first_and_may_be_missing() {
    let files = |preload: &'static str| {
        vec![
            ("etc/ld.so.preload", Text(preload)),
            ("lib64/liba.so", plain(&["libc.so"])),
            ("lib64/libb.so", plain(&[])),
            ("lib64/libc.so", plain(&[])),
            ("lib64/libd.so", plain(&[])),
        ]
    };
    let preload = |variable: &str, file| {
        let settings = LoaderSettings { preload: Some(variable.to_owned()), ..settings("") };
        let (objects, failure, asked) = start(app(&["libd.so"]), files(file), settings).unwrap();
        assert_eq!(failure, None);
        let short = |text: String| text.split(": ").next().unwrap().trim_start_matches("/lib64/").to_owned();
        (objects.into_iter().map(short).collect::<Vec<_>>(), asked)
    };
    let (objects, asked) = preload("libb.so:libnone.so liba.so", "");
    assert_eq!(objects, ["libb.so", "liba.so", "libd.so", "libc.so"]);
    assert_eq!(asked[..3], ["LD_PRELOAD"; 3]);
    assert_eq!(asked[3..], ["needed by /bin/app", "needed by /lib64/liba.so"]);
    let (objects, asked) = preload("libb.so", "# libc.so\nlibnone.so liba.so:libb.so\tlibc.so # rest\n");
    assert_eq!(objects, ["libb.so", "liba.so", "libc.so", "libd.so"]);
    assert_eq!(asked[1..5], ["/etc/ld.so.preload"; 4]);
}

#[test]
fn versions_that_are_required_must_be_given() {
    let needs = |file: &str, version: &str| {
        let need =
            VersionNeed { file: file.to_owned(), versions: vec![version.to_owned()], weak: vec!["B_8".to_owned()] };
        let elf = ElfInfo { version_needs: vec![need], ..library(&["libb.so"]) };
        let gives = ElfInfo { version_gives: owned(&["B_1", "B_2"]), ..library(&[]) };
        vec![("lib64/liba.so", elf_of(elf)), ("lib64/libb.so", elf_of(gives))]
    };
    assert_eq!(mapped(app(&["liba.so"]), needs("libb.so", "B_2")).len(), 2);
    // Versions of a library that is not mapped are not checked.
    assert_eq!(mapped(app(&["liba.so"]), needs("libz.so", "B_9")).len(), 2);
    assert_eq!(
        fails(app(&["liba.so"]), needs("libb.so", "B_9")),
        "/lib64/libb.so: version `B_9' not found (required by /lib64/liba.so)"
    );
    // A library without versions passes.
    let mut files = needs("libb.so", "B_9");
    files[1].1 = plain(&[]);
    assert_eq!(mapped(app(&["liba.so"]), files).len(), 2);
}

#[test]
fn rpath_of_those_that_brought_an_object_counts_unless_it_has_a_runpath() {
    let in_app = |needed: &[&str]| {
        let program =
            ElfInfo { interpreter: Some(format!("/{LD}")), kind: 2, rpath: owned(&["/app"]), ..library(needed) };
        ("bin/app", elf_of(program))
    };
    let files = |a: ElfInfo| vec![("app/liba.so", elf_of(a)), ("app/libb.so", plain(&[])), ("mid/libb.so", plain(&[]))];
    let b = |program, a: ElfInfo| mapped(program, files(a)).remove(1);
    let rpath = |path: &str| owned(&[path]);
    assert_eq!(b(in_app(&["liba.so"]), library(&["libb.so"])), "/app/libb.so: DT_RPATH /app of /bin/app");
    let mid = ElfInfo { rpath: rpath("/mid"), ..library(&["libb.so"]) };
    assert_eq!(b(in_app(&["liba.so"]), mid.clone()), "/mid/libb.so: DT_RPATH /mid");
    let both = ElfInfo { runpath: rpath("/app"), ..mid.clone() };
    assert_eq!(b(in_app(&["liba.so"]), both), "/app/libb.so: DT_RUNPATH /app");
    let elsewhere = ElfInfo { runpath: rpath("/none"), ..library(&["libb.so"]) };
    assert!(fails(in_app(&["liba.so"]), files(elsewhere)).starts_with("libb.so: cannot open"));
}

#[test]
fn a_file_that_cannot_be_mapped_is_passed_over_or_stops_the_search() {
    let first = |content: Content| {
        let files = vec![("one/libx.so", content), ("two/libx.so", plain(&[]))];
        let (objects, failure, _) =
            start(app(&["libx.so"]), files, settings("/one:/two")).map_err(|why| format!("? {why}"))?;
        failure.map_or_else(|| Ok(objects[0].clone()), Err)
    };
    // A 32-bit object of the same machine: the x32 ABI.
    assert_eq!(
        first(elf_of(ElfInfo::bare(32, Endian::Little, X86_64))),
        Ok("/two/libx.so: LD_LIBRARY_PATH /two".to_owned())
    );
    let machine = |bits: u8, endian: Endian, machine: u16| elf_of(ElfInfo::bare(bits, endian, machine));
    let second = Ok("/two/libx.so: LD_LIBRARY_PATH /two".to_owned());
    assert_eq!(first(plain(&[])), Ok("/one/libx.so: LD_LIBRARY_PATH /one".to_owned()));
    assert_eq!(first(machine(32, Endian::Little, 3)), second);
    assert_eq!(first(machine(64, Endian::Little, 183)), second);
    assert_eq!(first(Link("missing")), second);
    assert_eq!(first(Link("../two/libx.so")), Ok("/two/libx.so: LD_LIBRARY_PATH /one".to_owned()));
    let refused = |why: &str| Err(format!("/one/libx.so: {why}"));
    assert_eq!(first(machine(64, Endian::Big, X86_64)), refused("ELF file data encoding not little-endian"));
    let object = ElfInfo { kind: 1, ..library(&[]) };
    assert_eq!(first(elf_of(object)), refused("only ET_DYN and ET_EXEC can be loaded"));
    let program = ElfInfo { kind: 2, ..library(&[]) };
    assert_eq!(first(elf_of(program)), Ok("/one/libx.so: LD_LIBRARY_PATH /one".to_owned()));
    let object = ElfInfo { refusal: Some("no reason".to_owned()), ..library(&[]) };
    assert_eq!(first(elf_of(object)), refused("no reason"));
    assert_eq!(first(Other(63)), refused("file too short"));
    assert_eq!(first(Bytes(b"\x7fELF".to_vec())), refused("file too short"));
    assert_eq!(first(Other(64)), refused("invalid ELF header"));
    assert_eq!(first(Folder), refused("cannot read file data"));
    assert_eq!(first(Unread("cut off")), Err("? cut off".to_owned()));
}

#[test]
fn a_loop_of_links_ends_one_search_path_and_not_the_search() {
    for path in ["/one:/two", "/missing:/one:/two"] {
        let files = vec![("one/libx.so", Link("libx.so")), ("two/libx.so", plain(&[])), ("lib64/libx.so", plain(&[]))];
        let (objects, ..) = start(app(&["libx.so"]), files, settings(path)).unwrap();
        assert_eq!(objects, ["/lib64/libx.so: default directory /lib64"], "{path}");
    }
}

#[test]
fn elements_of_a_search_path() {
    let find = |path: &str, folder: Option<&str>| {
        let settings = LoaderSettings { working_directory: folder.map(ImagePath::from), ..settings(path) };
        let files = vec![("srv/libx.so", plain(&[])), ("lib64/libx.so", plain(&[])), ("libx.so", plain(&[]))];
        start(app(&["libx.so"]), files, settings).map(|(objects, ..)| objects[0].clone())
    };
    let default = Ok("/lib64/libx.so: default directory /lib64".to_owned());
    // An empty path is ignored; an empty element is the working directory.
    assert_eq!(find("", Some("/srv")), default);
    assert_eq!(find(":/none", Some("/srv")).unwrap(), "/srv/libx.so: LD_LIBRARY_PATH ");
    assert_eq!(find("/srv//", None).unwrap(), "/srv/libx.so: LD_LIBRARY_PATH /srv//");
    assert_eq!(find("/", None).unwrap(), "/libx.so: LD_LIBRARY_PATH /");
    assert_eq!(find("srv", Some("")).unwrap(), "/srv/libx.so: LD_LIBRARY_PATH srv");
    assert_eq!(find("/none;/srv", None).unwrap(), "/srv/libx.so: LD_LIBRARY_PATH /srv");
    for (path, element) in [("srv", "srv"), (":/none", ".")] {
        let why = format!("'{element}' is searched for in the working directory, which is unknown");
        assert_eq!(find(path, None).unwrap_err(), why);
    }
}

#[test]
fn levels_and_features_are_below_each_folder() {
    let process = |glibc: &str, folder: &'static str, level: CpuLevel| {
        let loader = ElfInfo { default_directories: owned(&["/lib64/"]), ..library(&[]) };
        let libc = ElfInfo { version_gives: owned(&[glibc]), ..library(&[]) };
        let path = format!("lib64/{folder}/libx.so");
        let files = vec![
            (LD, elf_of(loader)),
            ("lib64/libc.so.6", elf_of(libc)),
            app(&["libx.so"]),
            ("lib64/libx.so", plain(&[])),
            (&*path, plain(&[])),
        ];
        let rootfs = rootfs(files);
        let loader = Rc::new(Loader::new(&rootfs, settings("")));
        let process = Process::start(&loader, level, &"bin/app".into()).map_err(|gap| gap.why)?;
        Ok::<_, String>((process.objects()[2].path.to_string(), process.depends_on_level()))
    };
    let plain = |depends| Ok(("/lib64/libx.so".to_owned(), depends));
    let below = |folder: &str| Ok((format!("/lib64/glibc-hwcaps/{folder}/libx.so"), true));
    assert_eq!(process("GLIBC_2.41", "glibc-hwcaps/x86-64-v3", CpuLevel::V3), below("x86-64-v3"));
    assert_eq!(process("GLIBC_2.33", "glibc-hwcaps/x86-64-v2", CpuLevel::V4), below("x86-64-v2"));
    assert_eq!(process("GLIBC_2.41", "glibc-hwcaps/x86-64-v4", CpuLevel::V4), below("x86-64-v4"));
    assert_eq!(process("GLIBC_2.41", "glibc-hwcaps/x86-64-v4", CpuLevel::V3), plain(true));
    assert_eq!(process("GLIBC_2.32", "glibc-hwcaps/x86-64-v3", CpuLevel::V3), plain(false));
    assert_eq!(process("GLIBC_2.41", "glibc-hwcaps/x86-64-v5", CpuLevel::V3), plain(false));
    assert_eq!(process("GLIBC_2.37", "haswell", CpuLevel::V3), plain(false));
    assert!(
        process("GLIBC_2.36", "haswell", CpuLevel::V3)
            .unwrap_err()
            .contains("/lib64/haswell/libx.so is for processors")
    );
    assert!(process("GLIBC_2.36", "tls", CpuLevel::V3).unwrap_err().contains("with certain features only"));
}

#[test]
fn dlopen_leaves_nothing_behind_where_it_fails() {
    let files = vec![
        app(&[]),
        ("lib64/liba.so", plain(&["libb.so"])),
        ("lib64/libb.so", plain(&[])),
        ("lib64/libc.so", plain(&["libb.so", "libnone.so"])),
    ];
    let rootfs = rootfs(glibc().into_iter().chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, settings("")));
    let mut process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    let Err(Stop::Fails(why)) = process.dlopen("libc.so", 0, DlopenMode::NOW) else { panic!("it was loaded") };
    assert!(why.starts_with("libnone.so: cannot open"), "{why}");
    assert_eq!(process.objects().len(), 2);
    // `bound` maps nothing.
    let bound = process.bound("liba.so", 0).unwrap().unwrap();
    assert_eq!(
        (bound.path.to_string(), bound.route.to_string()),
        ("/lib64/liba.so".to_owned(), "default directory /lib64".to_owned())
    );
    assert_eq!(process.bound("libnone.so", 0).unwrap(), None);
    assert_eq!(process.objects().len(), 2);
    let a = process.dlopen("liba.so", 0, DlopenMode::NOW).unwrap();
    assert_eq!((a, process.dlopen("liba.so", 0, DlopenMode::NOW).unwrap(), process.named("libb.so")), (2, 2, Some(3)));
    assert_eq!(process.closure([a]), [2, 3]);
    assert_eq!(process.closure([3, 2, 3]), [3, 2]);
    assert_eq!(process.bound("liba.so", 0).unwrap().unwrap().route, Route::Loaded);
    let searches: Vec<_> = process.searches().iter().map(|search| (&*search.name, &*search.by)).collect();
    assert_eq!(searches[..2], [("libc.so", "dlopen from /bin/app"), ("libb.so", "needed by /lib64/libc.so")]);
    assert!(process.fork().searches().is_empty());
}

#[test]
fn an_object_with_nodeflib_finds_nothing_in_default_directories() {
    let files = vec![
        ("opt/liba.so", elf_of(ElfInfo { no_default_libraries: true, ..library(&["libb.so"]) })),
        ("lib64/libb.so", plain(&[])),
    ];
    assert!(fails(app(&["/opt/liba.so"]), files).starts_with("libb.so: cannot open"));
}

/// Result of each step in the program's search for `libx.so`, with its path.
fn looks(files: Vec<(&'static str, Content)>, program: ElfInfo, library_path: &str) -> Vec<String> {
    let program = ElfInfo { interpreter: Some(format!("/{LD}")), kind: 2, needed: owned(&["libx.so"]), ..program };
    let rootfs = rootfs(glibc().into_iter().chain([("bin/app", elf_of(program))]).chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, settings(library_path)));
    let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    process.searches()[0].steps.iter().map(|step| format!("{}: {:?}", step.path, step.end)).collect()
}

#[test]
fn every_look_is_recorded_with_its_end() {
    let machine = |machine: u16| elf_of(ElfInfo::bare(64, Endian::Little, machine));
    let bits = ElfInfo::bare(32, Endian::Little, X86_64);
    let files = vec![
        ("a/libx.so", Link("missing")),
        ("b/libx.so", elf_of(bits)),
        ("c/libx.so", machine(3)),
        ("d/libx.so", machine(40)),
        ("e/libx.so", machine(183)),
        ("f/libx.so", machine(7)),
        ("g/libx.so", Other(1)),
    ];
    let foreign = |folder: &str, what: &str| format!("/{folder}/libx.so: Foreign(\"it is {what}\")");
    assert_eq!(
        looks(files, library(&[]), "/a:/none:/b:/c:/d:/e:/f:/g:/h"),
        [
            "/a/libx.so: Dangling".to_owned(),
            "/none/libx.so: Missing".to_owned(),
            "/b/libx.so: OtherClass(32)".to_owned(),
            foreign("c", "for x86"),
            foreign("d", "for ARM"),
            foreign("e", "for AArch64"),
            foreign("f", "for machine 7"),
            "/g/libx.so: Refused(\"file too short\")".to_owned(),
        ]
    );
    // The header of a 32-bit file is shorter.
    for (size, why) in [(51, "file too short"), (52, "invalid ELF header")] {
        let steps = looks(vec![("a/libx.so", Other(size))], ElfInfo::bare(32, Endian::Little, 3), "/a");
        assert_eq!(steps, [format!("/a/libx.so: Refused({why:?})")]);
    }
}

#[test]
fn each_folder_of_a_search_path_is_looked_in_once() {
    let there = || vec![("z/libx.so", plain(&[]))];
    let missing = |path: &str| format!("{path}: Missing");
    let found = "/z/libx.so: Taken(ImagePath(/z/libx.so))".to_owned();
    let steps = looks(there(), library(&[]), "/none:/none/:/none//:/:///:/z");
    assert_eq!(steps[..2], [missing("/none/libx.so"), missing("/libx.so")]);
    assert_eq!(steps.len(), 3, "{steps:?}, and {found}");
    // The program's DT_RPATH is searched once, although the program is also the requesting object.
    let rpath = ElfInfo { rpath: owned(&["/none"]), ..library(&[]) };
    let steps = looks(there(), rpath, "/z");
    assert_eq!((steps.len(), &*steps[0]), (2, "/none/libx.so: Missing"));
}

#[test]
fn the_programs_rpath_counts_for_whoever_it_did_not_bring_too() {
    let program = ElfInfo { interpreter: Some(format!("/{LD}")), kind: 2, rpath: owned(&["/app"]), ..library(&[]) };
    let files = vec![("bin/app", elf_of(program)), ("app/libx.so", plain(&[])), ("app/liby.so", plain(&[]))];
    let rootfs = rootfs(glibc().into_iter().chain(files).collect());
    let settings = LoaderSettings { preload: Some("libx.so".to_owned()), ..settings("") };
    let loader = Rc::new(Loader::new(&rootfs, settings));
    let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    assert_eq!(process.objects()[2].path.to_string(), "/app/libx.so", "a preload");
    let interpreter = process.bound("liby.so", 1).unwrap().unwrap();
    assert_eq!(interpreter.route, Route::InheritedRpath("/app".to_owned(), "bin/app".into()));
}

#[test]
fn of_two_objects_of_one_name_the_first_counts() {
    let named = || elf_of(ElfInfo { soname: Some("libs.so".to_owned()), ..library(&[]) });
    let files = vec![
        app(&["/one/libs.so", "/two/libs.so", "liba.so"]),
        ("one/libs.so", named()),
        ("two/libs.so", named()),
        ("lib64/liba.so", plain(&["libs.so"])),
    ];
    let rootfs = rootfs(glibc().into_iter().chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, settings("")));
    let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    let paths: Vec<_> = process.objects()[2..].iter().map(|object| object.path.to_string()).collect();
    assert_eq!(paths, ["/one/libs.so", "/two/libs.so", "/lib64/liba.so"]);
    assert_eq!(process.closure([4]), [4, 2]);
}

#[test]
fn a_loaded_object_answers_to_its_names_without_a_search() {
    let versions = VersionNeed { file: "libb.so".to_owned(), versions: vec!["B_9".to_owned()], weak: vec![] };
    let files = vec![
        app(&[]),
        ("lib64/liba.so", plain(&["libb.so"])),
        ("lib64/libb.so", elf_of(ElfInfo { version_gives: owned(&["B_1"]), ..library(&[]) })),
        ("lib64/libc.so", elf_of(ElfInfo { version_needs: vec![versions], ..library(&["libb.so"]) })),
    ];
    let rootfs = rootfs(glibc().into_iter().chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, settings("")));
    let mut process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    let Err(Stop::Fails(why)) = process.dlopen("libc.so", 0, DlopenMode::NOW) else { panic!("it was loaded") };
    assert!(why.contains("version `B_9' not found"), "{why}");
    assert_eq!(process.objects().len(), 2);
    process.dlopen("liba.so", 0, DlopenMode::NOW).unwrap();
    for name in ["liba.so", "/lib64/liba.so"] {
        let before = process.searches().len();
        process.dlopen(name, 0, DlopenMode::NOW).unwrap();
        let [search] = &process.searches()[before..] else { panic!("what it needs is not asked for again") };
        let [step] = &*search.steps else { panic!("{search:?}") };
        assert_eq!((&step.route, &step.end), (&Route::Loaded, &SearchEnd::SameFile("lib64/liba.so".into())), "{name}");
    }
}

/// An `ld.so.cache` of glibc 2.33 or later: soname, path, and directory below `glibc-hwcaps` or `-` for CPU features.
fn cache(entries: &[(&str, &str, &str)]) -> Content {
    let strings = 48 + 24 * entries.len();
    let mut text = Vec::new();
    let mut string = |value: &str| {
        let at = u32::try_from(strings + text.len()).unwrap();
        text.extend([value.as_bytes(), b"\0"].concat());
        at
    };
    let mut table = Vec::new();
    let mut folders = Vec::new();
    for (soname, path, folder) in entries {
        let (low, high) = match *folder {
            "" => (0, 0),
            "-" => (1, 0),
            folder => {
                folders.push(string(folder));
                (u32::try_from(folders.len() - 1).unwrap(), 1 << 30)
            }
        };
        table.extend([0x0303, string(soname), string(path), 0, low, high]);
    }
    text.resize(text.len().next_multiple_of(4), 0);
    let extension = u32::try_from(strings + text.len()).unwrap();
    let size = u32::try_from(4 * folders.len()).unwrap();
    let header = [u32::try_from(entries.len()).unwrap(), u32::try_from(text.len()).unwrap(), 2, extension, 0, 0, 0];
    let section = [0xeaa4_2174, 1, 1, 0, extension + 24, size];
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    Bytes(
        [b"glibc-ld.so.cache1.1".to_vec(), words(&header), words(&table), text, words(&section), words(&folders)]
            .concat(),
    )
}

#[test]
fn the_cache_comes_before_the_default_directories() {
    let find = |entries: &[(&str, &str, &str)], program: ElfInfo| {
        let program = ElfInfo { interpreter: Some(format!("/{LD}")), kind: 2, needed: owned(&["libx.so"]), ..program };
        let files = vec![
            ("bin/app", elf_of(program)),
            ("etc/ld.so.cache", cache(entries)),
            ("opt/libx.so", plain(&[])),
            ("lib64/libx.so", plain(&[])),
            ("usr/lib64/sub/libx.so", plain(&[])),
        ];
        let rootfs = rootfs(glibc().into_iter().chain(files).collect());
        let loader = Rc::new(Loader::new(&rootfs, settings("")));
        let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).map_err(|gap| gap.why)?;
        let Some(object) = process.objects().get(2) else { return Err(process.failure().unwrap().to_owned()) };
        Ok((format!("{}: {}", object.path, object.route), process.depends_on_level()))
    };
    let cached = |path: &str, depends| Ok((format!("{path}: /etc/ld.so.cache"), depends));
    let default = Ok(("/lib64/libx.so: default directory /lib64".to_owned(), false));
    assert_eq!(find(&[("libx.so", "/opt/libx.so", "")], library(&[])), cached("/opt/libx.so", false));
    assert_eq!(find(&[("libx.so", "/none/libx.so", "")], library(&[])), default);
    assert_eq!(find(&[("liby.so", "/opt/libx.so", "")], library(&[])), default);
    let folder = ("libx.so", "/usr/lib64/sub/libx.so", "x86-64-v3");
    assert_eq!(find(&[("libx.so", "/opt/libx.so", ""), folder], library(&[])), cached("/usr/lib64/sub/libx.so", true));
    let why = find(&[("libx.so", "/opt/libx.so", "-")], library(&[])).unwrap_err();
    assert!(why.contains("has a copy for certain processors only, /opt/libx.so"), "{why}");
    // With DF_1_NODEFLIB, files in or below a default directory do not count.
    let strict = || ElfInfo { no_default_libraries: true, ..library(&[]) };
    assert_eq!(find(&[("libx.so", "/opt/libx.so", "")], strict()), cached("/opt/libx.so", false));
    for path in ["/lib64/libx.so", "/usr/lib64/sub/libx.so"] {
        assert!(find(&[("libx.so", path, "")], strict()).unwrap_err().contains("cannot open"), "{path}");
    }
}

#[test]
fn a_cache_that_cannot_be_read_makes_the_search_unknown() {
    let files = vec![("etc/ld.so.cache", Text("odd")), ("lib64/libx.so", plain(&[]))];
    let why = start(app(&["libx.so"]), files, settings("")).unwrap_err();
    assert!(why.starts_with("/etc/ld.so.cache cannot be read: "), "{why}");
}

#[test]
fn steps_are_counted_up_to_a_limit() {
    let count = |loader_steps, library_path: &str| {
        let files = glibc().into_iter().chain([app(&["liba.so"]), ("lib64/liba.so", plain(&[]))]);
        let entries: Vec<_> = files.collect();
        let mut rootfs = rootfs(entries);
        rootfs.loader_steps = loader_steps;
        let loader = Rc::new(Loader::new(&rootfs, settings(library_path)));
        let process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).map_err(|gap| gap.why)?;
        process.bound("libnone.so", 0).map(drop).map_err(|gap| gap.why)
    };
    // The program needs one name and one place. The further name, which counts alone, has two places.
    let thrice = "/none:/none:/none";
    for (limit, library_path, lookups) in
        [(1, "", Some(2)), (2, "", Some(3)), (3, "", None), (5, thrice, Some(6)), (6, thrice, None)]
    {
        let why = count(limit, library_path).err();
        let expected = lookups.map(|made| format!("{made} lookups were made for one process, the limit is {limit} "));
        assert_eq!(why.and_then(|why| Some(why.split_once('(')?.0.to_owned())), expected);
    }
}

#[test]
fn what_tokens_expand_to_counts_before_it_is_made() {
    let count = |library_path: &str| {
        let files = glibc().into_iter().chain([app(&["liba.so"]), ("lib64/liba.so", plain(&[]))]);
        let entries: Vec<_> = files.collect();
        let mut rootfs = rootfs(entries);
        rootfs.loader_steps = 100;
        let loader = Rc::new(Loader::new(&rootfs, settings(library_path)));
        Process::start(&loader, CpuLevel::V3, &"bin/app".into()).map(drop).map_err(|gap| gap.why)
    };
    // The same directory again is not looked at.
    let long = "$ORIGIN".repeat(1_000);
    assert_eq!(count(&long).err(), None);
    let why = count(&[long.as_str(); 20].join(":")).unwrap_err();
    assert!(why.contains("the limit is 100"), "{why}");
}

#[test]
fn directories_are_in_the_order_of_ldconfig() {
    let files = vec![
        ("etc/ld.so.conf", Text("/first # not /this\ninclude ld.so.conf.d/*.conf\n\n/last/ = libc6\n")),
        ("etc/ld.so.conf.d/b.conf", Text("/b\nhwcap 1 x\n")),
        ("etc/ld.so.conf.d/a.conf", Text("/a1\n/a2\ninclude /etc/loop.conf")),
        ("etc/ld.so.conf.d/c.txt", Text("/c\n")),
        ("etc/loop.conf", Text("include /etc/loop.conf\n")),
    ];
    let found = configured_directories(&rootfs(files)).unwrap();
    let found: Vec<_> = found.iter().map(|found| format!("{} of {}", found.path, found.file)).collect();
    assert_eq!(
        found,
        [
            "/first of /etc/ld.so.conf",
            "/a1 of /etc/ld.so.conf.d/a.conf",
            "/a2 of /etc/ld.so.conf.d/a.conf",
            "/b of /etc/ld.so.conf.d/b.conf",
            "/last of /etc/ld.so.conf",
        ]
    );
    let unread = vec![("etc/ld.so.conf", Unread("too large"))];
    assert!(configured_directories(&rootfs(unread)).is_err());
}
