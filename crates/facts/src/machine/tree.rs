//! File tree of a machine.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::{Fact, bytes_within, cause};

/// Maximum bytes to read of a file. The largest of these files, CDI specifications, have some kilobytes.
const LIMIT: u64 = 4 << 20;

/// Root of a machine's files: `/`, or the folder where they are mounted or recorded.
#[derive(Clone, Debug)]
pub struct HostTree {
    root: PathBuf,
}

impl HostTree {
    /// The file tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Text of a file, trimmed.
    pub(super) fn text(&self, path: &str) -> Fact<String> {
        self.bytes(path).and_then(|bytes, _| match String::from_utf8(bytes) {
            Ok(text) => Fact::known(text.trim().to_owned()),
            Err(_bytes) => Fact::unknown(format!("{path} is not valid UTF-8")),
        })
    }

    /// Text of a file, parsed.
    pub(super) fn parsed<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.text(path).and_then(|text, _| {
            text.parse()
                .map_or_else(|_error| Fact::unknown(format!("{path} has the unexpected value '{text}'")), Fact::known)
        })
    }

    /// Content of a file.
    pub(super) fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        match File::open(self.at(path)).and_then(|file| bytes_within(file, LIMIT)).transpose() {
            Some(read) => found(path, read),
            None => Fact::unknown(format!("{path} is larger than {LIMIT} bytes")),
        }
    }

    /// Names in a folder, sorted.
    pub(super) fn names(&self, path: &str) -> Fact<Vec<String>> {
        let read = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in self.at(path).read_dir()? {
                // Every name that callers look for is UTF-8.
                names.extend(entry?.file_name().into_string());
            }
            names.sort();
            Ok(names)
        };
        found(path, read())
    }

    /// Target of a symlink, as stored.
    pub(super) fn link(&self, path: &str) -> Fact<String> {
        let target = self.at(path).read_link();
        found(path, target).and_then(|target, _| match target.into_os_string().into_string() {
            Ok(target) => Fact::known(target),
            Err(_target) => Fact::unknown(format!("the target of the symlink {path} is not valid UTF-8")),
        })
    }

    /// Last component of a symlink's target, which names the driver of a device in sysfs.
    pub(super) fn link_name(&self, path: &str) -> Fact<String> {
        self.link(path).and_then(|target, _| target.rsplit('/').next().map(ToOwned::to_owned).into())
    }

    /// Returns true if the path exists, whatever its type.
    pub(super) fn has(&self, path: &str) -> Fact<bool> {
        match found(path, self.at(path).symlink_metadata()) {
            Fact::Seen { .. } => Fact::known(true),
            Fact::Absent => Fact::known(false),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }
}

fn found<T>(path: impl AsRef<Path>, read: io::Result<T>) -> Fact<T> {
    match read {
        Ok(value) => Fact::known(value),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Fact::Absent,
        Err(error) => Fact::unknown(format!("{}: {}", path.as_ref().display(), cause(&error))),
    }
}
