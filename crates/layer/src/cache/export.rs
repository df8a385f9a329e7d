//! Copies scans out of the local cache, so that a team can ship them.

use crate::store::ObjectFolder;
use model::{Limits, cause};

use super::key::{ScanKey, Scanner};
use super::local::LocalCache;
use super::{SHARED, entry};

/// Size of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of scans.
    pub scans: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Exported {
    /// Adds two exports.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { scans: self.scans + other.scans, bytes: self.bytes + other.bytes }
    }
}

/// Copies the scan with this key; `None` if the local cache does not have it.
pub fn export(from: &LocalCache, key: &ScanKey<'_>, to: &ObjectFolder) -> Result<Option<Exported>, String> {
    let name = key.name();
    let bytes = from.read(&name).map_err(|error| format!("{from}: {}", cause(&error)))?;
    let Some(bytes) = bytes.filter(|bytes| entry::decode(bytes, key).is_ok()) else { return Ok(None) };
    put(to, &name, bytes).map(Some)
}

/// Copies all scans that this program made with these limits. Scans of other versions are useless to the recipient.
pub fn export_all(from: &LocalCache, limits: &Limits, to: &ObjectFolder) -> Result<Exported, String> {
    let scanner = Scanner::of(limits);
    let told = |error: std::io::Error| format!("{from}: {}", cause(&error));
    let mut exported = Exported::default();
    for stored in from.stored().map_err(told)?.into_iter().filter(|stored| stored.scanner == scanner) {
        // What came from another user is not passed on as one's own.
        let is_own = |name: &str| !name.ends_with(SHARED);
        let entry = stored.read(from).map_err(told)?;
        let entry = entry.filter(|(name, bytes)| is_own(name) && entry::is_whole(bytes));
        if let Some((name, bytes)) = entry {
            exported = exported.and(put(to, &name, bytes)?);
        }
    }
    Ok(exported)
}

fn put(to: &ObjectFolder, name: &str, bytes: Vec<u8>) -> Result<Exported, String> {
    let size = bytes.len() as u64;
    to.write(name, bytes).map_err(|error| format!("{to}: {error}"))?;
    Ok(Exported { scans: 1, bytes: size })
}
