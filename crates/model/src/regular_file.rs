//! Opening files whose place may hold something else: a FIFO without a writer would block the program for ever.

use std::collections::BTreeSet;
use std::env::current_dir;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::confined::explained;

static IS_KEPT_WITHIN_FOLDER: AtomicBool = AtomicBool::new(false);

/// The device and the number of each regular file that [`open_configured`] opened.
static READ: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// Opens a file for reading if it is a regular one. The error is that of the system, or says what is there instead.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, |kind| kind.is_file())
}

/// Keeps links below the current folder within it, as those of a repository are: in CI, a checkout may have no `.git`.
pub fn keep_within_folder() {
    IS_KEPT_WITHIN_FOLDER.store(true, Ordering::Relaxed);
}

/// Opens a file of the user's or the machine's configuration: a regular file, a device such as `/dev/null`, or a file
/// descriptor of this process (`<(command)`). The caller bounds what is read. Links lead anywhere, also from a home or an
/// `/etc` that git keeps.
pub fn open_configured(path: &Path) -> io::Result<File> {
    let file = if is_inherited(path) {
        File::open(path).map_err(|error| explained(error, path))?
    } else {
        open(path, |kind| kind.is_file() || kind.is_char_device())?
    };
    let metadata = file.metadata()?;
    if metadata.is_file() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert((metadata.dev(), metadata.ino()));
    }
    Ok(file)
}

/// Returns true for a file that [`open_configured`] or [`open_named`] opened: an output must not replace it.
pub fn was_opened(file: &Metadata) -> bool {
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&(file.dev(), file.ino()))
}

fn is_inherited(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd", "/dev/stdin"].iter().any(|folder| path.starts_with(folder))
}

/// Opens a file that an option names, like [`open_configured`]. Whoever writes into a repository can put a link in its place,
/// so a link in a repository that leads outside of it, or into its `.git`, is refused.
pub fn open_named(path: &Path) -> io::Result<File> {
    let file = open_configured(path)?;
    if is_inherited(path) {
        return Ok(file);
    }
    let whole = without_dots(&std::path::absolute(path)?);
    let current = current_dir().ok().filter(|_| IS_KEPT_WITHIN_FOLDER.load(Ordering::Relaxed));
    let repositories = whole.ancestors().filter(|above| above.join(".git").symlink_metadata().is_ok());
    let current = current.as_deref().filter(|folder| whole.starts_with(folder));
    if repositories.chain(current).all(|top| holds(top, &whole)) {
        return Ok(file);
    }
    Err(io::Error::other(
        "a link leads outside of this repository or into its .git\n  help: name the file itself to allow it",
    ))
}

/// Returns true if a file whose path is below a folder is there, without links that lead elsewhere.
fn holds(top: &Path, path: &Path) -> bool {
    let (Ok(real), Ok(real_top)) = (path.canonicalize(), top.canonicalize()) else { return false };
    // Git keeps credentials there.
    let is_of_git = |path: &Path| path.iter().any(|part| part == ".git");
    real.strip_prefix(real_top).is_ok_and(|rest| !is_of_git(rest) || path.strip_prefix(top).is_ok_and(is_of_git))
}

/// An absolute path without `.` and `..`, as it is written: a link may be before them.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

fn open(path: &Path, is_wanted: impl Fn(std::fs::FileType) -> bool) -> io::Result<File> {
    // Without this flag the call would wait for the writer of a FIFO. It does not concern regular files.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    // The system opens no sockets.
    let file =
        opened.map_err(|error| if is(&error, Errno::NXIO) { no_file("a socket") } else { explained(error, path) })?;
    let kind = file.metadata()?.file_type();
    if is_wanted(kind) {
        return Ok(file);
    }
    Err(if kind.is_dir() { Errno::ISDIR.into() } else { no_file(if kind.is_fifo() { "a FIFO" } else { "a device" }) })
}

fn is(error: &io::Error, wanted: Errno) -> bool {
    error.raw_os_error() == Some(wanted.raw_os_error())
}

fn no_file(what: &str) -> io::Error {
    io::Error::other(format!("it is {what}, not a regular file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the standard library creates no FIFO")]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let why = |path: &Path| open_regular(path).unwrap_err().to_string();
        assert_eq!(why(&at("fifo")), "it is a FIFO, not a regular file");
        assert_eq!(why(&at("socket")), "it is a socket, not a regular file");
        assert_eq!(why(Path::new("/dev/zero")), "it is a device, not a regular file");
        assert_eq!(open_regular(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open_regular(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        open_regular(&at("link")).unwrap();
        open_named(Path::new("/dev/null")).unwrap();
        assert!(open_named(&at("fifo")).is_err());
    }

    #[test]
    fn links_lead_out_of_a_repository_only_from_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("home/.git")).unwrap();
        std::fs::write(at("secret"), "x").unwrap();
        std::fs::write(at("home/file"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", at("home/out")).unwrap();
        std::os::unix::fs::symlink("file", at("home/in")).unwrap();
        open_named(&at("home/in")).unwrap();
        assert!(open_named(&at("home/out")).is_err());
        // A home that git keeps may link to files elsewhere.
        open_configured(&at("home/out")).unwrap();
    }
}
