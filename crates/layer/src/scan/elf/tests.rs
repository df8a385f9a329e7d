use std::path::Path;
use std::process::Command;

use super::*;
use model::EntryKind;

/// Links `source` with `flags` as a user would, and reads the result in chunks of `size`.
fn built(source: &str, flags: &[&str], size: usize) -> ElfInfo {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    cc(dir.path(), source, &path, flags);
    read(&std::fs::read(&path).unwrap(), size).unwrap()
}

fn cc(dir: &Path, source: &str, out: &Path, flags: &[&str]) {
    std::fs::write(dir.join("a.c"), source).unwrap();
    std::fs::write(dir.join("map"), "OLD_1 { global: ncclOld; }; NEW_2 { global: ncclNew; } OLD_1;").unwrap();
    #[expect(clippy::disallowed_methods, reason = "the linker defines its files")]
    let status = Command::new("cc")
        .current_dir(dir)
        .args(["-shared", "-fPIC", "a.c", "-o"])
        .arg(out)
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success());
}

fn read(bytes: &[u8], size: usize) -> Result<ElfInfo, Gap> {
    read_within(bytes, size, &Limits::default())
}

fn keeper(size: usize, limits: &Limits) -> Box<Keeper> {
    let entry = Entry { path: "lib.so".into(), kind: EntryKind::File, mode: 0, owner: None, size: size as u64 };
    Box::new(Keeper::new(&entry, limits))
}

