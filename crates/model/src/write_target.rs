//! Where a file that the user names is written: through links, and in place where another file must not replace it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Maximum number of links that lead to a file, as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// The place behind a path that the user names. No part of it is a link, except for a descriptor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// A regular file, or none yet: a complete file is renamed to it.
    Replaced(PathBuf),
    /// What a rename would destroy, or could not replace: a device, a FIFO, or a file that is mounted.
    InPlace(PathBuf),
    /// A descriptor of a process, such as `/dev/stdout` and the `/dev/fd/63` of `>(command)`.
    Descriptor(PathBuf),
}

impl WriteTarget {
    /// Follows the links of a path, also to a file that does not exist yet.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(name) = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/")) else {
                return Err(Errno::ISDIR.into());
            };
            let named = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = named.canonicalize().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    io::Error::new(error.kind(), format!("there is no folder {}", named.display()))
                }
                _ => error,
            })?;
            let place = folder.join(name);
            if folder.starts_with("/proc") && folder.ends_with("fd") {
                return Ok(Self::Descriptor(place));
            }
            let opened =
                rustix::fs::openat(CWD, &place, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            let found = match opened {
                Ok(found) => found,
                Err(Errno::NOENT) => return Ok(Self::Replaced(place)),
                Err(error) => return Err(error.into()),
            };
            let stat = rustix::fs::fstat(&found)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    if is_planted(stat.st_uid, &folder)? {
                        let why = "another user made this link in a folder that everyone can write to";
                        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                    }
                    let link = rustix::fs::readlinkat(&found, "", Vec::new())?;
                    path = folder.join(std::ffi::OsStr::from_bytes(link.as_bytes()));
                }
                FileType::RegularFile => {
                    let mount = rustix::fs::statx(&found, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
                    let is_mounted =
                        mount.is_ok_and(|mount| mount.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
                    return Ok(if is_mounted { Self::InPlace(place) } else { Self::Replaced(place) });
                }
                FileType::Directory => return Err(Errno::ISDIR.into()),
                FileType::Socket => return Err(io::Error::other("it is a socket, not a regular file")),
                FileType::CharacterDevice | FileType::BlockDevice | FileType::Fifo | FileType::Unknown => {
                    return Ok(Self::InPlace(place));
                }
            }
        }
        Err(Errno::LOOP.into())
    }

    /// The place.
    pub fn path(&self) -> &Path {
        match self {
            Self::Replaced(path) | Self::InPlace(path) | Self::Descriptor(path) => path,
        }
    }

    /// Returns true if a complete file is renamed to it.
    pub fn is_replaced(&self) -> bool {
        matches!(self, Self::Replaced(_))
    }

    /// Opens what is there for writing. What it holds stays until something is written.
    pub fn open_in_place(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true);
        let Self::Descriptor(path) = self else {
            return options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(self.path());
        };
        // Opening the descriptor's file again would write from its start, over what this process and others have written
        // there, and a socket cannot be opened.
        let is_own = Path::new("/proc/self/fd").canonicalize().is_ok_and(|own| path.starts_with(own));
        match path.file_name().and_then(|name| name.to_str()) {
            Some("1") if is_own => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            Some("2") if is_own => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
            _ => options.append(true).open(path),
        }
    }
}

/// Returns true for a link that the kernel does not follow either (proc_sys_fs(5), `protected_symlinks`): in a folder
/// such as `/tmp`, another user could let it lead to a file of this user.
fn is_planted(owner: u32, folder: &Path) -> io::Result<bool> {
    let stat = rustix::fs::stat(folder)?;
    let is_shared = Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX | Mode::WOTH);
    Ok(is_shared && owner != geteuid().as_raw() && owner != stat.st_uid)
}
