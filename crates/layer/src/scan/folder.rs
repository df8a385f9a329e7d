//! Scans an unpacked root file system as if it were one layer. Executes nothing and follows no symlink.

mod beneath;

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Stat, StatxFlags, fstat, major, minor, readlinkat, statat, statx};
use rustix::io::Errno;

use model::{EntryKind, FileOwner, cause, part};

use beneath::Beneath;

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
    let beneath = Arc::new(Beneath::open(root).map_err(read(root))?);
    let top = beneath.folder(Path::new("")).map_err(read(root))?;
    let device = fstat(&top).map_err(io::Error::from).map_err(read(root))?.st_dev;
    let mount = mount_id(&top, c"").map_err(read(root))?;
    scan_tree(&mut FolderTree { root, beneath, device, mount, mark }, jobs)
}

/// A folder on this machine.
struct FolderTree<'a, M> {
    root: &'a Path,
    beneath: Arc<Beneath>,
    /// Device of the root. Other devices are mounted in the folder.
    device: u64,
    /// Mount of the root.
    mount: Option<u64>,
    mark: M,
}

impl<M: Fn(&Path, &EntryKind) -> io::Result<Mark>> Tree for FolderTree<'_, M> {
    /// The path below the root.
    type Node = PathBuf;
    type Files = FolderFiles;

    const ADVICE: &'static str = "run as a user who can read it";

    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn root(&mut self) -> Result<PathBuf, ScanError> {
        Ok(PathBuf::new())
    }

    fn list(&mut self, folder: &PathBuf) -> Result<Vec<TreeName<PathBuf>>, ScanError> {
        let full = self.root.join(folder);
        let opened = self.beneath.folder(folder).map_err(read(&full))?;
        let mut names = Vec::new();
        for name in beneath::names(&opened).map_err(read(&full))? {
            let full = full.join(OsStr::from_bytes(name.as_bytes()));
            let stat = statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
            let stat = stat.map_err(read(&full))?;
            let Some(kind) = kind(&opened, &name, &stat).map_err(read(&full))? else { continue };
            let mark = (self.mark)(&full, &kind).map_err(read(&full))?;
            let is_file = kind == EntryKind::File;
            let is_entered = kind == EntryKind::Directory
                && stat.st_dev == self.device
                && mount_id(&opened, &name).map_err(read(&full))? == self.mount;
            names.push(TreeName {
                name: name.as_bytes().into(),
                mode: stat.st_mode & 0o7777,
                owner: Some(FileOwner { user: stat.st_uid, group: stat.st_gid }),
                size: if is_file { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 },
                inode: (is_file && stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
                mark,
                is_entered,
                place: (0, 0),
                kind,
                node: folder.join(OsStr::from_bytes(name.as_bytes())),
            });
        }
        Ok(names)
    }

    fn files(&self) -> FolderFiles {
        FolderFiles { beneath: Arc::clone(&self.beneath), buffer: vec![0; 256 << 10] }
    }
}

/// Opens files on this machine.
struct FolderFiles {
    beneath: Arc<Beneath>,
    /// Receives what is read of each file.
    buffer: Vec<u8>,
}

impl TreeFiles for FolderFiles {
    type Node = PathBuf;
    type Error = io::Error;
    type Opened<'f> = FolderFile<'f>;

    fn open(&mut self, file: &PathBuf) -> io::Result<FolderFile<'_>> {
        Ok(FolderFile { file: self.beneath.file(file)?, at: 0, in_zeros: false, buffer: &mut self.buffer })
    }
}

/// Names the path of an error.
fn read(path: &Path) -> impl Fn(io::Error) -> ScanError {
    let path = path.display().to_string();
    move |error| ScanError::Read(io::Error::new(error.kind(), format!("{path}: {}", cause(&error))))
}

/// The mount that a file of a folder is in, or the folder itself if the name is empty; `None` before Linux 5.8. A bind
/// mount of the same file system has the same device.
fn mount_id(folder: &OwnedFd, name: &CStr) -> io::Result<Option<u64>> {
    let wanted = StatxFlags::MNT_ID;
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH, wanted)?;
    Ok((found.stx_mask & wanted.bits() != 0).then_some(found.stx_mnt_id))
}