fn read_within(bytes: &[u8], size: usize, limits: &Limits) -> Result<ElfInfo, Gap> {
    let mut keeper = keeper(bytes.len(), limits);
    let mut at = 0;
    for chunk in bytes.chunks(size) {
        keeper.push(at, chunk).unwrap();
        at += chunk.len() as u64;
    }
    match keeper.finish()? {
        Some(Found::Elf(info)) => Ok(*info),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_that_the_loader_reads_is_found() {
    let source = "int ncclImported(void); int ncclOld(void) { return ncclImported(); } int ncclNew(void) { return 2; } int other(void) { return 3; }";
    let flags = [
        "-Wl,-soname,libx.so.1,-rpath,$ORIGIN/../a:/b,--disable-new-dtags,--version-script,map,--build-id=0xabcdef",
        "-Wl,--no-as-needed",
        "-lm",
    ];
    for size in [100, 4096, 1 << 20] {
        let info = built(source, &flags, size);
        assert_eq!(info.bits, 64);
        assert_eq!(info.soname.as_deref(), Some("libx.so.1"));
        assert_eq!(info.needed, ["libm.so.6", "libc.so.6"]);
        assert_eq!(info.rpath, ["$ORIGIN/../a", "/b"]);
        assert!(info.runpath.is_empty());
        assert_eq!(info.build_id.as_deref(), Some("abcdef"));
        assert_eq!(info.version_gives, ["OLD_1", "NEW_2"]);
        assert!(info.version_needs.iter().any(|need| need.file == "libc.so.6"), "{:?}", info.version_needs);
        let mut symbols: Vec<_> =
            info.symbols.unwrap().into_iter().map(|symbol| (symbol.name, symbol.defined)).collect();
        symbols.sort();
        let expected = [("ncclImported", false), ("ncclNew", true), ("ncclOld", true)];
        assert_eq!(symbols, expected.map(|(name, defined)| (name.to_owned(), defined)));
    }
}

#[test]
fn large_code_is_not_kept_but_the_tables_before_it_are() {
    const CODE: usize = 3 << 20;
    let source = format!("int ncclA(void) {{ return 1; }} __asm__(\".text; .rept {}; .quad 1, 2; .endr\");", CODE / 16);
    // One segment of tables and code, with and without the address of the code, and separate segments.
    for (layout, most) in
        [("noseparate-code,-e,ncclA", 1 << 20), ("noseparate-code,-e,0", 4 << 20), ("separate-code,-e,0", 1 << 20)]
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lib.so");
        cc(dir.path(), &source, &path, &[&format!("-Wl,-soname,libx.so.1,-z,{layout}")]);
        let bytes = std::fs::read(&path).unwrap();
        let mut keeper = keeper(bytes.len(), &Limits::default());
        bytes.chunks(4096).enumerate().for_each(|(index, chunk)| keeper.push(index as u64 * 4096, chunk).unwrap());
        assert!(keeper.kept.size() < most, "{layout}: {} bytes", keeper.kept.size());
        let Ok(Some(Found::Elf(info))) = keeper.finish() else { panic!("{layout}") };
        assert_eq!(info.soname.as_deref(), Some("libx.so.1"), "{layout}");
        assert_eq!(info.symbols.unwrap().len(), 1, "{layout}");
    }
}

#[test]
fn either_hash_table_counts_the_symbols() {
    for style in ["sysv", "gnu"] {
        let info = built(
            "int ncclA(void) { return 1; }",
            &[&format!("-Wl,--hash-style={style},--enable-new-dtags,-rpath,/r")],
            4096,
        );
        assert_eq!(info.symbols.unwrap().len(), 1, "{style}");
        assert_eq!(info.runpath, ["/r"]);
    }
}

#[test]
fn truncated_and_damaged_files_are_errors_or_read_without_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    cc(dir.path(), "int ncclA(void) { return 1; }", &path, &["-Wl,-soname,libx.so.1", "-s"]);
    let bytes = std::fs::read(&path).unwrap();
    assert!(read(&bytes[..80], 4096).unwrap().symbols.unwrap_err().why.contains("program header table"));
    for length in (0..bytes.len()).step_by(97) {
        let _ = read(&bytes[..length], 4096);
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..2000 {
        let mut damaged = bytes.clone();
        for _ in 0..4 {
            let at = random.usize(..1024);
            damaged[at] = random.u8(..);
        }
        let _ = read(&damaged, 4096);
    }
}

/// The names of TensorFlow's symbols take 87 MB, and lie before 266 MB of other data in their segment.
#[test]
fn tables_of_any_size_are_read() {
    const COUNT: usize = 700;
    let name = |index: usize| format!("nccl{index}{}", "x".repeat(50_000));
    let symbols: Vec<_> = (0..COUNT).map(|index| format!(".globl {0}\\n{0}:\\n", name(index))).collect();
    let symbols = symbols.concat();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    cc(dir.path(), &format!("__asm__(\"{symbols}\");"), &path, &["-Wl,-soname,libx.so.1"]);
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() as u64 > HEAD);
    let info = read(&bytes, 1 << 20).unwrap();
    assert_eq!(info.soname.as_deref(), Some("libx.so.1"));
    assert_eq!(info.symbols.unwrap().len(), COUNT);

    // Without a place for them, the tables are a gap of this run.
    let nowhere = Limits { temporary: Some("/nonexistent".into()), ..Limits::default() };
    let gap = read_within(&bytes, 1 << 20, &nowhere).unwrap().symbols.unwrap_err();
    assert!(gap.is_transient && gap.to_string().contains("cannot be written to /nonexistent"), "{gap}");
    let small = Limits { spool: 1 << 20, ..Limits::default() };
    let gap = read_within(&bytes, 1 << 20, &small).unwrap().symbols.unwrap_err();
    assert!(!gap.is_transient && gap.to_string().contains("--limit spool=N"), "{gap}");
}

#[test]
fn what_exceeds_the_memory_is_read_from_a_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    cc(dir.path(), "int ncclA(void) { return 1; }", &path, &["-Wl,-soname,libx.so.1", "-lm"]);
    let bytes = std::fs::read(&path).unwrap();
    let whole = read(&bytes, 4096).unwrap();
    for size in [700, 4096] {
        let limits = Limits { elf_kept: 5000, ..Limits::default() };
        assert_eq!(read_within(&bytes, size, &limits).unwrap(), whole, "chunks of {size}");
    }
}

