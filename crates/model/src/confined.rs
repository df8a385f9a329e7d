//! Whether this process has given up the right to open files that its command does not name. The right is missed where a
//! file is opened, far from where it was given up, so messages about such files need this.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, access};

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Records that a thread of this process may open only some files from now on.
pub fn set_confined() {
    CONFINED.store(true, Ordering::Relaxed);
}

/// Explains the error of opening a file for reading, if the sandbox of this process is the reason. Landlock checks what
/// is opened, and not what access(2) answers (Linux, `security/landlock/fs.c`: `hook_file_open`): a file that may be read
/// and cannot be opened is outside of the sandbox.
pub(super) fn explained(error: io::Error, path: &Path) -> io::Error {
    let is_refused = error.kind() == io::ErrorKind::PermissionDenied && CONFINED.load(Ordering::Relaxed);
    if !is_refused || access(path, Access::READ_OK).is_err() {
        return error;
    }
    let why = "it is outside of the files that this command may read (a link may lead there); NCCLCHECK_SANDBOX=off allows it";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
