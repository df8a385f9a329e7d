//! Scans in a folder of this user. Many processes may use it at once: a file appears whole or not at all, and whoever finds
//! one gone does without.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::entry::MOST_STORED;
use super::key::Scanner;

/// Bytes that are kept where nobody says how many.
pub const DEFAULT_BOUND: u64 = 1 << 30;

/// What files are called before they are whole.
const PREFIX: &str = ".new-";

/// After so long, nobody writes such a file any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// A folder of scans.
#[derive(Debug)]
pub struct LocalCache {
    folder: PathBuf,
    bound: u64,
    /// Bytes in the folder, as far as this process knows; what others write meanwhile is counted when it is full.
    known: Mutex<Option<u64>>,
}

/// A scan in the folder, by its place.
#[derive(Clone, Debug)]
pub struct StoredScans {
    /// What made it.
    pub scanner: Scanner,
    /// Its bytes on disk.
    pub size: u64,
    /// When it was written or last found.
    pub used: SystemTime,
    path: PathBuf,
}

impl LocalCache {
    /// The cache in this folder, which is made when something is kept. Of more than `bound` bytes, those that were not used
    /// for the longest time go.
    pub fn new(folder: impl Into<PathBuf>, bound: u64) -> Self {
        Self { folder: folder.into(), bound, known: Mutex::default() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many bytes are kept at most.
    pub const fn bound(&self) -> u64 {
        self.bound
    }

    /// All that is kept, those first that were not used for the longest time.
    pub fn stored(&self) -> io::Result<Vec<StoredScans>> {
        let mut stored = Vec::new();
        for folder in list(&self.folder)? {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(scanner) = Scanner::of_folder(&name) else { continue };
            for path in list(&folder)? {
                // Somebody else may have removed it meanwhile.
                let Some(metadata) = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file) else { continue };
                let used = metadata.modified()?;
                stored.push(StoredScans { scanner: scanner.clone(), size: metadata.len(), used, path });
            }
        }
        stored.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        Ok(stored)
    }

    /// Removes those that are not wanted any more, and says what they were.
    pub fn remove(&self, unwanted: impl Fn(&StoredScans) -> bool) -> io::Result<Vec<StoredScans>> {
        let mut removed = Vec::new();
        for stored in self.stored()?.into_iter().filter(unwanted) {
            if gone(fs::remove_file(&stored.path))? {
                removed.push(stored);
            }
        }
        for folder in list(&self.folder)? {
            // One that is not empty stays.
            let _ = fs::remove_dir(folder);
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(removed)
    }

    /// The bytes of one entry, which count as used now; `None` where there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.folder.join(name)) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        io::copy(&mut (&file).take(MOST_STORED + 1), &mut bytes)?;
        // In a folder that may only be read, the order of use stays as it is.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(bytes))
    }

    /// Keeps bytes under a name, in place of what is there.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(&self.folder);
        // Twice: whoever clears the cache may remove the empty folder between the two steps.
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
        // Others have no business here (XDG Base Directory Specification: 0700).
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Beside the folders and not in one of them, where it would be counted.
        let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Removes what was not used for the longest time, until nine tenths of the bound are left: not for each new one again.
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
    /// Its name in any cache, and its bytes; `None` where it is gone meanwhile.
    pub(super) fn read(&self, local: &LocalCache) -> io::Result<Option<(String, Vec<u8>)>> {
        let name = self.path.strip_prefix(&local.folder).unwrap_or(&self.path).to_string_lossy().into_owned();
        Ok(local.read(&name)?.map(|bytes| (name, bytes)))
    }
}

/// What is in a folder; nothing where it is none.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether this process removed it, and not another.
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
