use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;

use crate::scan::scan_layer;
use model::BlobRef;
use model::{
    Arch, BuildOptions, CompatNote, DynamicSymbol, ElfInfo, Endian, FileOwner, GpuCode, ImagePath, Limits, NcclStrings,
    Variant, VersionNeed,
};
use unpack::pipe::Pipe;

use super::*;

fn blob(digit: char) -> BlobRef {
    BlobRef { digest: format!("sha256:{}", digit.to_string().repeat(64)).parse().unwrap(), size: 7 }
}

fn file(path: &str, size: u64) -> Entry {
    Entry { path: path.into(), kind: EntryKind::File, mode: 0o644, owner: None, size }
}

/// A scan with every kind of content.
fn scan() -> LayerScan {
    let kinds = [
        EntryKind::Directory,
        EntryKind::Symlink(b"../\xff".to_vec().into()),
        EntryKind::Hardlink("a/b".into()),
        EntryKind::CharDevice(1, 3),
        EntryKind::BlockDevice(8, 0),
        EntryKind::Fifo,
    ];
    let mut entries = vec![file("lib/a.so", 1 << 40), file("empty", 0)];
    entries.extend(kinds.map(|kind| Entry {
        path: ImagePath::normalise(b"x/\xfe"),
        kind,
        mode: 0o7777,
        owner: Some(FileOwner { user: 1000, group: u32::MAX }),
        size: 0,
    }));
    let mut elf = ElfInfo {
        interpreter: Some("/lib64/ld.so".to_owned()),
        version_needs: vec![VersionNeed { file: "libc".to_owned(), versions: vec!["A".to_owned()], weak: Vec::new() }],
        symbols: Ok(vec![DynamicSymbol { name: "f".to_owned(), defined: true, offset: Some(u64::MAX) }]),
        ..ElfInfo::bare(64, Endian::Big, 62)
    };
    let whole = elf.clone();
    elf.symbols = Err(Gap::new("cut"));
    let mut code = GpuCode::default();
    let arch = Arch::new(90, Variant::Specific).unwrap();
    code.cubin.insert(arch);
    code.add_ptx(arch, (8, 7));
    let found = vec![
        Ok(Found::Elf(whole.into())),
        Ok(Found::Elf(elf.into())),
        Ok(Found::Nccl(NcclStrings { variables: ["NCCL_DEBUG".to_owned()].into(), ..NcclStrings::default() })),
        Ok(Found::BuildOptions(BuildOptions { options: [("A".to_owned(), String::new())].into(), cxx11_abi: true })),
        Ok(Found::ArchFlags(["sm_90".to_owned()].into())),
        Ok(Found::NcclVersions([(5, [2, 27, 5])].into())),
        Ok(Found::GpuCode(Ok(code))),
        Ok(Found::GpuCode(Err(Gap::new("damaged").settled_by("replace it")))),
        Ok(Found::Compat(CompatNote { cuda: "12.9".to_owned(), branches: vec![535] })),
        Ok(Found::Text(b"text\0\xff".to_vec().into())),
        Err(Gap::new("why")),
    ];
    LayerScan {
        compression: Compression::Zstd,
        unpacked: 1 << 39,
        diff_id: Some(blob('d').digest),
        entries,
        found: BTreeMap::from([(0, found)]),
    }
}

#[test]
fn an_encoded_scan_decodes_to_itself() {
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    assert_eq!(decode(&encode(&key, &scan()).unwrap(), &key).unwrap(), scan());
}

