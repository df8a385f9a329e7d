//! Files below a folder that another process may change at the same time: nothing swapped for a link leads outside of it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// An open folder. Paths are relative to it, and are resolved by its descriptor.
#[derive(Debug)]
pub(super) struct Beneath(OwnedFd);

impl Beneath {
    /// Opens the folder at a path of this process, which may be a link.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a folder. No part of the path may be a link.
    pub(super) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(self.at(path, OFlags::DIRECTORY)?)
    }

    /// Opens a regular file. No part of the path may be a link.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        // A FIFO may have replaced the file, and would be waited for.
        let file = File::from(self.at(path, OFlags::NONBLOCK)?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(file);
        }
        let what = if kind.is_fifo() { "a FIFO" } else { "something else" };
        Err(io::Error::other(format!("{what} has replaced the file")))
    }

    fn at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&self.0, path, flags, Mode::empty(), resolve) {
            // Linux before 5.6, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(path, flags),
            opened => opened,
        }
    }

    /// Opens each folder of the path below the one before.
    fn step_by_step(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(&self.0, ".", folder, Mode::empty())?;
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { continue };
            let wanted = if parts.peek().is_some() { folder } else { flags };
            at = openat(&at, name, wanted, Mode::empty())?;
        }
        Ok(at)
    }
}

/// The names in a folder, sorted.
pub(super) fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_swapped_for_a_link_leads_outside() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("root/etc/sub")).unwrap();
        fs::create_dir_all(at("outside")).unwrap();
        fs::write(at("outside/nccl.conf"), "secret").unwrap();
        fs::write(at("root/etc/nccl.conf"), "x").unwrap();
        let beneath = Beneath::open(&at("root")).unwrap();
        beneath.file(Path::new("etc/nccl.conf")).unwrap();
        assert_eq!(names(&beneath.folder(Path::new("")).unwrap()).unwrap(), [c"etc".to_owned()]);
        fs::rename(at("root/etc"), at("root/was")).unwrap();
        symlink(at("outside"), at("root/etc")).unwrap();
        let steps = |path: &str| beneath.step_by_step(Path::new(path), OFlags::NOFOLLOW);
        for path in ["etc/nccl.conf", "etc", "../outside/nccl.conf"] {
            assert!(beneath.file(Path::new(path)).is_err(), "{path}");
        }
        assert!(beneath.folder(Path::new("etc")).is_err());
        assert!(steps("etc/nccl.conf").is_err() && steps("etc").is_err());
        steps("was/nccl.conf").unwrap();
        let error = beneath.file(Path::new("was/sub")).unwrap_err().to_string();
        assert_eq!(error, "something else has replaced the file");
    }
}
