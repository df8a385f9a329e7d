//! What becomes of extended attributes when engines set them (Linux, `fs/xattr.c`).

use crate::model::{AmbiguousForm, EntryKind};

/// Attributes of overlayfs that change what a container sees (Linux, `Documentation/filesystems/overlayfs.rst`).
const OVERLAY: [&[u8]; 4] = [b"opaque", b"redirect", b"metacopy", b"whiteout"];

/// Longest name of an attribute, in bytes (Linux, `XATTR_NAME_MAX`).
const LONGEST_NAME: usize = 255;

/// Largest value of an attribute, in bytes (Linux, `XATTR_SIZE_MAX`).
const LARGEST_VALUE: usize = 64 << 10;

/// The form that an attribute of a member is, if any.
pub(super) fn form(name: &[u8], value: &[u8], kind: &EntryKind) -> Option<AmbiguousForm> {
    if is_refused(name, value, kind) {
        Some(AmbiguousForm::RefusedAttribute)
    } else if of_overlay(name, b"trusted.").is_some() {
        Some(AmbiguousForm::OverlayAttribute)
    } else if of_overlay(name, b"user.").is_some() {
        Some(AmbiguousForm::UserOverlayAttribute)
    } else if !is_known(name) {
        Some(AmbiguousForm::UnknownAttribute)
    } else if name.starts_with(b"user.") && !may_have_user_attributes(kind) {
        Some(AmbiguousForm::AttributeOfSpecial)
    } else {
        None
    }
}

/// Returns true if the attribute makes a directory hide what lower layers have there. A redirected directory shows another
/// one's lower files, and never those of its own path.
pub(super) fn hides_lower(name: &[u8], value: &[u8], kind: &EntryKind) -> bool {
    let name = of_overlay(name, b"trusted.");
    *kind == EntryKind::Directory && (name == Some(b"redirect") || (name == Some(b"opaque") && value == b"y"))
}

fn of_overlay<'n>(name: &'n [u8], namespace: &[u8]) -> Option<&'n [u8]> {
    let name = name.strip_prefix(namespace)?.strip_prefix(b"overlay.")?;
    OVERLAY.contains(&name).then_some(name)
}

fn is_known(name: &[u8]) -> bool {
    const NAMESPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    NAMESPACES.iter().any(|namespace| name.starts_with(namespace)) || is_acl(name)
}

/// `xattr_permission` in `fs/xattr.c`. A hard link's file is one, or engines refuse the link.
const fn may_have_user_attributes(kind: &EntryKind) -> bool {
    matches!(kind, EntryKind::File | EntryKind::Directory | EntryKind::Hardlink(_))
}

fn is_acl(name: &[u8]) -> bool {
    matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default")
}

/// Returns true for what no file system takes. Engines pass over an empty value.
fn is_refused(name: &[u8], value: &[u8], kind: &EntryKind) -> bool {
    if value.is_empty() {
        return false;
    }
    let is_default_acl_of_another = name == b"system.posix_acl_default" && *kind == EntryKind::File;
    name.is_empty()
        || name.len() > LONGEST_NAME
        || value.len() > LARGEST_VALUE
        || (name == b"security.capability" && !is_capability(value))
        || (is_acl(name) && (is_default_acl_of_another || !is_valid_acl(value)))
}

/// `cap_convert_nscap` in `security/commoncap.c`: revision 2 has 20 bytes, revision 3 has 24.
fn is_capability(value: &[u8]) -> bool {
    matches!((value.get(3), value.len()), (Some(2), 20) | (Some(3), 24))
}