#[test]
fn scans_of_all_small_worlds_decode_to_themselves() {
    let limits = Limits::default();
    let worlds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images");
    let mut layers = 0;
    for world in fs::read_dir(worlds).unwrap().map(|entry| entry.unwrap().path()) {
        if world.extension().is_none_or(|extension| extension != "tar") {
            continue;
        }
        let mut archive = tar::Archive::new(File::open(&world).unwrap());
        for member in archive.entries().unwrap() {
            let mut bytes = Vec::new();
            std::io::copy(&mut member.unwrap(), &mut bytes).unwrap();
            if !bytes.starts_with(&[0x1f, 0x8b]) {
                continue;
            }
            let scan = scan_layer(Pipe::of(&bytes), &limits, layers % 2 == 0, None).unwrap();
            assert!(scan.is_reproducible(), "{}", world.display());
            let blob = BlobRef { size: bytes.len() as u64, ..blob('a') };
            let key = ScanKey { blob: &blob, limits: &limits };
            assert_eq!(decode(&encode(&key, &scan).unwrap(), &key).unwrap(), scan, "{}", world.display());
            layers += 1;
        }
    }
    assert!(layers > 40, "{layers}");
}

#[test]
fn all_damage_is_detected() {
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let good = encode(&key, &scan()).unwrap();
    assert!(is_whole(&good));
    for length in 0..good.len() {
        assert!(decode(&good[..length], &key).is_err(), "cut to {length}");
    }
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // A frame has bits that mean nothing.
        assert!(decode(&bytes, &key).is_ok_and(|same| same == scan()) || !is_whole(&bytes), "bit {bit}");
    }
    assert!(decode(&[&*good, b"x"].concat(), &key).is_err());
}

#[test]
fn a_scan_of_something_else_is_refused() {
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let bytes = encode(&key, &scan()).unwrap();
    let other = Limits { text_file: 5 << 20, ..Limits::default() };
    let unrelated = Limits { layers: 5, temporary: Some("/x".into()), ..Limits::default() };
    assert!(decode(&bytes, &ScanKey { limits: &unrelated, ..key }).is_ok());
    for key in [
        ScanKey { blob: &self::blob('b'), ..key },
        ScanKey { blob: &BlobRef { size: 8, ..blob.clone() }, ..key },
        ScanKey { limits: &other, ..key },
    ] {
        assert!(matches!(decode(&bytes, &key), Err(Refused::OtherKey)));
    }
}

/// Bytes with a valid header, as anyone with write access to a shared cache can make them.
fn sealed(rest: &[u8]) -> Vec<u8> {
    [MAGIC, &FORM.to_le_bytes()[..], rest].concat()
}

/// Makes a scan unsound.
type Change<'a> = &'a dyn Fn(&mut LayerScan);

