//! Scans an unpacked root file system as if it were one layer. Executes nothing and follows no symlink.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::model::{EntryKind, FileOwner, cause, part};

use super::extract::FileContent;
use super::tree::{Mark, Tree, TreeFiles, TreeJobs, TreeName, scan_tree};
use super::{LayerScan, ScanError};

/// Scans the files below `root`. Skips what is mounted in it: other file systems (`/proc`, `/sys`), and bind mounts of
/// the same one.
pub fn scan_folder(root: &Path, jobs: TreeJobs<'_>) -> Result<LayerScan, ScanError> {
    scan_marked(root, |_, _| Ok(Mark::None), jobs)
}

/// Scans a folder whose marks `mark` recognises.
pub(super) fn scan_marked(
    root: &Path,
    mark: impl Fn(&Path, &EntryKind) -> io::Result<Mark>,
    jobs: TreeJobs<'_>,
) -> Result<LayerScan, ScanError> {
    let device = fs::metadata(root).map_err(read(root))?.dev();
    let mount = mount_id(root, AtFlags::empty()).map_err(read(root))?;
    scan_tree(&mut FolderTree { root, device, mount, mark }, jobs)
}

/// A folder on this machine.
struct FolderTree<'a, M> {
    root: &'a Path,
    /// Device of the root. Other devices are mounted in the folder.
    device: u64,
    /// Mount of the root.
    mount: Option<u64>,
    mark: M,
}

impl<M: Fn(&Path, &EntryKind) -> io::Result<Mark>> Tree for FolderTree<'_, M> {
    type Node = PathBuf;
    type Files = FolderFiles;

    const ADVICE: &'static str = "run as a user who can read it";

    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn root(&mut self) -> Result<PathBuf, ScanError> {
        Ok(self.root.to_owned())
    }

    fn list(&mut self, folder: &PathBuf) -> Result<Vec<TreeName<PathBuf>>, ScanError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(read(folder))? {
            paths.push(entry.map_err(read(folder))?.path());
        }
        paths.sort();
        let mut names = Vec::new();
        for path in paths {
            let metadata = fs::symlink_metadata(&path).map_err(read(&path))?;
            let Some(kind) = kind(&path, &metadata).map_err(read(&path))? else { continue };
            let mark = (self.mark)(&path, &kind).map_err(read(&path))?;
            let is_file = kind == EntryKind::File;
            let is_entered = kind == EntryKind::Directory
                && metadata.dev() == self.device
                && mount_id(&path, AtFlags::SYMLINK_NOFOLLOW).map_err(read(&path))? == self.mount;
            names.push(TreeName {
                name: path.file_name().unwrap_or_default().as_bytes().into(),
                mode: metadata.mode() & 0o7777,
                owner: Some(FileOwner { user: metadata.uid(), group: metadata.gid() }),
                size: if is_file { metadata.len() } else { 0 },
                inode: (is_file && metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino())),
                mark,
                is_entered,
                place: (0, 0),
                kind,
                node: path,
            });
        }
        Ok(names)
    }

    fn files(&self) -> FolderFiles {
        FolderFiles { buffer: vec![0; 256 << 10] }
    }
}

/// Opens files on this machine.
struct FolderFiles {
    /// Receives what is read of each file.
    buffer: Vec<u8>,
}

impl TreeFiles for FolderFiles {
    type Node = PathBuf;
    type Error = io::Error;
    type Opened<'f> = FolderFile<'f>;

    fn open(&mut self, file: &PathBuf) -> io::Result<FolderFile<'_>> {
        Ok(FolderFile { file: File::open(file)?, at: 0, buffer: &mut self.buffer })
    }
}

/// Names the path of an error.
fn read(path: &Path) -> impl Fn(io::Error) -> ScanError {
    let path = path.display().to_string();
    move |error| ScanError::Read(io::Error::new(error.kind(), format!("{path}: {}", cause(&error))))
}

/// The mount that a file is in; `None` before Linux 5.8. A bind mount of the same file system has the same device.
fn mount_id(path: &Path, flags: AtFlags) -> io::Result<Option<u64>> {
    let wanted = StatxFlags::MNT_ID;
    let found = statx(CWD, path, flags, wanted)?;
    Ok((found.stx_mask & wanted.bits() != 0).then_some(found.stx_mnt_id))
}

/// Returns `None` for a socket, which an image cannot contain.
fn kind(path: &Path, metadata: &fs::Metadata) -> io::Result<Option<EntryKind>> {
    let kind = metadata.file_type();
    // Linux's encoding of device numbers (makedev(3)).
    let number = metadata.rdev();
    let major = u32::try_from(((number >> 8) & 0xfff) | ((number >> 32) & !0xfff)).unwrap_or(u32::MAX);
    let minor = u32::try_from((number & 0xff) | ((number >> 12) & 0xffff_ff00)).unwrap_or(u32::MAX);
    Ok(if kind.is_dir() {
        Some(EntryKind::Directory)
    } else if kind.is_symlink() {
        Some(EntryKind::Symlink(fs::read_link(path)?.as_os_str().as_bytes().into()))
    } else if kind.is_file() {
        Some(EntryKind::File)
    } else if kind.is_char_device() {
        Some(EntryKind::CharDevice(major, minor))
    } else if kind.is_block_device() {
        Some(EntryKind::BlockDevice(major, minor))
    } else if kind.is_fifo() {
        Some(EntryKind::Fifo)
    } else {
        None
    })
}

/// A file on this machine.
struct FolderFile<'f> {
    file: File,
    /// Offset of the next read.
    at: u64,
    buffer: &'f mut [u8],
}

impl FileContent for FolderFile<'_> {
    type Error = io::Error;

    fn read(&mut self, place: u64) -> io::Result<(u64, &[u8])> {
        if place != self.at {
            self.at = self.file.seek(SeekFrom::Start(place))?;
        }
        let count = loop {
            match self.file.read(self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.at += count as u64;
        Ok((place, part(self.buffer, ..count)?))
    }

    #[expect(clippy::disallowed_methods, reason = "section headers, or names of at most 1 MiB, bound the range")]
    fn peek(&mut self, range: Range<u64>) -> io::Result<Option<Vec<u8>>> {
        let mut found = Vec::new();
        self.file.seek(SeekFrom::Start(range.start))?;
        (&self.file).take(range.end - range.start).read_to_end(&mut found)?;
        // Any other offset makes the next read seek.
        self.at = u64::MAX;
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_mount_share_its_id_and_other_mounts_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let id = |path: &Path| mount_id(path, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert_eq!(id(&inner), id(folder.path()));
        assert!(id(Path::new("/proc")).is_none_or(|proc| Some(proc) != id(folder.path())));
        assert!(mount_id(Path::new("/nonexistent"), AtFlags::empty()).is_err());
    }
}
