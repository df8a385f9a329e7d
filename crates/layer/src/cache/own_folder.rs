//! Whether a folder of the cache belongs to this user alone. What another user can write there would be believed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

/// Bits of a mode that let the group or others write.
const OTHERS_WRITE: u32 = 0o022;

/// Returns true for a folder that may be used, false if there is none. The error says why it may not be used.
pub(super) fn is_own_folder(folder: &Path) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let refuse = |why: &str| Err(io::Error::other(format!("{} {why}", folder.display())));
    let user = geteuid().as_raw();
    if metadata.is_symlink() {
        refuse("is a symbolic link")
    } else if !metadata.is_dir() {
        // Nothing is found in it, and writing fails.
        Ok(false)
    } else if metadata.uid() != user {
        refuse(&format!("belongs to user {}, not to user {user}", metadata.uid()))
    } else if metadata.mode() & OTHERS_WRITE != 0 {
        refuse("can be written by other users: run chmod go-w on it")
    } else {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_a_folder_of_this_user_alone_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("own")).unwrap();
        fs::set_permissions(at("own"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(is_own_folder(&at("own")).unwrap());
        assert!(!is_own_folder(&at("none")).unwrap());
        symlink(at("own"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        let why = |name: &str| is_own_folder(&at(name)).unwrap_err().to_string();
        assert!(why("link").ends_with("/link is a symbolic link"));
        assert!(!is_own_folder(&at("file")).unwrap());
        for mode in [0o777, 0o775, 0o757] {
            fs::set_permissions(at("own"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(why("own").ends_with("can be written by other users: run chmod go-w on it"), "{mode:o}");
        }
        if geteuid().is_root() {
            fs::set_permissions(at("own"), fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(at("own"), Some(12_345), None).unwrap();
            assert!(why("own").contains("belongs to user 12345, not to user 0"));
        }
    }
}
