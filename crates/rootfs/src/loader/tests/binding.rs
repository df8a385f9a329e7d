//! Symbol lookup in synthetic processes.

use model::{RequiredVersion, SymbolExports, SymbolImport, SymbolImports, SymbolLinks, SymbolVersion};

use super::process::{Content, app, elf_of, glibc, library, owned, rootfs};
use super::*;

/// A library that needs others, defines symbols and refers to symbols, each perhaps with `@VERSION`.
fn linked(needed: &[&str], exports: &[&str], imports: &[&str]) -> ElfInfo {
    let version = |text: &str| RequiredVersion { name: text.to_owned(), is_exact: false };
    let split = |text: &'static str| text.split_once('@').map_or((text, None), |(name, after)| (name, Some(after)));
    let imports: Vec<_> = imports.iter().map(|text| (*text).to_owned().leak()).map(|text| split(text)).collect();
    let versions: Vec<_> = imports.iter().map(|(_, after)| after.map(version)).collect();
    let list = imports.iter().zip(&versions);
    let list = list.map(|((name, _), version)| SymbolImport { name: name.as_bytes(), version: version.as_ref() });
    let exports = exports.iter().map(|text| (*text).to_owned().leak()).map(|text| split(text));
    let exports = exports.map(|(name, after)| {
        (name.as_bytes(), after.map_or(SymbolVersion::Base, |after| SymbolVersion::Default(after.as_bytes())))
    });
    let imports = SymbolImports::new(list, 1, true);
    ElfInfo { links: Ok(SymbolLinks { imports, exports: SymbolExports::new(exports) }), ..library(needed) }
}

/// A file in the default directory.
fn file(path: &'static str, info: ElfInfo) -> (&'static str, Content) {
    (path, elf_of(info))
}

/// Opens names in order, each with a mode. Returns the message of the first failure.
fn opens(files: Vec<(&'static str, Content)>, names: &[(&str, DlopenMode)]) -> Result<(), Stop> {
    let rootfs = rootfs(glibc().into_iter().chain([app(&[])]).chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, LoaderSettings::default()));
    let mut process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    names.iter().try_for_each(|(name, mode)| process.dlopen(name, 0, *mode).map(|_| ()))
}

fn fails(text: &str) -> Result<(), Stop> {
    Err(Stop::Fails(text.to_owned()))
}

const NOW: DlopenMode = DlopenMode::NOW;

#[test]
fn a_reference_without_a_definition_fails() {
    let files = |exports: &[&str], imports: &[&str]| {
        vec![
            file("lib64/liba.so", linked(&["libb.so"], &[], imports)),
            file("lib64/libb.so", linked(&[], exports, &[])),
        ]
    };
    for (exports, imports, expected) in [
        (&["one", "two"][..], &["two", "one"][..], Ok(())),
        (&["one"], &["two", "three"], fails("/lib64/liba.so: undefined symbol: two")),
        (&["one@V1"], &["one@V1", "one"], Ok(())),
        (&["one@V1"], &["one@V2"], fails("/lib64/liba.so: undefined symbol: one, version V2")),
        (&["one"], &["one@V2"], Ok(())),
    ] {
        assert_eq!(opens(files(exports, imports), &[("liba.so", NOW)]), expected, "{exports:?} {imports:?}");
    }
}

#[test]
fn dependencies_are_relocated_first() {
    let files = vec![
        file("lib64/liba.so", linked(&["libb.so"], &[], &["of_a"])),
        file("lib64/libb.so", linked(&[], &[], &["of_b"])),
    ];
    assert_eq!(opens(files, &[("liba.so", NOW)]), fails("/lib64/libb.so: undefined symbol: of_b"));
}

#[test]
fn the_scope_is_the_global_one_and_the_opened_object_with_its_dependencies() {
    let files = || {
        vec![
            file("lib64/liba.so", linked(&[], &[], &["one"])),
            file("lib64/libb.so", linked(&["libc.so"], &[], &[])),
            file("lib64/libc.so", linked(&[], &["one"], &[])),
            file("lib64/libd.so", linked(&["libb.so"], &[], &["one"])),
        ]
    };
    let missing = fails("/lib64/liba.so: undefined symbol: one");
    assert_eq!(opens(files(), &[("libb.so", NOW), ("liba.so", NOW)]), missing);
    assert_eq!(opens(files(), &[("libb.so", DlopenMode::GLOBAL), ("liba.so", NOW)]), Ok(()));
    assert_eq!(opens(files(), &[("libb.so", NOW), ("libb.so", DlopenMode::GLOBAL), ("liba.so", NOW)]), Ok(()));
    assert_eq!(opens(files(), &[("libb.so", NOW), ("libd.so", NOW)]), Ok(()));
}

