//! Forms that engines read differently in a single member.

use super::made::{file, header, member, records, sealed};
use super::*;

/// The forms that engines read differently in a tar, each with its offset and path.
fn forms(parts: &[Vec<u8>]) -> Vec<String> {
    let bytes = parts.concat();
    let limits = Limits::default();
    let mut tar = TarReader::new(bytes.as_slice(), &limits);
    while tar.next_member().unwrap().is_some() {}
    let all = tar.take_ambiguities();
    all.kept.iter().map(|one| format!("{} {} {}", one.form.name(), one.offset.unwrap(), one.path)).collect()
}

#[test]
fn forms_that_engines_read_differently_are_noted_with_their_place() {
    let extended = |pairs: &[(&str, &str)]| records(b'x', pairs);
    let mut link = header(b'1', "link", 0);
    link.set_link_name("a").unwrap();
    let mut sized = link.clone();
    sized.set_size(7);
    let overlay = |name: &str, value: &str| [extended(&[(&format!("SCHILY.xattr.{name}"), value)])].concat();
    let none: [&str; 0] = [];
    assert_eq!(forms(&[file("a"), sealed(link.clone(), b""), extended(&[("path", "b")]), file("c")]), none);
    assert_eq!(forms(&[file("a"), sealed(sized, b"")]), ["hard-link-with-size 1024 /link"]);
    let by_record = [file("a"), extended(&[("size", "7")]), sealed(link, b"")];
    assert_eq!(forms(&by_record), ["hard-link-with-size 2048 /link"]);
    let twice = [extended(&[("comment", "a")]), extended(&[("comment", "b")]), file("a")];
    assert_eq!(forms(&twice), ["pax-repeated 2048 /a"]);
    let long = |kind: u8| member(kind, "long", b"long\0");
    assert_eq!(forms(&[extended(&[("path", "b")]), long(b'L'), file("a")]), ["pax-with-gnu-name 2048 /long"]);
    assert_eq!(forms(&[extended(&[("linkpath", "b")]), long(b'K'), file("a")]), ["pax-with-gnu-name 2048 /a"]);
    assert_eq!(forms(&[extended(&[("path", "long")]), long(b'L'), file("a")]), none);
    assert_eq!(forms(&[records(b'g', &[("comment", "x")]), file("a")]), ["pax-global 0 /records"]);
    assert_eq!(
        forms(&[records(b'g', &[("path", ".wh.x")]), file("a")]),
        ["pax-global-record 0 /.wh.x", "pax-global 0 /.wh.x"]
    );
    assert_eq!(
        forms(&[extended(&[("path", "b")]), records(b'g', &[("size", "1")]), file("a")]),
        ["pax-global-after-extended 1024 /records", "pax-global-record 1024 /records", "pax-global 1024 /records"]
    );
    for letter in [b'7', b'A', b'D', b'M', b'N', b'V', b'X', b'Z', b'-'] {
        assert_eq!(forms(&[member(letter, "a", b"content")]), ["unknown-type-flag 0 /a"], "{letter}");
    }
    for (name, leaves) in [("../a", true), ("a/../../b", true), ("/../a", true), ("..", true), ("a/../b", false)] {
        assert_eq!(forms(&[file(name)]).len(), usize::from(leaves), "{name}");
    }
    for name in ["trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.metacopy"] {
        assert_eq!(forms(&[overlay(name, "y"), file("a")]), ["overlay-attribute 1024 /a"], "{name}");
    }
    assert_eq!(forms(&[overlay("user.overlay.opaque", "y"), file("a")]), ["user-overlay-attribute 1024 /a"]);
    assert_eq!(forms(&[overlay("test", "y"), file("a")]), ["unknown-attribute 1024 /a"]);
    assert_eq!(forms(&[overlay("user.a", "y"), member(b'6', "a", b"")]), ["attribute-of-special 1024 /a"]);
    assert_eq!(forms(&[overlay("", "y"), file("a")]), ["refused-attribute 1024 /a"]);
    for name in ["trusted.overlay.origin", "security.selinux", "user.overlay"] {
        assert_eq!(forms(&[overlay(name, "y"), file("a")]), none, "{name}");
    }
}

#[test]
fn attributes_of_overlayfs_hide_what_lower_layers_have_in_a_directory() {
    for (name, value, letter, hides) in [
        ("trusted.overlay.opaque", "y", b'5', true),
        ("trusted.overlay.redirect", "/other", b'5', true),
        ("trusted.overlay.opaque", "x", b'5', false),
        ("trusted.overlay.opaque", "y", b'0', false),
        ("user.overlay.opaque", "y", b'5', false),
        ("trusted.overlay.origin", "y", b'5', false),
    ] {
        let tar = [records(b'x', &[(&format!("SCHILY.xattr.{name}"), value)]), member(letter, "a", b""), file("b")];
        let bytes = tar.concat();
        let limits = Limits::default();
        let mut tar = TarReader::new(bytes.as_slice(), &limits);
        tar.next_member().unwrap();
        assert_eq!((tar.hides_lower(), tar.member_offset()), (hides, 1024), "{name}={value}");
        tar.next_member().unwrap();
        assert!(!tar.hides_lower());
    }
}

#[test]
fn old_gnu_sparse_files_are_noted_and_read() {
    let gnu = gnu_tar(&["--format=gnu"]);
    assert_eq!(forms(&[gnu]).len(), 1);
}

#[test]
fn a_name_fits_in_a_directory() {
    let named = |length: usize| {
        let name = format!("{}/{}", "a".repeat(200), "b".repeat(length));
        forms(&[records(b'x', &[("path", &name)]), file("a")]).len()
    };
    assert_eq!((named(200), named(255), named(256)), (0, 0, 1));
}

#[test]
fn a_device_number_has_32_bits() {
    let device = |letter: u8, minor: [u8; 8]| {
        let mut header = header(letter, "a", 0);
        header.as_mut_bytes()[337..345].copy_from_slice(&minor);
        forms(&[sealed(header, b"")])
    };
    let largest = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    let [larger, negative] = [[0x80, 0, 0, 1, 0, 0, 0, 0], [0xff; 8]];
    for letter in [b'3', b'4'] {
        assert_eq!(device(letter, largest), [""; 0]);
        assert_eq!(device(letter, larger), ["device-number 0 /a"]);
        assert_eq!(device(letter, negative), ["device-number 0 /a"]);
    }
    assert_eq!(device(b'6', larger), [""; 0]);
}

#[test]
fn global_headers_are_kept_with_their_names() {
    let named = |name: &str| member(b'g', name, b"");
    let bytes = [named("/a/./b"), records(b'g', &[("path", "../c"), ("mtime", "x")]), file("d")].concat();
    let limits = Limits::default();
    let mut tar = TarReader::new(bytes.as_slice(), &limits);
    tar.next_member().unwrap();
    let globals: Vec<_> = tar.take_globals().into_iter().map(|one| (one.path.to_string(), one.spelling)).collect();
    assert_eq!(globals, [("/a/b".to_owned(), Spelling::of(b"/a/b")), ("/c".to_owned(), Spelling::of(b"../c"))]);
    assert_eq!(tar.member_spelling(), Spelling::of(b"d"));
    let forms: Vec<_> = tar.take_ambiguities().kept.into_iter().map(|one| one.form.name()).collect();
    assert_eq!(forms, ["pax-global", "pax-global-record", "pax-global-malformed", "pax-global"]);
}
