//! The merged file system as lines of text, for people and for comparison with other tools.

use std::fmt::Write as _;

use model::EntryKind;

use super::{RootFs, What};

/// One line per path, sorted by bytes, without the root: path, type letter as in `ls -l`, mode as four octal digits,
/// size, and link target or device numbers, separated by tabs. In names, all bytes except printable ASCII are written
/// as `\xNN`, and a backslash as `\\`.
pub fn listing(rootfs: &RootFs) -> String {
    let mut lines: Vec<_> = rootfs
        .walk(|_, _| true)
        .map(|(path, id)| {
            let node = rootfs.node(id);
            let (letter, size, target) = match &node.what {
                What::Directory(_) => ('d', 0, String::new()),
                What::File { size, .. } => ('-', *size, String::new()),
                What::Symlink(target) => ('l', 0, ascii(target)),
                What::Special(kind) => (kind.letter(), 0, numbers(kind)),
            };
            // On Linux every symlink has all permissions, whatever the archive says.
            let mode = if letter == 'l' { 0o777 } else { node.mode };
            let line = format!("/{}\t{letter}\t{mode:04o}\t{size}\t{target}\n", ascii(path.as_bytes()));
            (path, line)
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn numbers(kind: &EntryKind) -> String {
    match kind {
        EntryKind::CharDevice(major, minor) | EntryKind::BlockDevice(major, minor) => {
            format!("{major},{minor}")
        }
        _ => String::new(),
    }
}

fn ascii(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, &byte| {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
        text
    })
}