#[test]
fn lazy_binding_leaves_functions_for_later() {
    let files = || {
        vec![
            file("lib64/liba.so", linked(&["libb.so"], &[], &["one", "two"])),
            file("lib64/libb.so", linked(&[], &["one"], &[])),
        ]
    };
    assert_eq!(opens(files(), &[("liba.so", DlopenMode::LAZY)]), Ok(()));
    assert_eq!(opens(files(), &[("liba.so", NOW)]), fails("/lib64/liba.so: undefined symbol: two"));
    let program = ElfInfo {
        interpreter: Some("/lib64/ld-linux-x86-64.so.2".to_owned()),
        kind: 2,
        ..linked(&["liba.so"], &[], &[])
    };
    let rootfs = rootfs(glibc().into_iter().chain(files()).chain([("bin/app", elf_of(program))]).collect());
    for (bind_now, failure) in [(false, None), (true, Some("/lib64/liba.so: undefined symbol: two"))] {
        let settings = LoaderSettings { bind_now, ..LoaderSettings::default() };
        let process =
            Process::start(&Rc::new(Loader::new(&rootfs, settings)), CpuLevel::V3, &"bin/app".into()).unwrap();
        assert_eq!(process.failure(), failure);
    }
}

#[test]
fn the_driver_defines_its_own_symbols() {
    let needs = |symbol| vec![file("lib64/liba.so", linked(&["libcuda.so.1"], &[], &[symbol]))];
    assert_eq!(opens(needs("cuInit"), &[("liba.so", NOW)]), Ok(()));
    assert_eq!(opens(needs("nvmlInit"), &[("liba.so", NOW)]), fails("/lib64/liba.so: undefined symbol: nvmlInit"));
}

#[test]
fn unread_symbols_make_the_answer_unknown() {
    let unread = || ElfInfo { links: Err(Gap::new("cut").about("/lib64/libb.so")), ..library(&[]) };
    let gap = Err(Stop::Unknown(Gap::new("/lib64/libb.so: cut")));
    let files = vec![file("lib64/liba.so", linked(&["libb.so"], &[], &["one"])), file("lib64/libb.so", unread())];
    assert_eq!(opens(files, &[("liba.so", NOW)]), gap);
    let rootfs = rootfs(glibc().into_iter().chain([app(&["libb.so"]), file("lib64/libb.so", unread())]).collect());
    let process =
        Process::start(&Rc::new(Loader::new(&rootfs, LoaderSettings::default())), CpuLevel::V3, &"bin/app".into());
    let process = process.unwrap();
    assert_eq!((process.failure(), process.doubt()), (None, Some(&Gap::new("/lib64/libb.so: cut"))));
}

#[test]
fn without_relocations_a_missing_symbol_may_be_unused() {
    let links = |imports: &[&'static str]| {
        let list = imports.iter().map(|name| SymbolImport { name: name.as_bytes(), version: None });
        SymbolLinks { imports: SymbolImports::new(list, 1, false), exports: SymbolExports::new([]) }
    };
    let files = |imports| vec![file("lib64/liba.so", ElfInfo { links: Ok(links(imports)), ..library(&[]) })];
    assert_eq!(opens(files(&[]), &[("liba.so", NOW)]), Ok(()));
    let Err(Stop::Unknown(gap)) = opens(files(&["one"]), &[("liba.so", NOW)]) else { panic!("it is known") };
    assert!(gap.why.starts_with("/lib64/liba.so: undefined symbol: one, if a relocation"), "{}", gap.why);
}

#[test]
fn what_dlopen_opens_does_not_inherit_the_callers_rpath() {
    let caller = ElfInfo { rpath: owned(&["/opt"]), ..linked(&[], &[], &[]) };
    let files = vec![
        file("lib64/liba.so", caller),
        file("opt/libb.so", linked(&["libc.so"], &[], &[])),
        file("opt/libc.so", linked(&[], &[], &[])),
    ];
    let rootfs = rootfs(glibc().into_iter().chain([app(&["liba.so"])]).chain(files).collect());
    let loader = Rc::new(Loader::new(&rootfs, LoaderSettings::default()));
    let mut process = Process::start(&loader, CpuLevel::V3, &"bin/app".into()).unwrap();
    let caller = process.named("liba.so").unwrap();
    let Err(Stop::Fails(why)) = process.dlopen("libb.so", caller, NOW) else { panic!("it was loaded") };
    assert!(why.starts_with("libc.so: cannot open"), "{why}");
}

#[test]
fn a_file_of_another_class_is_named_as_the_loader_names_it() {
    let files = vec![file("lib64/liba.so", ElfInfo::bare(32, Endian::Little, 62))];
    assert_eq!(opens(files, &[("liba.so", NOW)]), fails("liba.so: wrong ELF class: ELFCLASS32"));
}
