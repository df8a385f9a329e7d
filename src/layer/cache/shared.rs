//! Scans that a team shares: in S3, Google Cloud Storage, Azure, on a web server or in a folder. Anyone with write
//! access is trusted: an entry replaces the scan of the layer.

use std::fmt;

use crate::model::Environment;
use crate::store::ObjectFolder;

use super::entry::MOST_STORED;

/// A cache at a URL. The first access connects.
#[derive(Debug)]
pub struct SharedCache(ObjectFolder);

impl SharedCache {
    /// The cache at a URL or at the path of a folder.
    pub fn new(place: &str, environment: &Environment) -> Result<Self, String> {
        ObjectFolder::new(place, environment).map(Self)
    }

    /// The store of the cache.
    pub(crate) const fn objects(&self) -> &ObjectFolder {
        &self.0
    }

    /// The bytes of one entry; `None` on a miss.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.0.read(name, MOST_STORED)
    }

    /// Writes an entry.
    pub(super) fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), String> {
        self.0.write(name, bytes)
    }
}

impl fmt::Display for SharedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