/// Returns `None` for a socket, which an image cannot contain.
fn kind(folder: &OwnedFd, name: &CStr, stat: &Stat) -> io::Result<Option<EntryKind>> {
    let number = || (major(stat.st_rdev), minor(stat.st_rdev));
    Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink(readlinkat(folder, name, Vec::new())?.into_bytes().into()),
        FileType::RegularFile => EntryKind::File,
        FileType::CharacterDevice => EntryKind::CharDevice(number().0, number().1),
        FileType::BlockDevice => EntryKind::BlockDevice(number().0, number().1),
        FileType::Fifo => EntryKind::Fifo,
        FileType::Socket | FileType::Unknown => return Ok(None),
    }))
}

/// A file on this machine.
struct FolderFile<'f> {
    file: File,
    /// Offset of the next read.
    at: u64,
    /// True if the last read filled the buffer with zeros, as in a hole.
    in_zeros: bool,
    buffer: &'f mut [u8],
}

impl FolderFile<'_> {
    /// Offset from which on bytes are read: `place`, or the end of the hole at `place`, which may be terabytes long. A
    /// hole at the end of the file is read in its last bytes.
    fn after_hole(&self, place: u64) -> io::Result<u64> {
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(place)) {
            Ok(data) => Ok(data),
            Err(Errno::NXIO) => {
                let size = self.file.metadata()?.len();
                Ok(size.saturating_sub(self.buffer.len() as u64).max(place))
            }
            // The file system does not know its holes.
            Err(_) => Ok(place),
        }
    }
}

impl FileContent for FolderFile<'_> {
    type Error = io::Error;

    fn read(&mut self, place: u64) -> io::Result<(u64, &[u8])> {
        let place = if self.in_zeros { self.after_hole(place)? } else { place };
        if self.in_zeros || place != self.at {
            self.at = self.file.seek(SeekFrom::Start(place))?;
        }
        let count = loop {
            match self.file.read(self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.at += count as u64;
        self.in_zeros = count == self.buffer.len() && self.buffer.iter().all(|byte| *byte == 0);
        Ok((place, part(self.buffer, ..count)?))
    }

    #[expect(clippy::disallowed_methods, reason = "section headers, or names of at most 1 MiB, bound the range")]
    fn peek(&mut self, range: Range<u64>) -> io::Result<Option<Vec<u8>>> {
        let mut found = Vec::new();
        self.file.seek(SeekFrom::Start(range.start))?;
        (&self.file).take(range.end - range.start).read_to_end(&mut found)?;
        // Any other offset makes the next read seek.
        (self.at, self.in_zeros) = (u64::MAX, false);
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use model::{Limits, NoProgress, Progress as _};
    use unpack::pipe::Cancel;

    use super::*;

    #[test]
    fn a_file_of_two_names_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        std::fs::write(&one, "content").unwrap();
        std::fs::hard_link(&one, &other).unwrap();
        let (limits, cancel, meter) = (Limits::default(), Cancel::default(), NoProgress.begin("layer", None));
        let jobs = TreeJobs { threads: NonZeroUsize::MIN, limits: &limits, meter: &*meter, cancel: &cancel };
        assert_eq!(scan_folder(folder.path(), jobs).unwrap().unpacked, 7);
    }

    #[test]
    fn folders_of_one_mount_share_its_id_and_other_mounts_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let id = |path: &Path| mount_id(&Beneath::open(path)?.folder(Path::new(""))?, c"");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let outer = Beneath::open(folder.path()).unwrap().folder(Path::new("")).unwrap();
        assert_eq!(id(&inner).unwrap(), id(folder.path()).unwrap());
        assert_eq!(mount_id(&outer, c"inner").unwrap(), id(&inner).unwrap());
        assert!(id(Path::new("/proc")).unwrap().is_none_or(|proc| Some(proc) != id(&inner).unwrap()));
        assert!(id(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_hole_of_terabytes_takes_a_few_reads() {
        use std::os::unix::fs::FileExt as _;

        const SIZE: u64 = 1 << 42;
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        file.write_all_at(b"middle", SIZE / 2).unwrap();
        let mut content = FolderFile { file, at: 0, in_zeros: false, buffer: &mut vec![1; 1 << 16] };
        let mut at = 0;
        let mut reads = 0;
        let mut shown = Vec::new();
        loop {
            let (offset, bytes) = content.read(at).unwrap();
            assert!(offset >= at);
            let end = offset + bytes.len() as u64;
            if offset <= SIZE / 2 && end > SIZE / 2 {
                shown.extend_from_slice(&bytes[usize::try_from(SIZE / 2 - offset).unwrap()..][..6]);
            }
            if bytes.is_empty() {
                break;
            }
            (at, reads) = (end, reads + 1);
        }
        assert_eq!((at, shown.as_slice()), (SIZE, b"middle".as_slice()));
        assert!(reads < 10, "{reads}");
    }
}
