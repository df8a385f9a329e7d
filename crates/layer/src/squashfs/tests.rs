use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use super::*;
use model::{Hasher, ImagePath};

const COMPRESSORS: [&str; 5] = ["gzip", "lz4", "lzo", "xz", "zstd"];

fn fixture(compressor: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fixtures/squashfs", &format!("tree.{compressor}.sqsh")].iter().collect()
}

/// Opens an image that is in memory.
fn opened(bytes: &[u8], limits: &Limits) -> Result<Squashfs, SquashfsError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Squashfs::open(file, 0..bytes.len() as u64, limits)
}

/// Reads a file to its end: its size, and the first digits of its digest.
fn content(image: &mut Squashfs, inode: &SquashfsInode) -> Result<String, SquashfsError> {
    let mut file = image.content(inode)?;
    let mut hasher = Hasher::sha256();
    let mut size = 0;
    loop {
        let bytes = file.read(size)?;
        if bytes.is_empty() {
            break;
        }
        hasher.update(bytes);
        size += bytes.len() as u64;
    }
    Ok(format!("{size} {}", hasher.finish().hex().get(..16).unwrap()))
}

/// Describes every file of an image.
fn walk(image: &mut Squashfs) -> Result<BTreeMap<String, String>, SquashfsError> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![(ImagePath::root(), image.root()?)];
    while let Some((folder, inode)) = waiting.pop() {
        // A damaged image may have loops.
        if found.len() > 1000 {
            break;
        }
        for SquashfsName { name, inode } in image.list(&inode)? {
            let path = folder.child(&name);
            let is_file = matches!(inode.kind, SquashfsKind::File(_));
            let what = match &inode.kind {
                SquashfsKind::Directory(_) => {
                    waiting.push((path.clone(), inode.clone()));
                    "directory".to_owned()
                }
                SquashfsKind::File(place) if place.size > 1 << 20 => "large".to_owned(),
                SquashfsKind::File(_) => format!("{:o} {}", inode.mode, content(image, &inode)?),
                SquashfsKind::Symlink(target) => format!("link of {} bytes", target.len()),
                SquashfsKind::BlockDevice(major, minor) => format!("block {major} {minor}"),
                SquashfsKind::CharDevice(major, minor) => format!("char {major} {minor}"),
                SquashfsKind::Fifo => "fifo".to_owned(),
                SquashfsKind::Socket => "socket".to_owned(),
            };
            found.insert(
                path.to_string(),
                format!("{what}{}", if inode.is_linked() && is_file { ", linked" } else { "" }),
            );
        }
    }
    Ok(found)
}

#[test]
fn every_kind_of_file_is_read_with_every_compressor() {
    for compressor in COMPRESSORS {
        let bytes = std::fs::read(fixture(compressor)).unwrap();
        let mut found = walk(&mut opened(&bytes, &Limits::default()).unwrap()).unwrap();
        let many = found.iter().filter(|(path, what)| path.starts_with("/many/") && *what == EMPTY).count();
        assert_eq!(many, 300, "{compressor}");
        found.retain(|path, _| !path.starts_with("/many/"));
        let found: Vec<_> = found.iter().map(|(path, what)| (path.as_str(), what.as_str())).collect();
        assert_eq!(found, TREE, "{compressor}");
    }
}

const EMPTY: &str = "644 0 e3b0c44298fc1c14";

const TREE: [(&str, &str); 15] = [
    ("/block", "block 8 300"),
    ("/blocks", "644 16384 751811b9742cdd15"),
    ("/blocks-and-tail", "644 20001 8f4fab33e5015ff1"),
    ("/char", "char 1 3"),
    ("/dir", "directory"),
    ("/dir/link", "link of 8 bytes"),
    ("/dir/linked", "4755 100 3d5804574782b564, linked"),
    ("/dir/noise", "644 6000 a313dafec51ef0fc"),
    ("/empty", EMPTY),
    ("/fifo", "fifo"),
    ("/holes", "644 40960 d2bd73c48ece2840"),
    ("/long-link", "link of 400 bytes"),
    ("/many", "directory"),
    ("/not-utf-8-\\xff", "644 1 6b86b273ff34fce1"),
    ("/small", "4755 100 3d5804574782b564, linked"),
];

#[test]
fn an_image_may_begin_anywhere_in_a_file() {
    let bytes = std::fs::read(fixture("zstd")).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[&[7; 1000], &*bytes, &[7; 100]].concat()).unwrap();
    let mut image = Squashfs::open(file, 1000..1000 + bytes.len() as u64, &Limits::default()).unwrap();
    assert_eq!(walk(&mut image).unwrap().len(), 315);
}

