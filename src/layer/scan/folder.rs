//! Scans an unpacked root file system as if it were one layer. Executes nothing and follows no symlink.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::model::{Ambiguities, Entry, EntryKind, Gap, ImagePath, Limits, Meter, OverLimit, cause, part};
use unpack::pipe::Cancel;

use super::extract::{FileContent, look};
use super::{Compression, EXTRACTORS, LayerScan, ScanError};

/// Scans the files below `root`. Skips what is mounted in it: other file systems (`/proc`, `/sys`), and bind mounts of
/// the same one.
pub fn scan_folder(root: &Path, limits: &Limits, meter: &dyn Meter, cancel: &Cancel) -> Result<LayerScan, ScanError> {
    scan_tree(root, |_, _| Ok(Mark::None), limits, meter, cancel)
}

/// Meaning of a file that is not content of its folder, but marks other files.
pub(super) enum Mark {
    None,
    /// The path does not exist, whatever lower layers contain.
    Whiteout,
    /// The directory hides the contents of lower layers.
    Opaque,
}

/// Scans a folder whose marks `mark` recognises.
pub(super) fn scan_tree(
    root: &Path,
    mark: impl Fn(&Path, &EntryKind) -> io::Result<Mark>,
    limits: &Limits,
    meter: &dyn Meter,
    cancel: &Cancel,
) -> Result<LayerScan, ScanError> {
    let read = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| ScanError::Read(io::Error::new(error.kind(), format!("{path}: {}", cause(&error))))
    };
    let device = fs::metadata(root).map_err(read(root))?.dev();
    let mount = mount_id(root, AtFlags::empty()).map_err(read(root))?;
    let mut scan = LayerScan {
        compression: Compression::None,
        unpacked: 0,
        diff_id: None,
        entries: Vec::new(),
        found: BTreeMap::new(),
        // A folder holds no tar: engines have unpacked it.
        ambiguities: Some(Ambiguities::default()),
    };
    let mut inodes = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        let mut names: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&folder).map_err(read(&folder))? {
            names.push(entry.map_err(read(&folder))?.path());
        }
        names.sort();
        for path in names {
            if cancel.is_cancelled() {
                return Err(ScanError::Read(io::Error::other("cancelled")));
            }
            let metadata = fs::symlink_metadata(&path).map_err(read(&path))?;
            let inside = path.strip_prefix(root).unwrap_or(&path);
            let name = ImagePath::normalise(inside.as_os_str().as_bytes());
            let kind = kind(&path, &metadata).map_err(read(&path))?;
            let Some(kind) = kind else { continue };
            let marker = |path: ImagePath| Entry { path, kind: EntryKind::File, mode: 0, size: 0 };
            match mark(&path, &kind).map_err(read(&path))? {
                Mark::None => {}
                // Layers spell it this way (OCI image-spec, `layer.md`, "Whiteouts").
                Mark::Opaque => scan.entries.push(marker(name.join(b".wh..wh..opq"))),
                Mark::Whiteout => {
                    let hidden = [b".wh.", name.file_name()].concat();
                    scan.entries.push(marker(name.parent().join(&hidden)));
                    continue;
                }
            }
            if kind == EntryKind::Directory
                && metadata.dev() == device
                && mount_id(&path, AtFlags::SYMLINK_NOFOLLOW).map_err(read(&path))? == mount
            {
                waiting.push(path.clone());
            }
            let inode = (metadata.dev(), metadata.ino());
            let known =
                (kind == EntryKind::File && metadata.nlink() > 1).then(|| inodes.insert(inode, name.clone())).flatten();
            let size = if kind == EntryKind::File { metadata.len() } else { 0 };
            let kind = known.map_or(kind, EntryKind::Hardlink);
            let entry = Entry { path: name, kind, mode: metadata.mode() & 0o7777, size };
            if entry.kind == EntryKind::File && size > 0 {
                let looked = open(&path).and_then(|mut file| look(&mut file, EXTRACTORS, &entry, limits));
                let answers = looked.unwrap_or_else(|error| {
                    vec![Err(Gap::new(format!("{}: {}", entry.path, cause(&error)))
                        .settled_by("run as a user who can read it"))]
                });
                if !answers.is_empty() {
                    scan.found.insert(scan.entries.len(), answers);
                }
                meter.add(size);
                scan.unpacked += size;
            }
            scan.entries.push(entry);
            if scan.entries.len() as u64 > limits.entries {
                let what = format!("{} has {} entries", root.display(), scan.entries.len());
                return Err(ScanError::Limit(OverLimit::new(what, "entries", limits.entries).advice()));
            }
        }
    }
    Ok(scan)
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
struct FolderFile {
    file: File,
    /// Offset of the next read.
    at: u64,
    buffer: Vec<u8>,
}

impl FileContent for FolderFile {
    type Error = io::Error;

    fn read(&mut self, place: u64) -> io::Result<(u64, &[u8])> {
        if place != self.at {
            self.at = self.file.seek(SeekFrom::Start(place))?;
        }
        let count = loop {
            match self.file.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.at += count as u64;
        Ok((place, part(&self.buffer, ..count)?))
    }
}

fn open(path: &Path) -> io::Result<FolderFile> {
    Ok(FolderFile { file: File::open(path)?, at: 0, buffer: vec![0; 256 << 10] })
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
