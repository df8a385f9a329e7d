//! Scans a layer as overlayfs stores it: a folder with marks of its own (Linux,
//! `Documentation/filesystems/overlayfs.rst`).

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::lgetxattr;
use rustix::io::Errno;

use model::{EntryKind, part, text_within};

use super::folder::scan_marked;
use super::tree::{Mark, TreeJobs};
use super::{LayerScan, ScanError};

/// Attributes of folders that do not hold all of their layer: renamed directories, and files without their content.
const ELSEWHERE: [&str; 2] = ["redirect", "metacopy"];

/// The extended attributes in which an overlayfs keeps its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayMarks {
    /// `trusted.overlay.*`, which only root on the host itself can see.
    Trusted,
    /// `user.overlay.*`, for engines without root.
    User,
}

impl OverlayMarks {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::User => "user",
        }
    }
}

/// The most bytes of a file of /proc. `uid_map` has at most 340 lines (user_namespaces(7)).
const PROC_BYTES: u64 = 64 << 10;

/// What the kernel says about the user of this process. It is read once, because a sandbox has no access to it later.
#[derive(Debug)]
pub struct OwnProcess {
    /// `/proc/self/status`.
    status: String,
    /// `/proc/self/uid_map`.
    users: String,
}

impl OwnProcess {
    /// Reads it, or returns what was read before.
    pub fn read() -> Result<&'static Self, io::ErrorKind> {
        static READ: OnceLock<Result<OwnProcess, io::ErrorKind>> = OnceLock::new();
        let file =
            |name: &str| text_within(&Path::new("/proc/self").join(name), PROC_BYTES).map_err(|error| error.kind());
        let read = || Ok(Self { status: file("status")?, users: file("uid_map")? });
        READ.get_or_init(read).as_ref().map_err(|kind| *kind)
    }

    /// Returns true if user 0 of this process is that of the machine, and false in a user namespace.
    pub fn has_users_of_the_machine(&self) -> bool {
        self.users.split_whitespace().eq(["0", "0", "4294967295"])
    }
}

/// Scans a layer in the folder where an engine stores it. Its content cannot be verified.
pub fn scan_overlay(root: &Path, marks: OverlayMarks, jobs: TreeJobs<'_>) -> Result<LayerScan, ScanError> {
    if marks == OverlayMarks::Trusted {
        let OwnProcess { status, users } = OwnProcess::read().map_err(|kind| ScanError::Read(kind.into()))?;
        if !sees_marks(status, users) {
            let what = "only root on the host itself can see the marks of overlayfs: run as root, or check the image \
                        through its engine or registry";
            return Err(ScanError::Read(io::Error::new(io::ErrorKind::PermissionDenied, what)));
        }
    }
    scan_marked(root, |path, kind| mark(path, kind, marks), jobs)
}

fn mark(path: &Path, kind: &EntryKind, marks: OverlayMarks) -> io::Result<Mark> {
    if *kind == EntryKind::CharDevice(0, 0) {
        return Ok(Mark::Whiteout);
    }
    if !matches!(kind, EntryKind::Directory | EntryKind::File) {
        return Ok(Mark::None);
    }
    for name in ELSEWHERE {
        if attribute(path, name, marks)?.is_some() {
            return Err(io::Error::other(format!(
                "overlayfs stores a part of it elsewhere ({name}), which is not supported"
            )));
        }
    }
    match attribute(path, "opaque", marks)?.as_deref() {
        None => Ok(Mark::None),
        Some(b"y") if *kind == EntryKind::Directory => Ok(Mark::Opaque),
        Some(_) => Err(io::Error::other("the value of its overlayfs attribute 'opaque' is unknown")),
    }
}

/// Reads the attribute `PREFIX.overlay.NAME`.
fn attribute(path: &Path, name: &str, marks: OverlayMarks) -> io::Result<Option<Vec<u8>>> {
    let mut value = [0; 256];
    match lgetxattr(path, format!("{}.overlay.{name}", marks.prefix()), &mut value) {
        Ok(count) => Ok(Some(part(&value, ..count)?.to_vec())),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        // The attribute exists, but is longer than any known value.
        Err(Errno::RANGE) => Ok(Some(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if this process can see attributes that begin with `trusted.`; to others they do not seem to exist
/// (xattr(7)).
fn sees_marks(status: &str, users: &str) -> bool {
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    let capable =
        effective.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & CAP_SYS_ADMIN != 0);
    capable && users.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use model::{Limits, NoProgress, Progress as _};
    use std::num::NonZeroUsize;
    use unpack::pipe::Cancel;

    #[test]
    fn marks_become_whiteouts_of_a_layer() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["etc/sub", "usr"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["etc/gone", "etc/sub/new", "usr/file"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        // Only root can create the real attributes and devices.
        let mark = |path: &Path, _: &EntryKind| {
            Ok(if path.ends_with("etc/gone") {
                Mark::Whiteout
            } else if path.ends_with("etc/sub") {
                Mark::Opaque
            } else {
                Mark::None
            })
        };
        let meter = NoProgress.begin("layer", None);
        let limits = Limits::default();
        let cancel = Cancel::default();
        let jobs = TreeJobs { threads: NonZeroUsize::MIN, limits: &limits, meter: &*meter, cancel: &cancel };
        let scan = scan_marked(folder.path(), mark, jobs).unwrap();
        let mut paths: Vec<_> = scan.entries.iter().map(|entry| entry.path.to_string()).collect();
        paths.sort();
        let expected =
            ["/etc", "/etc/.wh.gone", "/etc/sub", "/etc/sub/.wh..wh..opq", "/etc/sub/new", "/usr", "/usr/file"];
        assert_eq!(paths, expected);
    }

    #[test]
    fn plain_files_have_no_marks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for marks in [OverlayMarks::Trusted, OverlayMarks::User] {
            assert!(matches!(mark(file.path(), &EntryKind::File, marks), Ok(Mark::None)));
            assert!(matches!(mark(file.path(), &EntryKind::CharDevice(0, 0), marks), Ok(Mark::Whiteout)));
            assert!(matches!(mark(file.path(), &EntryKind::CharDevice(1, 3), marks), Ok(Mark::None)));
            assert!(mark(Path::new("/nonexistent"), &EntryKind::File, marks).is_err());
        }
    }

    #[test]
    fn only_root_on_the_host_sees_marks() {
        let status = |mask: &str| format!("Name:\tncclcheck\nCapEff:\t{mask}\n");
        let machine = "         0          0 4294967295\n";
        for (mask, users, sees) in [
            ("000001ffffffffff", machine, true),
            ("0000000000200000", machine, true),
            ("0000000000000000", machine, false),
            ("000001ffffdfffff", machine, false),
            ("000001ffffffffff", "0 1000 1\n1 100000 65536\n", false),
        ] {
            assert_eq!(sees_marks(&status(mask), users), sees, "{mask} {users}");
        }
        assert!(!sees_marks("", machine));
    }
}