#[test]
fn files_are_read_from_any_offset_on() {
    let bytes = std::fs::read(fixture("lzo")).unwrap();
    let mut image = opened(&bytes, &Limits::default()).unwrap();
    let root = image.root().unwrap();
    let names = image.list(&root).unwrap();
    let inode = &names.iter().find(|name| *name.name == *b"blocks-and-tail").unwrap().inode;
    let mut file = image.content(inode).unwrap();
    let whole: Vec<Vec<u8>> = [0, 4096, 8192, 12288, 16384].map(|place| file.read(place).unwrap().to_vec()).into();
    assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), [4096, 4096, 4096, 4096, 3617]);
    assert!(file.read(20001).unwrap().is_empty());
    let mut file = image.content(inode).unwrap();
    assert_eq!(file.read(5).unwrap(), &whole[0][5..]);
    assert_eq!(file.read(4095).unwrap(), &whole[0][4095..]);
    assert_eq!(file.read(12290).unwrap(), &whole[3][2..]);
    assert_eq!(file.read(20000).unwrap(), &whole[4][3616..]);
}

#[test]
fn damage_is_an_error_and_never_more() {
    for compressor in COMPRESSORS {
        let good = std::fs::read(fixture(compressor)).unwrap();
        let used = usize::try_from(u64::from_le_bytes(good[40..48].try_into().unwrap())).unwrap();
        let mut failed = 0;
        let mut tried = 0;
        // The superblock, which is the same for all; then some of the data, and more of the tables, which are last.
        let superblock = 0..if compressor == "gzip" { 96 } else { 0 };
        for at in superblock.chain((96..used - 2500).step_by(1009)).chain((used - 2500..used).step_by(41)) {
            for flip in [0x01, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                tried += 1;
                let found = opened(&bytes, &Limits::default()).and_then(|mut image| walk(&mut image));
                failed += usize::from(found.is_err());
            }
        }
        assert!(failed > tried / 10, "{compressor}: {failed} of {tried}");
        for length in [0, 50, 96, used / 2, used - 1] {
            let error = opened(&good[..length], &Limits::default()).unwrap_err().to_string();
            assert!(error.starts_with("the squashfs image is damaged at byte "), "{error}");
        }
    }
}

#[test]
fn forms_that_are_not_supported_are_named() {
    let good = std::fs::read(fixture("gzip")).unwrap();
    for (at, value, why) in [
        (0, b's', "the squashfs image is damaged at byte 0: it does not begin with hsqs"),
        (12, 1, "the squashfs image is damaged at byte 12: its blocks have 4097 bytes"),
        (20, 2, "the compressor is lzma, which is not supported"),
        (20, 9, "the compressor 9 is unknown"),
        (28, 3, "squashfs 3.0 is not supported, only 4.0 is"),
        (71, 1, "the squashfs image is damaged at byte 64: its tables are in the wrong order"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(opened(&bytes, &Limits::default()).unwrap_err().to_string(), why);
    }
}

#[test]
fn limits_hold() {
    let bytes = std::fs::read(fixture("gzip")).unwrap();
    for (limit, value, why) in [
        ("entries", "100", "has more than 100 names, the limit is 100 (raise it with --limit entries=N)"),
        ("path", "399", "has 400 bytes, the limit is 399 (raise it with --limit path=N)"),
        ("unpacked", "50000", "the limit is 50000 (raise it with --limit unpacked=N)"),
    ] {
        let mut limits = Limits::default();
        limits.set(limit, value).unwrap();
        let error = opened(&bytes, &limits).and_then(|mut image| walk(&mut image)).unwrap_err();
        assert!(matches!(error, SquashfsError::Limit(_)) && error.to_string().ends_with(why), "{error}");
    }
}

#[test]
fn all_readers_of_an_image_count_against_its_limits() {
    let bytes = std::fs::read(fixture("zstd")).unwrap();
    let limits = Limits { unpacked: 50_000, ..Limits::default() };
    let mut image = opened(&bytes, &limits).unwrap();
    let root = image.root().unwrap();
    let find = |image: &mut Squashfs| {
        let names = image.list(&root).unwrap();
        names.into_iter().find(|found| &*found.name == b"blocks").unwrap().inode
    };
    let blocks = find(&mut image);
    let refused = (0..10).find_map(|_| content(&mut image.another(), &blocks).err()).unwrap();
    assert!(refused.to_string().contains("the limit is 50000"), "{refused}");
}

#[test]
fn a_file_can_be_read_again_after_a_rewind() {
    let bytes = std::fs::read(fixture("gzip")).unwrap();
    let mut image = opened(&bytes, &Limits::default()).unwrap();
    let root = image.root().unwrap();
    let names = image.list(&root).unwrap();
    let file = names.into_iter().find(|found| &*found.name == b"blocks-and-tail").unwrap().inode;
    let mut open = image.content(&file).unwrap();
    let first = open.read(0).unwrap().to_vec();
    assert!(!open.read(20_000).unwrap().is_empty());
    open.rewind();
    assert_eq!(open.read(0).unwrap(), first);
    assert!(!open.read(9000).unwrap().is_empty());
}