#[test]
fn content_that_no_scan_produces_is_refused() {
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let changed = |change: &dyn Fn(&mut LayerScan)| {
        let mut scan = scan();
        change(&mut scan);
        decode(&encode(&key, &scan).unwrap(), &key).unwrap_err().to_string()
    };
    let found = |found| move |scan: &mut LayerScan| drop(scan.found.insert(0, vec![found].into_iter().collect()));
    let cases: [(Change<'_>, &str); 10] = [
        (&|scan| scan.entries[0].mode = 0o10_000, "permission bits"),
        (&|scan| scan.entries[2].size = 1, "content in an entry that is not a file"),
        (&|scan| scan.entries[0].path = "a/".repeat(4000).as_str().into(), "a path over the limit"),
        (&|scan| scan.entries[3].kind = EntryKind::Symlink(vec![b'a'; 5000].into()), "a path over the limit"),
        (&|scan| scan.unpacked = limits.unpacked + 1, "exceeds the limits"),
        (&|scan| drop(scan.found.insert(1, scan.found[&0].clone())), "not in a file"),
        (&|scan| drop(scan.found.insert(99, scan.found[&0].clone())), "not in a file"),
        (&|scan| drop(scan.found.insert(0, Vec::new())), "not in a file"),
        (&|scan| drop(scan.found.insert(0, vec![Err(Gap::new("no room").of_this_run())])), "a gap that is not cached"),
        (&|scan| found(Ok(Found::Elf(ElfInfo::bare(7, Endian::Big, 62).into())))(scan), "unknown width"),
    ];
    for (change, why) in cases {
        let said = changed(change);
        assert!(said.contains(why), "{said}, not {why}");
    }
}

#[test]
fn hostile_bytes_cannot_exhaust_memory() {
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let refused = |bytes: &[u8]| decode(&sealed(&zstd::bulk::compress(bytes, 1).unwrap()), &key).unwrap_err();
    let head = |entries, found| {
        let digest = blob.digest.clone();
        let scanner = key.scanner().to_string();
        let compression = Compression::None;
        let unpacked = 1;
        let head = EntryHead { digest, size: 7, scanner, compression, unpacked, diff_id: None, entries, found };
        postcard::to_stdvec(&head).unwrap()
    };
    // A decompression bomb: 256 MiB of zeros and one more byte, in some kilobytes.
    let frame = zstd::bulk::compress(&vec![0; 16 << 20], 1).unwrap();
    let zeros = [frame.repeat(MOST_UNPACKED >> 24), zstd::bulk::compress(&[0], 1).unwrap()].concat();
    assert!(zeros.len() < 1 << 20);
    assert!(matches!(decode(&sealed(&zeros), &key), Err(Refused::TooLarge)));
    // Counts of entries and findings that do not follow.
    assert!(matches!(refused(&head(u64::MAX, 0)), Refused::Unsound(_)));
    assert!(matches!(refused(&head(limits.entries, 0)), Refused::Damaged));
    assert!(matches!(refused(&head(0, 1)), Refused::Unsound(_)));
    assert!(matches!(refused(&[head(1, 0), postcard::to_stdvec(&u64::MAX).unwrap()].concat()), Refused::Damaged));
    // A path that leaves the image or is not normalised: no scan has one.
    for path in [&b"../etc"[..], b"/etc", b"a//b", b"a/./b", b"a/"] {
        let entry = postcard::to_stdvec(&(serde_bytes::Bytes::new(path), EntryKind::File, 0o644_u32, 1_u64)).unwrap();
        assert!(matches!(refused(&[head(1, 0), entry].concat()), Refused::Damaged));
    }
    let entry = postcard::to_stdvec(&file("a", 1)).unwrap();
    assert!(matches!(refused(&[head(1, 0), entry.clone(), entry].concat()), Refused::Unsound(_)));
    assert!(matches!(decode(&sealed(b"not zstd"), &key), Err(Refused::Damaged)));
}

proptest! {
    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..4000_usize, bit in 0..8) {
        let blob = blob('a');
        let limits = Limits::default();
        let key = ScanKey { blob: &blob, limits: &limits };
        // Noise, and a scan with noise in its middle, behind a valid header.
        let good = unpack(&encode(&key, &scan()).unwrap()).unwrap();
        let mut changed = good.clone();
        let at = at % good.len();
        changed[at] ^= 1_u8 << bit;
        for inner in [&bytes, &[&good[..at], &bytes, &good[at..]].concat(), &changed] {
            if let Ok(scan) = decode(&sealed(&zstd::bulk::compress(inner, 1).unwrap()), &key) {
                prop_assert_eq!(decode(&encode(&key, &scan).unwrap(), &key).unwrap(), scan);
            }
        }
    }
}

/// A million files in optimised builds, fewer otherwise: a debug build would take as long as all other tests together.
#[test]
fn a_layer_of_a_million_files() {
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let blob = blob('a');
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let path = |number| format!("usr/lib/python3/dist-packages/package{}/module{number}.py", number / 100);
    let entries = (0..count).map(|number| file(&path(number), number)).collect();
    let scan = LayerScan { entries, found: BTreeMap::new(), ..scan() };
    let bytes = encode(&key, &scan).unwrap();
    assert!(bytes.len() as u64 <= 20 * count, "{}", bytes.len());
    assert!(decode(&bytes, &key).unwrap() == scan);
}
