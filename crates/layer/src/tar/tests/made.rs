//! Handmade members that GNU tar does not write.

use std::io::{self, BufReader, Read};

use tar::{EntryType, Header};

use super::*;

/// A header of type `kind` for a body of `size` bytes.
pub(super) fn header(kind: u8, name: &str, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[156] = kind;
    header.set_size(size);
    header.set_mode(0o644);
    header
}

/// A header with its checksum, followed by the body and padding.
pub(super) fn sealed(mut header: Header, body: &[u8]) -> Vec<u8> {
    header.set_cksum();
    let mut bytes = [header.as_bytes().as_slice(), body].concat();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

pub(super) fn member(kind: u8, name: &str, body: &[u8]) -> Vec<u8> {
    sealed(header(kind, name, body.len() as u64), body)
}

pub(super) fn file(name: &str) -> Vec<u8> {
    member(b'0', name, b"content")
}

/// A PAX record.
fn pax(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let digits = (1..9).find(|digits| (rest.len() + digits).to_string().len() == *digits).unwrap();
    format!("{}{rest}", rest.len() + digits)
}

pub(super) fn records(kind: u8, pairs: &[(&str, &str)]) -> Vec<u8> {
    let text: String = pairs.iter().map(|(key, value)| pax(key, value)).collect();
    member(kind, "records", text.as_bytes())
}

/// Path and content of each member; holes of a sparse file are dots.
fn read(tar: &[u8], limits: &Limits) -> Result<Vec<(String, String)>, String> {
    let read = || -> Result<_, TarError> {
        let mut tar = TarReader::new(tar, limits);
        let mut members = Vec::new();
        while let Some(entry) = tar.next_member()? {
            let mut content = vec![b'.'; usize::try_from(entry.size).unwrap()];
            while let Some(chunk) = tar.chunk()? {
                let at = usize::try_from(chunk.offset).unwrap();
                content[at..at + chunk.bytes.len()].copy_from_slice(chunk.bytes);
            }
            members.push((entry.path.to_string(), String::from_utf8(content).unwrap()));
        }
        Ok(members)
    };
    read().map_err(|error| error.to_string())
}

fn paths(parts: &[Vec<u8>]) -> Vec<String> {
    read(&parts.concat(), &Limits::default()).unwrap().into_iter().map(|(path, _)| path).collect()
}

fn error(parts: &[Vec<u8>]) -> String {
    read(&parts.concat(), &Limits::default()).unwrap_err()
}

#[test]
fn a_global_header_applies_to_no_member_and_drops_extended_headers_before_it() {
    let tar = [
        file("first"),
        records(b'g', &[("path", "global"), ("comment", "x")]),
        file("second"),
        file("third"),
        records(b'x', &[("path", "local")]),
        file("fourth"),
        records(b'x', &[("path", "")]),
        file("fifth"),
        records(b'g', &[("path", "later")]),
        file("sixth"),
        records(b'g', &[("path", "")]),
        file("seventh"),
    ];
    assert_eq!(paths(&tar), ["/first", "/second", "/third", "/local", "/fifth", "/sixth", "/seventh"]);
}

#[test]
fn long_names_override_records_which_override_headers() {
    let long = |kind: u8, name: &str| member(kind, "././@LongLink", format!("{name}\0rest").as_bytes());
    assert_eq!(paths(&[long(b'L', ""), file("short")]), ["/short"]);
    assert_eq!(paths(&[long(b'L', "long"), file("short"), file("next")]), ["/long", "/next"]);
    let record = || records(b'x', &[("path", "record")]);
    assert_eq!(paths(&[record(), file("short"), file("next")]), ["/record", "/next"]);
    assert_eq!(paths(&[long(b'L', "long"), record(), file("short")]), ["/long"]);
    assert_eq!(paths(&[record(), long(b'L', "long"), file("short")]), ["/long"]);
    let comment = || records(b'x', &[("comment", "second")]);
    assert_eq!(paths(&[record(), comment(), file("short")]), ["/short"], "the last extended header counts alone");
    let global = || records(b'g', &[("comment", "global")]);
    assert_eq!(paths(&[record(), global(), file("short")]), ["/short"]);
    assert_eq!(paths(&[long(b'L', "long"), global(), file("short")]), ["/short"]);
    let target = |parts: &[Vec<u8>]| {
        let bytes = parts.concat();
        let limits = Limits::default();
        let mut tar = TarReader::new(bytes.as_slice(), &limits);
        tar.next_member().unwrap().unwrap().kind
    };
    let mut link = header(b'2', "link", 0);
    link.set_link_name("short").unwrap();
    let link = sealed(link, b"");
    assert_eq!(target(std::slice::from_ref(&link)), EntryKind::Symlink(b"short".as_slice().into()));
    assert_eq!(target(&[long(b'K', "long"), link.clone()]), EntryKind::Symlink(b"long".as_slice().into()));
    let record = records(b'x', &[("linkpath", "record")]);
    assert_eq!(target(&[record.clone(), link.clone()]), EntryKind::Symlink(b"record".as_slice().into()));
    assert_eq!(target(&[long(b'K', "long"), record, link]), EntryKind::Symlink(b"long".as_slice().into()));
}

#[test]
fn malformed_records_are_refused() {
    for text in [
        "nine",
        "9 path=a",
        "99 path=ab\n",
        "4 =\n x",
        "x path=a\n",
        "11 path:ab\n",
        "0 path=a\n",
        "-9 path=a\n",
        "11 path=ab\n\0rest",
        "11 path=a\0\n",
        "5 =a\n",
        "7 \0a=b\n",
        "11 uname=\0\n",
    ] {
        let error = error(&[member(b'x', "records", text.as_bytes()), file("a")]);
        assert!(error.ends_with("a PAX record is malformed"), "{text}: {error}");
    }
    assert_eq!(paths(&[records(b'x', &[("a", ""), ("path", "a=b=c")]), file("a")]), ["/a=b=c"]);
    // Other values may be binary.
    assert_eq!(paths(&[records(b'x', &[("SCHILY.xattr.user.a", "\0")]), file("a")]), ["/a"]);
    for (key, value) in [("uid", "x"), ("gid", "1.5"), ("mtime", "x"), ("atime", "1.x"), ("ctime", ".5")] {
        let error = error(&[records(b'x', &[(key, value)]), file("a")]);
        assert!(error.contains(&format!("the PAX record '{key}' is not a ")), "{error}");
    }
    let times = records(b'x', &[("mtime", "-1.25"), ("atime", "1700000000"), ("ctime", "1."), ("uid", "")]);
    assert_eq!(paths(&[times, file("a")]), ["/a"]);
    let error = error(&[records(b'x', &[("size", "1k")]), file("a")]);
    assert!(error.ends_with("(member /a): the PAX record 'size' is not a number"), "{error}");
}

#[test]
fn a_size_record_overrides_the_header() {
    let mut short = header(b'0', "a", 0);
    short.set_size(0);
    let tar = [records(b'x', &[("size", "7")]), sealed(short, b"content"), file("b")];
    let content = |name: &str| (name.to_owned(), "content".to_owned());
    assert_eq!(read(&tar.concat(), &Limits::default()), Ok(vec![content("/a"), content("/b")]));
}

#[test]
fn the_header_decides_the_type_of_a_member() {
    let kind = |header: Header, body: &[u8]| {
        let bytes = [sealed(header, body), file("next")].concat();
        let limits = Limits::default();
        let mut tar = TarReader::new(bytes.as_slice(), &limits);
        let entry = tar.next_member().unwrap().unwrap();
        let stored = tar.chunk().unwrap().is_some();
        assert_eq!(tar.next_member().unwrap().unwrap().path.to_string(), "/next");
        (entry.kind, entry.size, stored)
    };
    let mut device = header(b'3', "device", 0);
    device.set_device_major(195).unwrap();
    device.set_device_minor(255).unwrap();
    assert_eq!(kind(device.clone(), b"").0, EntryKind::CharDevice(195, 255));
    device.set_entry_type(EntryType::Block);
    assert_eq!(kind(device.clone(), b"").0, EntryKind::BlockDevice(195, 255));
    // Linux keeps 12 and 20 bits.
    device.set_device_major(0o7_654_321).unwrap();
    device.set_device_minor(0o7_654_321).unwrap();
    assert_eq!(kind(device, b"").0, EntryKind::BlockDevice(0o4321, 0o3_654_321));
    assert_eq!(kind(header(b'6', "pipe", 0), b"").0, EntryKind::Fifo);
    // These types have no content, whatever their header says.
    assert_eq!(kind(header(b'5', "folder", 7), b""), (EntryKind::Directory, 0, false));
    assert_eq!(kind(header(b'0', "folder/", 7), b"content"), (EntryKind::File, 7, true));
    assert_eq!(kind(header(0, "folder/", 7), b"content"), (EntryKind::Directory, 0, true));
    for letter in [b'0', 0] {
        assert_eq!(kind(header(letter, "file", 7), b"content"), (EntryKind::File, 7, true), "{letter}");
    }
    let mut link = header(b'1', "link", 7);
    link.set_link_name("a/../b").unwrap();
    // Engines read the next header behind a hard link, whatever its size.
    assert_eq!(kind(link, b""), (EntryKind::Hardlink("b".into()), 0, false));
}

#[test]
fn links_need_a_target() {
    for letter in [b'1', b'2'] {
        let error = error(&[member(letter, "link", b"")]);
        assert!(error.ends_with("(member /link): a link without a target"), "{error}");
    }
}

#[test]
fn a_mode_is_reduced_to_its_permission_bits() {
    let mut header = header(b'0', "a", 0);
    header.set_mode(0o104_755);
    let bytes = sealed(header, b"");
    let limits = Limits::default();
    assert_eq!(TarReader::new(bytes.as_slice(), &limits).next_member().unwrap().unwrap().mode, 0o4755);
}

#[test]
fn the_owner_is_that_of_the_record_else_of_the_header() {
    let owner = |parts: &[Vec<u8>]| {
        let bytes = parts.concat();
        let limits = Limits::default();
        let owner = TarReader::new(bytes.as_slice(), &limits).next_member().unwrap().unwrap().owner.unwrap();
        (owner.user, owner.group)
    };
    let mut header = header(b'0', "a", 0);
    header.set_uid(1000);
    header.set_gid(100);
    let own = sealed(header.clone(), b"");
    assert_eq!(owner(std::slice::from_ref(&own)), (1000, 100));
    assert_eq!(owner(&[records(b'x', &[("uid", "70000")]), own.clone()]), (70000, 100));
    assert_eq!(owner(&[records(b'x', &[("uid", ""), ("gid", "4000000000")]), own]), (1000, 4_000_000_000));
    // lchown(2) changes nothing for -1, and engines unpack as root.
    header.as_mut_bytes()[108..116].copy_from_slice(&[0xff; 8]);
    assert_eq!(owner(&[sealed(header, b"")]), (0, 100));
}

#[test]
fn invalid_numeric_fields_are_named() {
    for (field, at, letter) in [
        ("size", 124, b'0'),
        ("mode", 100, b'0'),
        ("uid", 108, b'0'),
        ("gid", 116, b'0'),
        ("mtime", 136, b'0'),
        ("device major", 329, b'3'),
        ("device minor", 337, b'0'),
        ("atime", 476, b'0'),
        ("ctime", 488, b'0'),
    ] {
        let mut header = header(letter, "a", 0);
        // Only the format of star has them.
        if matches!(field, "atime" | "ctime") {
            header.as_mut_bytes()[508..].copy_from_slice(b"tar\0");
        }
        header.set_device_major(1).unwrap();
        header.set_device_minor(1).unwrap();
        header.as_mut_bytes()[at..at + 3].copy_from_slice(b"9x9");
        let error = error(&[sealed(header, b"")]);
        assert!(error.contains(&format!("{field} field: ")), "{error}");
    }
}

#[test]
fn a_checksum_may_sum_signed_bytes() {
    let mut header = header(b'0', "\u{e4}", 0);
    header.set_cksum();
    let unsigned = header.cksum().unwrap();
    for (sum, good) in [(unsigned, true), (unsigned - 2 * 256, true), (unsigned - 1, false), (unsigned - 256, false)] {
        let text = format!("{sum:06o}\0 ");
        header.as_mut_bytes()[148..156].copy_from_slice(text.as_bytes());
        let read = read(header.as_bytes(), &Limits::default());
        assert_eq!(read.is_ok(), good, "{read:?}");
    }
}

#[test]
fn an_archive_ends_with_two_blocks_of_zeros_or_with_its_stream() {
    let zeros = vec![0; 2 * BLOCK];
    assert_eq!(paths(&[file("a"), zeros.clone(), file("b")]), ["/a"]);
    assert_eq!(paths(&[file("a"), vec![0; BLOCK]]), ["/a"]);
    for rest in [file("b"), vec![1; BLOCK]] {
        let error = error(&[file("a"), vec![0; BLOCK], rest]);
        assert_eq!(error, "at byte 1024 of the tar stream: one block of zeros is followed by more");
    }
    assert!(error(&[file("a"), vec![0; BLOCK + 1]]).contains("in the middle of a header block"));
    assert_eq!(paths(&[file("a"), file("b")]), ["/a", "/b"]);
    assert_eq!(paths(&[]), [""; 0]);
    let whole = [file("a"), zeros, b"more".to_vec()].concat();
    let limits = Limits::default();
    let mut tar = TarReader::new(whole.as_slice(), &limits);
    tar.next_member().unwrap();
    assert_eq!(tar.offset(), BLOCK as u64);
    assert_eq!(tar.drain().unwrap(), whole.len() as u64);
    for length in [1, BLOCK - 1] {
        let error = error(&[file("a"), file("b")[..length].to_vec()]);
        let expected = format!(
            "at byte {} of the tar stream: the stream ends in the middle of a header block ({length} of 512",
            1024 + length
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn truncated_content_is_an_error_and_missing_padding_is_not() {
    let whole = file("a");
    let content = vec![("/a".to_owned(), "content".to_owned())];
    for length in [BLOCK + 7, BLOCK + 8, whole.len()] {
        assert_eq!(read(&whole[..length], &Limits::default()), Ok(content.clone()), "{length}");
    }
    for (length, left) in [(BLOCK, 7), (BLOCK + 6, 1)] {
        let expected = format!(
            "at byte {length} of the tar stream (member /a): the stream ends {left} bytes before the end of the member"
        );
        assert_eq!(read(&whole[..length], &Limits::default()), Err(expected.clone()));
        // The same error occurs when the member is skipped.
        let limits = Limits::default();
        let mut tar = TarReader::new(&whole[..length], &limits);
        tar.next_member().unwrap();
        assert_eq!(tar.next_member().unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_stream_may_be_read_in_pieces_of_any_size() {
    let tar = [file("a"), member(b'0', "b", &[b'x'; 511]), file("c")].concat();
    for size in [1, 300, 511, 513, 4096] {
        let limits = Limits::default();
        let mut reader = TarReader::new(BufReader::with_capacity(size, tar.as_slice()), &limits);
        for name in ["/a", "/b", "/c"] {
            assert_eq!(reader.next_member().unwrap().unwrap().path.to_string(), name, "pieces of {size}");
            // The content is read to its last byte, so that only the second member's one byte of padding is left.
            while reader.chunk().unwrap().is_some() {}
        }
        assert_eq!(reader.drain().unwrap(), tar.len() as u64);
    }
}

#[test]
fn an_error_in_a_sparse_file_has_its_real_name() {
    let tar = sparse("0,2,4,3", "9", b"abcde");
    let error = read(&tar[..tar.len() - BLOCK + 2], &Limits::default()).unwrap_err();
    assert!(error.ends_with("(member /real): the stream ends 3 bytes before the end of the member"), "{error}");
}

#[test]
fn large_content_is_read_in_chunks_with_offsets() {
    let content: Vec<u8> = (0..600_000_u32).map(|index| (index % 251) as u8).collect();
    let bytes = member(b'0', "a", &content);
    let limits = Limits::default();
    let mut tar = TarReader::new(bytes.as_slice(), &limits);
    tar.next_member().unwrap();
    let mut sizes = Vec::new();
    let mut read = Vec::new();
    while let Some(chunk) = tar.chunk().unwrap() {
        assert_eq!(chunk.offset, read.len() as u64);
        sizes.push(chunk.bytes.len());
        read.extend_from_slice(chunk.bytes);
    }
    assert_eq!((sizes, read == content), (vec![256 << 10, 256 << 10, 600_000 - (512 << 10)], true));
}

#[test]
fn limits_allow_their_own_value() {
    let named = |name: &str| [records(b'x', &[("path", name)]), file("a")].concat();
    let tar = [named("12345678"), named("12345678")].concat();
    // There are two records of 17 bytes, one for each member; each member's are counted separately.
    let size = pax("path", "12345678").len() as u64;
    let limits = Limits { entries: 2, path: 8, extended_header: size, ..Limits::default() };
    assert_eq!(read(&tar, &limits).unwrap().len(), 2);
    for (limits, error) in [
        (Limits { entries: 1, ..limits.clone() }, "2 entries, the limit is 1".to_owned()),
        (Limits { path: 7, ..limits.clone() }, "a path of 8 bytes, the limit is 7".to_owned()),
        (
            Limits { extended_header: size - 1, ..limits.clone() },
            format!("extended headers of {size} bytes, the limit is {}", size - 1),
        ),
    ] {
        assert!(read(&tar, &limits).unwrap_err().contains(&error), "{error}");
    }
    let global = || records(b'g', &[("a", "b")]);
    assert_eq!(read(&[global(), named("12345678")].concat(), &limits).unwrap().len(), 1);
    let both = [records(b'x', &[("path", "12345678")]), member(b'L', "long", b"x"), file("a")].concat();
    let error = read(&both, &limits).unwrap_err();
    assert!(error.contains(&format!("extended headers of {} bytes", size + 1)), "{error}");
    let globals = [global(), global(), file("a")].concat();
    assert!(read(&globals, &limits).unwrap_err().contains("3 entries, the limit is 2"), "each counts as a member");
    let long = records(b'x', &[("path", &["n".repeat(150), "n".repeat(149)].join("/"))]);
    let error = read(&[long, file("a")].concat(), &Limits { paths: 43, ..Limits::default() }).unwrap_err();
    assert!(error.contains("paths of 300 bytes in 1 entries, 256 are free for each, the limit is 43"), "{error}");
    let error = read(&file("a/b/c"), &Limits { implied_folders: 1, ..Limits::default() }).unwrap_err();
    assert!(error.contains("2 folders that only the paths of their files name, the limit is 1"), "{error}");
    let mut link = header(b'2', "a", 0);
    link.set_link_name("123456789").unwrap();
    let error = read(&sealed(link, b""), &limits).unwrap_err();
    assert!(error.contains("a path of 9 bytes, the limit is 8"), "{error}");
}

/// A sparse file in PAX format 0.1.
fn sparse(map: &str, size: &str, stored: &[u8]) -> Vec<u8> {
    let count = (map.split(',').count() / 2).to_string();
    let pairs = [
        ("GNU.sparse.map", map),
        ("GNU.sparse.size", size),
        ("GNU.sparse.name", "real"),
        ("GNU.sparse.numblocks", &count),
    ];
    [records(b'x', &pairs), member(b'0', "placeholder", stored)].concat()
}

#[test]
fn the_content_of_a_sparse_file_lies_at_its_offsets() {
    let limits = Limits { sparse_extents: 3, ..Limits::default() };
    let one = |tar: &[u8]| read(&[tar, &file("next")].concat(), &limits).map(|members| members[0].clone());
    let real = |content: &str| Ok(("/real".to_owned(), content.to_owned()));
    assert_eq!(one(&sparse("0,2,4,3", "9", b"abcde")), real("ab..cde.."));
    assert_eq!(one(&sparse("2,3,5,1,9,0", "9", b"abcd")), real("..abcd..."));
    // Without a map, a size alone means nothing.
    assert_eq!(one(&sparse("", "4", b"ab")), Ok(("/placeholder".to_owned(), "ab".to_owned())));
    assert_eq!(one(&sparse("0,0", "4", b"")), real("...."));
    let old = |pairs: &[(&str, &str)]| {
        let map: String = pairs.iter().map(|(key, value)| pax(&format!("GNU.sparse.{key}"), value)).collect();
        let rest = [("size", "7"), ("name", "real"), ("numblocks", "2")];
        let rest: String = rest.iter().map(|(key, value)| pax(&format!("GNU.sparse.{key}"), value)).collect();
        [member(b'x', "records", (map + &rest).as_bytes()), member(b'0', "placeholder", b"abc")].concat()
    };
    assert_eq!(one(&old(&[("offset", "1"), ("numbytes", "2"), ("offset", "5"), ("numbytes", "1")])), real(".ab..c."));
    for pairs in [
        &[("numbytes", "1"), ("offset", "2"), ("offset", "5"), ("numbytes", "1")][..],
        &[("offset", "1,2"), ("numbytes", "5,1")],
    ] {
        assert!(one(&old(pairs)).unwrap_err().ends_with("the sparse map is out of order"), "{pairs:?}");
    }
    let version = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.realsize", "6"),
        ("GNU.sparse.name", "real"),
    ];
    let new = |map: &str, stored: &[u8]| {
        let mut body = map.as_bytes().to_vec();
        body.resize(body.len().next_multiple_of(BLOCK).max(BLOCK), 0);
        [records(b'x', &version), member(b'0', "placeholder", &[&body, stored].concat())].concat()
    };
    assert_eq!(one(&new("2\n1\n2\n5\n1\n", b"abc")), real(".ab..c"));
    assert_eq!(one(&new("0\n", b"")), real("......"));
    for map in ["x", "1\n1\nx", "", "\n", "1\n2\n\n", "123456789012345678901\n"] {
        let error = one(&new(map, b"abc")).unwrap_err();
        assert!(error.contains("the sparse map "), "{map}: {error}");
    }
    // This map takes more than one block.
    let zeros = format!("{:0>20}\n", 1) + &format!("{:0>20}\n", 0).repeat(2);
    assert_eq!(one(&new(&zeros, b"")), real("......"));
    let cut = [records(b'x', &version), member(b'0', "placeholder", b"1\n")].concat();
    assert!(one(&cut).unwrap_err().ends_with("the sparse map is cut off"));
}

#[test]
fn a_contradictory_sparse_map_is_refused() {
    let limits = Limits { sparse_extents: 3, ..Limits::default() };
    for (map, size, stored, why) in [
        ("0,2,1,1", "9", "abc", "the sparse map goes backwards at offset 1"),
        ("0,2,18446744073709551615,1", "9", "abc", "the sparse map is malformed"),
        ("0,2,4", "9", "ab", "the sparse map is malformed"),
        ("0,x", "9", "ab", "the sparse map is malformed"),
        ("0,2", "1", "ab", "the sparse map covers 2 bytes up to 2; 2 are stored and the file has 1"),
        ("0,2", "9", "abc", "the sparse map covers 2 bytes up to 2; 3 are stored and the file has 9"),
        ("0,1,2,1,4,1,6,1", "9", "abcd", "a sparse file of more than 3 extents, the limit is 3"),
        ("0,2", "x", "ab", "the PAX record 'GNU.sparse.size' is not a number"),
        ("0,2", "-1", "ab", "the PAX record 'GNU.sparse.size' is negative"),
    ] {
        let error = read(&sparse(map, size, stored.as_bytes()), &limits).unwrap_err();
        assert!(error.contains(why), "{map}: {error}");
    }
    let map = |count| [("GNU.sparse.map", "0,2"), ("GNU.sparse.numblocks", count)];
    let sizeless = |count, letter| [records(b'x', &map(count)), member(letter, "a", b"ab")].concat();
    assert_eq!(read(&sizeless("1", b'0'), &limits), Ok(vec![("/a".to_owned(), "ab".to_owned())]));
    for (count, letter, why) in [
        ("2", b'0', "its length is not GNU.sparse.numblocks"),
        ("", b'0', "its length is not GNU.sparse.numblocks"),
        ("1", b'5', "a sparse map of a member without content"),
    ] {
        assert!(read(&sizeless(count, letter), &limits).unwrap_err().ends_with(why), "{why}");
    }
}

/// Returns single bytes, with an error between them.
struct Stutter<'b>(&'b [u8], io::ErrorKind, bool);

impl Read for Stutter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.2 = !self.2;
        if self.2 {
            return Err(self.1.into());
        }
        self.0.read(&mut buffer[..1])
    }
}

#[test]
fn an_interrupted_read_is_retried_and_other_errors_are_reported() {
    let bytes = file("a");
    let limits = Limits::default();
    let mut tar = TarReader::new(BufReader::new(Stutter(&bytes, io::ErrorKind::Interrupted, false)), &limits);
    assert_eq!(tar.next_member().unwrap().unwrap().path.to_string(), "/a");
    assert_eq!(tar.chunk().unwrap(), Some(TarChunk { offset: 0, bytes: b"c" }));
    assert_eq!(tar.chunk().unwrap(), Some(TarChunk { offset: 1, bytes: b"o" }));
    let mut broken = TarReader::new(BufReader::new(Stutter(&bytes, io::ErrorKind::BrokenPipe, false)), &limits);
    assert!(matches!(broken.next_member().unwrap_err().what, TarErrorKind::Read(_)));
}