/// `posix_acl_from_xattr` and `posix_acl_valid` in `fs/posix_acl.c`: a version, and entries of a tag, permissions and an id
/// in the order of the tags.
fn is_valid_acl(value: &[u8]) -> bool {
    const OWNER: u16 = 0x01;
    const USER: u16 = 0x02;
    const GROUP_OF_OWNER: u16 = 0x04;
    const GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    const OTHERS: u16 = 0x20;
    let Some(entries) = value.strip_prefix(&2_u32.to_le_bytes()).filter(|rest| rest.len().is_multiple_of(8)) else {
        return false;
    };
    let mut tags = Vec::new();
    for entry in entries.chunks_exact(8) {
        let &[tag, high, permissions, 0, ref id @ ..] = entry else { return false };
        let tag = u16::from_le_bytes([tag, high]);
        if permissions > 7 || (matches!(tag, USER | GROUP) && id == [0xff; 4]) {
            return false;
        }
        tags.push(tag);
    }
    let count = |tag| tags.iter().filter(|other| **other == tag).count();
    let has_more = count(USER) + count(GROUP) > 0;
    let has_each_once = [OWNER, GROUP_OF_OWNER, OTHERS].iter().all(|tag| count(*tag) == 1);
    let has_known_only = tags.iter().all(|tag| [OWNER, USER, GROUP_OF_OWNER, GROUP, MASK, OTHERS].contains(tag));
    let has_mask = count(MASK) == 1 || (count(MASK) == 0 && !has_more);
    tags.is_empty() || (has_each_once && has_known_only && has_mask && tags.is_sorted())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: EntryKind = EntryKind::File;
    const DIR: EntryKind = EntryKind::Directory;

    fn acl(entries: &[(u16, u16)]) -> Vec<u8> {
        let entries = entries.iter().flat_map(|(tag, permissions)| {
            let id = if *tag == 8 { [0xff; 4] } else { [0; 4] };
            [tag.to_le_bytes().as_slice(), &permissions.to_le_bytes(), &id].concat()
        });
        2_u32.to_le_bytes().into_iter().chain(entries).collect()
    }

    #[test]
    fn attributes_and_what_engines_make_of_them() {
        let link = EntryKind::Symlink(b"x".as_slice().into());
        let capability = |size: usize, revision: u8| {
            let mut value = vec![0; size];
            value[3] = revision;
            value
        };
        let (large, long) = (vec![1; LARGEST_VALUE + 1], [b"user.", [b'n'; 251].as_slice()].concat());
        for (name, value, kind, form) in [
            ("user.a", b"v".to_vec(), &FILE, None),
            ("user.a", b"v".to_vec(), &DIR, None),
            ("user.a", b"v".to_vec(), &link, Some("attribute-of-special")),
            ("user.a", b"v".to_vec(), &EntryKind::Fifo, Some("attribute-of-special")),
            ("user.a", b"v".to_vec(), &EntryKind::Hardlink("x".into()), None),
            ("trusted.a", b"v".to_vec(), &link, None),
            ("", b"v".to_vec(), &FILE, Some("refused-attribute")),
            (std::str::from_utf8(&long).unwrap(), b"v".to_vec(), &FILE, Some("refused-attribute")),
            ("user.a", large[1..].to_vec(), &FILE, None),
            ("user.a", large, &FILE, Some("refused-attribute")),
            ("test", b"v".to_vec(), &FILE, Some("unknown-attribute")),
            ("system.other", b"v".to_vec(), &FILE, Some("unknown-attribute")),
            ("security.selinux", b"v".to_vec(), &FILE, None),
            ("security.capability", capability(20, 2), &FILE, None),
            ("security.capability", capability(24, 3), &FILE, None),
            ("security.capability", capability(24, 2), &FILE, Some("refused-attribute")),
            ("security.capability", b"x".to_vec(), &FILE, Some("refused-attribute")),
            ("security.capability", Vec::new(), &FILE, None),
            ("trusted.overlay.opaque", b"y".to_vec(), &DIR, Some("overlay-attribute")),
            ("trusted.overlay.origin", b"y".to_vec(), &FILE, None),
            ("user.overlay.opaque", b"y".to_vec(), &DIR, Some("user-overlay-attribute")),
        ] {
            assert_eq!(super::form(name.as_bytes(), &value, kind).map(AmbiguousForm::name), form, "{name}");
        }
    }

    #[test]
    fn access_control_lists_are_in_order() {
        let minimal = [(1, 6), (4, 4), (0x20, 0)];
        for (entries, is_valid) in [
            (&[][..], true),
            (&minimal, true),
            (&[(1, 6), (2, 4), (4, 4), (0x10, 4), (0x20, 0)], true),
            (&[(1, 6), (2, 4), (4, 4), (0x20, 0)], false),
            (&[(1, 6), (4, 4), (8, 4), (0x10, 4), (0x20, 0)], false),
            (&[(1, 6), (4, 4)], false),
            (&[(4, 4), (1, 6), (0x20, 0)], false),
            (&[(1, 6), (4, 4), (0x10, 4), (0x10, 4), (0x20, 0)], false),
            (&[(1, 8), (4, 4), (0x20, 0)], false),
            (&[(1, 6), (3, 6), (4, 4), (0x20, 0)], false),
        ] {
            assert_eq!(is_valid_acl(&acl(entries)), is_valid, "{entries:?}");
        }
        for value in [&b"x"[..], &[2, 0, 0], &[1, 0, 0, 0], &[2, 0, 0, 0, 1]] {
            assert!(!is_valid_acl(value), "{value:?}");
        }
        let of = |name: &[u8], kind| form(name, &acl(&minimal), kind);
        assert_eq!(of(b"system.posix_acl_access", &FILE), None);
        assert_eq!(of(b"system.posix_acl_default", &DIR), None);
        assert_eq!(of(b"system.posix_acl_default", &FILE), Some(AmbiguousForm::RefusedAttribute));
    }
}
