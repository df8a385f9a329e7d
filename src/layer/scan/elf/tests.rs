use std::path::Path;
use std::process::Command;

use super::*;

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
    let mut keeper = Box::new(Keeper::new("lib.so".to_owned(), &Limits::default()));
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
        let mut keeper = Box::new(Keeper::new("lib.so".to_owned(), &Limits::default()));
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
    assert!(read(&bytes[..80], 4096).unwrap_err().why.contains("program header table"));
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
