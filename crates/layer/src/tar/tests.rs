mod made;

use std::process::Command;

use super::*;

/// Everything the reader returns: path, type, mode, size, and the content of small files.
fn list(bytes: &[u8]) -> Result<Vec<String>, TarError> {
    let limits = Limits::default();
    let mut tar = TarReader::new(bytes, &limits);
    let mut lines = Vec::new();
    while let Some(entry) = tar.next_member()? {
        let mut content = vec![0; usize::try_from(entry.size.min(1 << 20)).unwrap()];
        while let Some(chunk) = tar.chunk()? {
            let at = usize::try_from(chunk.offset).unwrap();
            content[at..at + chunk.bytes.len()].copy_from_slice(chunk.bytes);
        }
        let digest = short_digest(&content);
        lines.push(format!("{} {} {:04o} {} {digest}", entry.path, entry.kind.letter(), entry.mode, entry.size));
    }
    tar.drain()?;
    Ok(lines)
}

fn short_digest(bytes: &[u8]) -> String {
    let mut hasher = model::Hasher::sha256();
    hasher.update(bytes);
    hasher.finish().short().to_owned()
}

/// GNU tar's archive, in the given format, of a folder with a sparse file, a long name and a large mode.
pub(super) fn gnu_tar(format: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("{0}/{0}/{0}", "long-name-".repeat(9));
    let script = format!(
        "set -e; mkdir -p {long}; echo hi > {long}/file; ln -s {long}/file link; ln {long}/file hard
         truncate -s 700000 sparse; for at in 1 100 300 400 500 650; do
           printf data-$at | dd of=sparse bs=1000 seek=$at conv=notrunc status=none; done
         mkfifo pipe; chmod 4755 {long}/file
         tar --sort=name {} -cf ../out.tar .",
        format.join(" ")
    );
    std::fs::create_dir(dir.path().join("in")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "GNU tar defines its formats")]
    let status = Command::new("sh").arg("-c").arg(script).current_dir(dir.path().join("in")).status().unwrap();
    assert!(status.success());
    std::fs::read(dir.path().join("out.tar")).unwrap()
}

#[test]
fn all_dialects_give_the_same_members() {
    // GNU's own format has a type for sparse files, which no engine unpacks.
    let error = list(&gnu_tar(&["--format=gnu", "--sparse"])).unwrap_err().to_string();
    assert!(error.contains("(member /sparse): a member of type 'S', which no engine unpacks"), "{error}");
    let gnu = list(&gnu_tar(&["--format=gnu"])).unwrap();
    assert_eq!(gnu.len(), 9, "{gnu:#?}");
    let mut sparse = vec![0; 700_000];
    for at in [1, 100, 300, 400, 500, 650] {
        let data = format!("data-{at}");
        sparse[at * 1000..][..data.len()].copy_from_slice(data.as_bytes());
    }
    assert!(gnu.contains(&format!("/sparse - 0644 700000 {}", short_digest(&sparse))), "{gnu:#?}");
    assert!(gnu.contains(&format!("/hard - 4755 3 {}", short_digest(b"hi\n"))), "{gnu:#?}");
    for version in ["0.0", "0.1", "1.0"] {
        let pax = list(&gnu_tar(&["--format=pax", "--sparse", &format!("--sparse-version={version}")])).unwrap();
        assert_eq!(pax, gnu, "sparse version {version}");
    }
}

#[test]
fn damage_is_reported_with_its_position() {
    let tar = gnu_tar(&["--format=gnu"]);
    let error = list(&tar[..tar.len() / 2]).unwrap_err().to_string();
    assert!(error.contains("the stream ends"), "{error}");
    let mut flipped = tar.clone();
    flipped[3] ^= 1;
    let error = list(&flipped).unwrap_err().to_string();
    assert!(error.contains("at byte 0 of the tar stream: wrong header checksum"), "{error}");
}

#[test]
fn limits_are_enforced() {
    let tar = gnu_tar(&["--format=pax", "--sparse"]);
    for (limits, text) in [
        (Limits { entries: 3, ..Limits::default() }, "4 entries, the limit is 3 (raise it with --limit entries=N)"),
        (Limits { path: 100, ..Limits::default() }, "bytes, the limit is 100"),
        (Limits { extended_header: 100, ..Limits::default() }, "extended headers of"),
        (Limits { sparse_extents: 2, ..Limits::default() }, "a sparse file of more than 2 extents, the limit is 2"),
    ] {
        let mut tar = TarReader::new(tar.as_slice(), &limits);
        let error = loop {
            match tar.next_member() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{text}: was not reported"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn members_that_no_engine_unpacks_are_refused() {
    let refused = |parts: &[Vec<u8>]| list(&parts.concat()).unwrap_err().to_string();
    for letter in [b'7', b'A', b'D', b'M', b'N', b'V', b'X', b'Z', b'-'] {
        let error = refused(&[made::file("a"), made::member(letter, "b", b"content")]);
        let letter = letter.escape_ascii();
        let what =
            format!("at byte 1024 of the tar stream (member /b): a member of type '{letter}', which no engine unpacks");
        assert_eq!(error, what);
    }
    for prefix in ["", ".wh."] {
        let named = |length: usize| {
            let name = format!("{}/{prefix}{}", "a".repeat(200), "b".repeat(length));
            vec![made::records(b'x', &[("path", &name)]), made::file("a")]
        };
        assert!(list(&named(255).concat()).is_ok());
        let name = format!("{prefix}{}", "b".repeat(256));
        let map = [
            ("GNU.sparse.map", "0,0"),
            ("GNU.sparse.numblocks", "1"),
            ("GNU.sparse.size", "0"),
            ("GNU.sparse.name", &*name),
        ];
        let error = refused(&[made::records(b'x', &map), made::member(b'0', "a", b"")]);
        assert!(error.ends_with("a name of more than 255 bytes, which Linux refuses"), "{error}");
        assert!(refused(&named(256)).ends_with("a name of more than 255 bytes, which Linux refuses"));
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
        let record = made::records(b'x', &[(&format!("SCHILY.xattr.{name}"), value)]);
        let bytes = [record, made::member(letter, "a", b""), made::file("b")].concat();
        let limits = Limits::default();
        let mut tar = TarReader::new(bytes.as_slice(), &limits);
        tar.next_member().unwrap();
        assert_eq!(tar.hides_lower(), hides, "{name}={value}");
        tar.next_member().unwrap();
        assert!(!tar.hides_lower());
    }
}
