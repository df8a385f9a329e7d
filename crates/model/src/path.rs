//! Paths inside an image. A path is bytes: tar names need not be UTF-8.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::text::{escape, unescape};

/// A normalised path inside the image: components joined by single slashes, without a leading slash, without `.` and
/// `..`. The root is empty. Printed with a leading slash; anything but plain text is escaped.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ImagePath(#[serde(with = "serde_bytes")] Box<[u8]>);

impl ImagePath {
    /// Returns the root directory.
    pub fn root() -> Self {
        Self::default()
    }

    /// Normalises a path as stored in an archive or a link. `..` stops at the root, as in the kernel's path resolution
    /// inside a container.
    pub fn normalise(raw: &[u8]) -> Self {
        Self::default().join(raw)
    }

    /// Reads a path as it is printed, with escapes.
    pub fn printed(text: &str) -> Self {
        Self::normalise(&unescape(text))
    }

    /// Appends `raw` and normalises; an absolute `raw` starts at the root.
    #[must_use]
    pub fn join(&self, raw: &[u8]) -> Self {
        let mut parts: Vec<&[u8]> = if raw.first() == Some(&b'/') { Vec::new() } else { self.components().collect() };
        for part in raw.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        Self(parts.join(&b'/').into())
    }

    /// Appends `name`, which must be a single component.
    #[must_use]
    pub fn child(&self, name: &[u8]) -> Self {
        if self.is_root() { Self(name.into()) } else { Self([&*self.0, b"/", name].concat().into()) }
    }

    /// Returns the bytes, without a leading slash.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the components from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/').filter(|part| !part.is_empty())
    }

    /// Returns the last component; empty for the root.
    pub fn file_name(&self) -> &[u8] {
        self.split_name().1
    }

    /// Returns the bytes of the parent directory, and the last component.
    pub fn split_name(&self) -> (&[u8], &[u8]) {
        match memchr::memrchr(b'/', &self.0) {
            Some(slash) => (self.0.get(..slash).unwrap_or_default(), self.0.get(slash + 1..).unwrap_or_default()),
            None => (&[], &self.0),
        }
    }

    /// Returns the parent directory; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.split_name().0.into())
    }

    /// Returns true if this is the [`Self::parent`] of `other`.
    pub fn is_parent_of(&self, other: &Self) -> bool {
        *self.0 == *other.split_name().0
    }

    /// Returns true for the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the last components are those of `tail`.
    pub fn ends_with(&self, tail: &str) -> bool {
        match self.0.strip_suffix(tail.as_bytes()) {
            Some(rest) => rest.is_empty() || rest.ends_with(b"/"),
            None => false,
        }
    }

    /// Returns true if this is `dir` or a path below it.
    pub fn starts_with(&self, dir: &Self) -> bool {
        dir.is_root() || self.0.strip_prefix(&*dir.0).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }
}

/// Accepts only normalised paths, as [`ImagePath::normalise`] returns them.
impl<'de> Deserialize<'de> for ImagePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes: Box<[u8]> = serde_bytes::deserialize(deserializer)?;
        let is_normal = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
        if bytes.is_empty() || bytes.split(|&b| b == b'/').all(is_normal) {
            return Ok(Self(bytes));
        }
        Err(serde::de::Error::custom(format_args!("the path {} is not normalised", escape(&bytes))))
    }
}

impl From<&str> for ImagePath {
    fn from(text: &str) -> Self {
        Self::normalise(text.as_bytes())
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", escape(&self.0))
    }
}

impl fmt::Debug for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_and_stay_below_the_root() {
        for (raw, path) in [
            ("./usr//lib/", "/usr/lib"),
            ("/etc/passwd", "/etc/passwd"),
            ("../../etc/./x/../passwd", "/etc/passwd"),
            (".", "/"),
        ] {
            assert_eq!(ImagePath::from(raw).to_string(), path);
        }
        assert_eq!(ImagePath::from("usr/lib").join(b"../bin").to_string(), "/usr/bin");
        assert_eq!(ImagePath::from("usr/lib").join(b"/bin").to_string(), "/bin");
    }

    #[test]
    fn parents_children_prefixes_and_suffixes() {
        let path = ImagePath::from("usr/lib/libnccl.so.2");
        assert_eq!(path.split_name(), (&b"usr/lib"[..], &b"libnccl.so.2"[..]));
        assert_eq!(ImagePath::from("usr").split_name(), (&b""[..], &b"usr"[..]));
        assert_eq!(path.parent().to_string(), "/usr/lib");
        assert_eq!(path.parent().child(b"libnccl.so.2"), path);
        assert_eq!(ImagePath::root().child(b"usr"), "usr".into());
        assert!(path.parent().is_parent_of(&path) && !path.parent().parent().is_parent_of(&path));
        assert!(path.ends_with("lib/libnccl.so.2"));
        assert!(!path.ends_with("ib/libnccl.so.2"));
        assert!(path.starts_with(&"usr".into()));
        assert!(!path.starts_with(&"us".into()));
    }
}