#[test]
fn a_file_that_the_loader_refuses_keeps_its_header() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    cc(dir.path(), "char ncclData[65536] = {1}; int ncclA(void) { return 1; }", &path, &["-Wl,-soname,libx.so.1"]);
    let bytes = std::fs::read(&path).unwrap();
    let whole = read(&bytes, 4096).unwrap();
    assert!(whole.refusal.is_none() && whole.soname.is_some());
    let damaged = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    for (bytes, why) in [
        (bytes[..bytes.len() / 8].to_vec(), "it ends before its segments"),
        (bytes[..64].to_vec(), "cannot read file data"),
        (bytes[..400].to_vec(), "cannot read file data"),
        (damaged(32, &[0xff; 8]), "cannot read file data"),
        (damaged(6, &[0]), "ELF file version ident does not match"),
        (damaged(7, &[9]), "ELF file OS ABI invalid"),
        (damaged(8, &[1]), "ELF file ABI version invalid"),
        (damaged(9, &[1]), "nonzero padding in e_ident"),
        (damaged(20, &[0]), "ELF file version does not match"),
        (damaged(54, &[32]), "ELF file's phentsize not the expected size"),
        (damaged(56, &[0]), "object file has no loadable segments"),
    ] {
        let info = read(&bytes, 4096).unwrap();
        assert!(info.refusal.as_ref().is_some_and(|refusal| refusal.starts_with(why)), "{why}: {:?}", info.refusal);
        assert_eq!((info.bits, info.machine, info.kind), (whole.bits, whole.machine, whole.kind), "{why}");
    }
    let half = read(&bytes[..bytes.len() / 8], 4096).unwrap();
    for gap in [half.symbols.unwrap_err(), half.links.unwrap_err()] {
        assert!(gap.why.starts_with("/lib.so: the ELF file cannot be read: "), "{gap}");
    }
    assert_eq!(read(&damaged(7, &[3]), 4096).unwrap().refusal, None, "ELFOSABI_GNU");
}

#[test]
fn an_invalid_class_or_byte_order_is_another_one() {
    for (at, value, class, order) in [(4, 0, 32, Endian::Little), (4, 3, 32, Endian::Little), (5, 0, 64, Endian::Big)] {
        let mut bytes = [&b"\x7fELF\x02\x01\x01"[..], &[0; 93]].concat();
        bytes[at] = value;
        let info = read(&bytes, 4096).unwrap();
        assert_eq!((info.bits, info.endian, info.symbols.is_err()), (class, order, true));
    }
}

#[test]
fn what_is_shorter_than_its_header_is_no_elf_file() {
    let wants = |length: usize, class: u8| {
        let mut head = [0; 64];
        head[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
        let entry = Entry { path: "a".into(), kind: EntryKind::File, mode: 0, owner: None, size: length as u64 };
        (EXTRACTOR.wants)(&entry, &head[..length])
    };
    assert_eq!([wants(63, 2), wants(64, 2), wants(51, 1), wants(52, 1)], [false, true, false, true]);
}

/// Names and versions of the references, in order.
fn imports(info: &ElfInfo, is_lazy: bool) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let links = info.links.as_ref().unwrap();
    let list = links.imports.iter(is_lazy);
    list.map(|import| text(import.name) + &import.version.map(|v| format!("@{}", v.name)).unwrap_or_default()).collect()
}

