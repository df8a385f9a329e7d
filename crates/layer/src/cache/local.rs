//! Scans in a folder of this user. Several processes may use it at once: a file appears whole or not at all, and a
//! process treats a removed file as a cache miss.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::entry::MOST_STORED;
use super::key::Scanner;
use super::own_folder::is_own_folder;
use model::open_regular;

/// Default size limit of the cache, in bytes.
pub const DEFAULT_BOUND: u64 = 1 << 30;

/// Prefix of temporary names, which files have until they are complete.
const PREFIX: &str = ".new-";

/// Age at which a temporary file counts as abandoned by its writer.
const ABANDONED: Duration = Duration::from_hours(1);

/// A folder of scans.
#[derive(Debug)]
pub struct LocalCache {
    folder: PathBuf,
    bound: u64,
    /// Bytes in the folder, as far as this process knows. Writes by other processes are counted when the folder is
    /// full.
    known: Mutex<Option<u64>>,
}

/// A scan in the folder, with its path.
#[derive(Clone, Debug)]
pub struct StoredScans {
    /// The scanner that produced it.
    pub scanner: Scanner,
    /// Size on disk, in bytes.
    pub size: u64,
    /// Time of the last write or cache hit.
    pub used: SystemTime,
    path: PathBuf,
}

impl LocalCache {
    /// The cache in this folder, which the first write creates. When it exceeds `bound` bytes, the least recently used
    /// scans are removed.
    pub fn new(folder: impl Into<PathBuf>, bound: u64) -> Self {
        Self { folder: folder.into(), bound, known: Mutex::default() }
    }

    /// The folder of the cache.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Size limit in bytes.
    pub const fn bound(&self) -> u64 {
        self.bound
    }

    /// Makes the folder, without access for other users (XDG Base Directory Specification: 0700).
    pub fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// All scans in the folder, least recently used first.
    pub fn stored(&self) -> io::Result<Vec<StoredScans>> {
        let mut stored = Vec::new();
        for folder in self.scanners()? {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(scanner) = Scanner::of_folder(&name) else { continue };
            for path in list(&folder)? {
                // Another process may have removed it by now.
                let Some(metadata) = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file) else { continue };
                let used = metadata.modified()?;
                stored.push(StoredScans { scanner: scanner.clone(), size: metadata.len(), used, path });
            }
        }
        stored.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        Ok(stored)
    }

    /// Removes the scans that match `unwanted` and returns them.
    pub fn remove(&self, unwanted: impl Fn(&StoredScans) -> bool) -> io::Result<Vec<StoredScans>> {
        let mut removed = Vec::new();
        for stored in self.stored()?.into_iter().filter(unwanted) {
            if gone(fs::remove_file(&stored.path))? {
                removed.push(stored);
            }
        }
        for folder in self.scanners()? {
            // A folder that is not empty stays.
            let _ = fs::remove_dir(folder);
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(removed)
    }

    /// The folders of scanners. One that is a link, or belongs to another user, is not ours.
    fn scanners(&self) -> io::Result<Vec<PathBuf>> {
        if !self.is_own()? {
            return Ok(Vec::new());
        }
        let is_ours = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            Scanner::of_folder(&name).is_some() && is_own_folder(folder).unwrap_or(false)
        };
        Ok(list(&self.folder)?.into_iter().filter(is_ours).collect())
    }

    /// Returns true if the cache exists and belongs to this user alone, with the folder around it.
    fn is_own(&self) -> io::Result<bool> {
        let around = self.folder.parent().filter(|parent| parent.ends_with("ncclcheck"));
        Ok(around.map_or(Ok(true), is_own_folder)? && is_own_folder(&self.folder)?)
    }

    /// The bytes of one entry, which becomes the most recently used one; `None` on a miss.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.folder.join(name);
        if !self.is_own()? || !path.parent().map_or(Ok(true), is_own_folder)? {
            return Ok(None);
        }
        let file = match open_regular(&path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        io::copy(&mut (&file).take(MOST_STORED + 1), &mut bytes)?;
        // In a read-only folder the order of use does not change.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(bytes))
    }

    /// Writes an entry, replacing an existing one.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(&self.folder);
        // Tries twice: a process that clears the cache may remove the empty folder between the two steps.
        let mut tried = self.write_in(folder, &path, bytes);
        if tried.as_ref().is_err_and(is_missing) {
            tried = self.write_in(folder, &path, bytes);
        }
        tried?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let total = match *known {
            Some(total) => total.saturating_add(bytes.len() as u64),
            None => self.stored()?.iter().map(|stored| stored.size).sum(),
        };
        *known = Some(if total > self.bound { self.shrink()? } else { total });
        Ok(())
    }

    fn write_in(&self, folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Other users get no access (XDG Base Directory Specification: 0700).
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        self.is_own()?;
        is_own_folder(folder)?;
        // Temporary files lie next to the scanners' folders: inside one they would be counted.
        let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Removes the least recently used scans until nine tenths of the limit are left, so that not every write shrinks
    /// again.
    fn shrink(&self) -> io::Result<u64> {
        for path in list(&self.folder)? {
            let is_ours = path.file_name().unwrap_or_default().to_string_lossy().starts_with(PREFIX);
            let age = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            if is_ours && matches!(age, Ok(Ok(age)) if age > ABANDONED) {
                gone(fs::remove_file(&path))?;
            }
        }
        let stored = self.stored()?;
        let mut total: u64 = stored.iter().map(|stored| stored.size).sum();
        for stored in stored {
            if total <= self.bound / 10 * 9 {
                break;
            }
            gone(fs::remove_file(&stored.path))?;
            total = total.saturating_sub(stored.size);
        }
        Ok(total)
    }
}

impl fmt::Display for LocalCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.display())
    }
}

impl StoredScans {
    /// The entry's name, which is the same in every cache, and its bytes; `None` if it has been removed.
    pub(super) fn read(&self, local: &LocalCache) -> io::Result<Option<(String, Vec<u8>)>> {
        let name = self.path.strip_prefix(&local.folder).unwrap_or(&self.path).to_string_lossy().into_owned();
        Ok(local.read(&name)?.map(|bytes| (name, bytes)))
    }
}

/// The paths in a folder; empty if the folder does not exist.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns true if this process removed the file, and not another one.
fn gone(removed: io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;
