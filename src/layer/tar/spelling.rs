//! How a member's name spells its path.

/// What a name has besides its normalised path. `tar-split`, by which Docker and Podman find the same path twice, takes
/// names of other spellings for other paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spelling {
    is_absolute: bool,
    /// Number of `..` that lead above the root.
    above: u32,
}

impl Spelling {
    /// The spelling of a name.
    pub fn of(name: &[u8]) -> Self {
        let (mut depth, mut above) = (0_u32, 0);
        for part in name.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." if depth == 0 => above += 1,
                b".." => depth -= 1,
                _ => depth += 1,
            }
        }
        Self { is_absolute: name.first() == Some(&b'/'), above }
    }

    /// Returns true for a name whose `..` lead above the root.
    pub const fn leaves_root(self) -> bool {
        self.above > 0
    }

    /// Returns true for a relative name that stays below the root.
    pub const fn is_plain(self) -> bool {
        !self.is_absolute && self.above == 0
    }

    /// Returns true if two names of one path are the same for Go's `path.Clean`, which drops `..` behind a leading slash.
    pub const fn is_same(self, other: Self) -> bool {
        self.is_absolute == other.is_absolute && (self.is_absolute || self.above == other.above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_path_differ_where_clean_keeps_them_apart() {
        let is_same = |one: &[u8], other: &[u8]| Spelling::of(one).is_same(Spelling::of(other));
        for (one, other, same) in [
            ("a/b", "./a//b/", true),
            ("a/b", "a/c/../b", true),
            ("a/b", "/a/b", false),
            ("/a/b", "//a/../../a/b", true),
            ("../a", "a", false),
            ("../a", "b/../../a", true),
            ("../a", "../../a", false),
        ] {
            assert_eq!(is_same(one.as_bytes(), other.as_bytes()), same, "{one} {other}");
        }
    }

    #[test]
    fn names_that_leave_the_root() {
        for (name, leaves, plain) in [
            ("a/..", false, true),
            ("a/../..", true, false),
            ("/..", true, false),
            ("/a", false, false),
            ("", false, true),
        ] {
            let spelling = Spelling::of(name.as_bytes());
            assert_eq!((spelling.leaves_root(), spelling.is_plain()), (leaves, plain), "{name}");
        }
    }
}