#[test]
fn references_come_in_the_order_of_relocation() {
    let source = "extern int data; int called(void); int weak(void) __attribute__((weak)); int (*take(void))(void);
        int unused(void); __attribute__((visibility(\"hidden\"))) extern int hidden __attribute__((weak));
        int first(void) { return called(); } int *second(void) { return &data; }
        int third(void) { return (weak ? weak() : 0) + (&hidden ? 1 : 0) + (int)(long)take(); }
        double sqrt(double); double fourth(double x) { return sqrt(x); }";
    for (flags, eager) in [(&["-Wl,-z,lazy"][..], 1), (&["-Wl,-z,now"], 4)] {
        let flags: Vec<_> = flags.iter().copied().chain(["-nostartfiles", "-fno-builtin", "-lm"]).collect();
        let info = built(source, &flags, 4096);
        let all = imports(&info, false);
        assert_eq!(all[0], "data", "data is relocated before functions: {all:?}");
        let mut functions = all[1..].to_vec();
        functions.sort();
        assert!(functions[1].starts_with("sqrt@GLIBC_2."), "{functions:?}");
        functions.remove(1);
        assert_eq!(functions, ["called", "take"]);
        assert_eq!(imports(&info, true), all[..eager], "{flags:?}");
        assert!(info.links.unwrap().imports.is_relocated());
    }
}

#[test]
fn ranges_are_joined_and_subtracted() {
    assert_eq!(merged(vec![7..9, 5..5, 0..2, 2..4]), [0..4, 7..9]);
    assert_eq!(without(vec![0..10, 20..30], &[2..3, 5..25]), [0..2, 3..5, 25..30]);
    assert!(without(vec![3..5, 7..9], &[0..6, 6..10]).is_empty());
}

#[test]
fn definitions_fit_by_version() {
    use model::{RequiredVersion, SymbolImport};
    let source = "int ncclOld(void) { return 1; } int ncclNew(void) { return 2; } int plain(void) { return 3; }
        int former(void) { return 4; } __asm__(\".symver former, ncclTwice@OLD_1\");
        int latter(void) { return 5; } __asm__(\".symver latter, ncclTwice@@NEW_2\");
        __attribute__((visibility(\"protected\"))) int guarded(void) { return 6; }
        __thread int local; void *chosen(void) { return 0; } int ifunc(void) __attribute__((ifunc(\"chosen\")));";
    let info = built(source, &["-Wl,--version-script,map"], 4096);
    let exports = &info.links.as_ref().unwrap().exports;
    let [old, new, none] =
        ["OLD_1", "NEW_2", "NONE_3"].map(|name| RequiredVersion { name: name.into(), is_exact: false });
    for (name, version, fits) in [
        ("ncclTwice", None, true),
        ("ncclTwice", Some(&old), true),
        ("ncclTwice", Some(&new), true),
        ("ncclTwice", Some(&none), false),
        ("ncclOld", Some(&new), false),
        ("ncclNew", None, true),
        ("plain", None, true),
        ("plain", Some(&none), true),
        ("guarded", None, true),
        ("local", None, true),
        ("ifunc", None, true),
        ("missing", None, false),
    ] {
        let import = SymbolImport { name: name.as_bytes(), version };
        assert_eq!(exports.fit(&import.keys()), fits, "{name} {version:?}");
    }
}

/// A library with two symbols, a search path and a note, read within limits.
fn within(limits: &Limits) -> Result<ElfInfo, Gap> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    let source = "int nccl_one(void) { return 1; } int nccl_two(void) { return 2; }";
    cc(dir.path(), source, &path, &["-Wl,-rpath,/a:/b,--build-id=0xabcdef"]);
    read_within(&std::fs::read(&path).unwrap(), 4096, limits)
}

#[test]
fn names_of_symbols_have_a_budget_of_their_own() {
    let info = within(&Limits { elf_names: 12, ..Limits::default() }).unwrap();
    assert_eq!(info.rpath.len() + info.runpath.len(), 2, "the rest still counts");
    let why = info.symbols.unwrap_err().to_string();
    assert!(why.starts_with("/lib.so: the dynamic symbols cannot be read: names of symbols of "), "{why}");
    assert!(why.contains("the limit is 12 (raise it with --limit elf_names=N)"), "{why}");
    assert!(info.links.is_err());
}

#[test]
fn names_for_the_loader_and_notes_have_budgets() {
    assert_eq!(within(&Limits::default()).unwrap().build_id.as_deref(), Some("abcdef"));
    let why = within(&Limits { elf_strings: 3, ..Limits::default() }).unwrap_err().to_string();
    assert!(why.contains("names of libraries, search paths and versions of "), "{why}");
    assert!(why.contains("the limit is 3 (raise it with --limit elf_strings=N)"), "{why}");
    let why = within(&Limits { elf_notes: 3, ..Limits::default() }).unwrap_err().to_string();
    assert!(why.contains("the limit is 3 (raise it with --limit elf_notes=N)"), "{why}");
}
