//! Cache of layer scans. A scan depends only on the layer's bytes and the scanner, so no layer is scanned twice.
//! Scans are kept in a folder of this user ([`LocalCache`]) and, if configured, in one that a team shares
//! ([`ObjectFolder`]).
//!
//! A cache never fails a check: each kind of failure is reported once, and the layer is scanned. After a failure the
//! cache is left alone for a while.

mod breaker;
mod document;
mod entry;
mod export;
mod key;
mod local;
mod own_folder;
mod turn;
mod turns;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::scan::LayerScan;
use crate::store::ObjectFolder;
use model::{Digest, cause};

use breaker::Breaker;
use entry::MOST_STORED;

pub use export::{Exported, export, export_all};
pub use key::{ScanKey, Scanner};
pub use local::{DEFAULT_BOUND, LocalCache, StoredScans};
pub use turns::ScanTurn;

use turns::ScanTurns;

/// Finds and keeps scans. The default has no cache.
#[derive(Debug, Default)]
pub struct ScanCache {
    local: Option<LocalCache>,
    /// Anyone with write access is trusted: an entry replaces the scan of the layer.
    shared: Option<ObjectFolder>,
    trust: CacheTrust,
    breaker: Breaker,
    /// Messages not yet reported.
    unreported: Mutex<Vec<String>>,
    /// Name of this process, if it shares the scans of large layers with others while they are made.
    holder: Option<String>,
    turns: ScanTurns,
}

/// The writers whose scans are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheTrust {
    /// This user only. A shared cache gets new scans, but is not read, and neither is what came from one before.
    Own,
    /// Also those who can write to the shared cache.
    #[default]
    Shared,
}

/// A scan from the cache.
#[derive(Debug)]
pub struct CachedScan {
    /// The scan.
    pub scan: LayerScan,
    /// True if another user may have made it: it came from a shared cache, in this run or an earlier one.
    pub is_shared: bool,
}

/// Marks the entries of the local cache that came from a shared one, in their names.
const SHARED: &str = ".shared";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CacheLevel {
    Local,
    Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Read,
    Write,
}

impl ScanCache {
    /// A cache of up to two levels. The shared cache is read on a local miss.
    pub fn new(local: Option<LocalCache>, shared: Option<ObjectFolder>) -> Self {
        Self { local, shared, ..Self::default() }
    }

    /// The folder of this user's cache and the shared cache, of those that there are.
    pub const fn places(&self) -> (Option<&LocalCache>, Option<&ObjectFolder>) {
        (self.local.as_ref(), self.shared.as_ref())
    }

    /// Believes only these writers.
    #[must_use]
    pub fn trusting(self, trust: CacheTrust) -> Self {
        Self { trust, ..self }
    }

    /// Waits until no other image of this process scans this blob: then its scan is cached. `None` without a cache,
    /// which would make the wait useless.
    pub fn turn(&self, digest: &Digest) -> Option<ScanTurn<'_>> {
        (self.local.is_some() || self.shared.is_some()).then(|| self.turns.take(digest))
    }

    /// Returns the cached scan of these bytes.
    pub fn get(&self, key: &ScanKey<'_>) -> Option<CachedScan> {
        let name = key.name();
        let local = |name: &str| self.read_local(name).and_then(|bytes| entry::decode(&bytes, key).ok());
        if let Some(scan) = local(&name) {
            return Some(CachedScan { scan, is_shared: false });
        }
        if self.trust == CacheTrust::Own {
            return None;
        }
        let kept = format!("{name}{SHARED}");
        if let Some(scan) = local(&kept) {
            return Some(CachedScan { scan, is_shared: true });
        }
        let shared = self.shared.as_ref()?;
        let bytes =
            self.attempt((CacheLevel::Shared, Act::Read), shared, |shared| shared.read(&name, MOST_STORED))??;
        let scan = entry::decode(&bytes, key).ok()?;
        if let Some(local) = &self.local {
            self.attempt((CacheLevel::Local, Act::Write), local, |local| {
                local.write(&kept, &bytes).map_err(|error| cause(&error))
            });
        }
        Some(CachedScan { scan, is_shared: true })
    }

    /// Keeps the scan of bytes whose digest was verified. A scan that another run might not reproduce is not kept.
    pub fn put(&self, key: &ScanKey<'_>, scan: &LayerScan) {
        if (self.local.is_none() && self.shared.is_none()) || !scan.is_reproducible() {
            return;
        }
        let Some(bytes) = entry::encode(key, scan) else { return };
        let name = key.name();
        if let Some(local) = &self.local {
            self.attempt((CacheLevel::Local, Act::Write), local, |local| {
                local.write(&name, &bytes).map_err(|error| cause(&error))
            });
        }
        if let Some(shared) = &self.shared {
            self.attempt((CacheLevel::Shared, Act::Write), shared, |shared| shared.write(&name, bytes));
        }
    }

    /// Takes the failures since the last call, each reported once.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.unreported())
    }

    fn read_local(&self, name: &str) -> Option<Vec<u8>> {
        self.attempt((CacheLevel::Local, Act::Read), self.local.as_ref()?, |local| {
            local.read(name).map_err(|error| cause(&error))
        })?
    }

    /// Accesses a cache, unless that failed a short time ago.
    fn attempt<P: fmt::Display, T, E: fmt::Display>(
        &self,
        (level, act): (CacheLevel, Act),
        place: &P,
        work: impl FnOnce(&P) -> Result<T, E>,
    ) -> Option<T> {
        if self.breaker.is_open(level, act) {
            return None;
        }
        match work(place) {
            Ok(done) => {
                self.breaker.succeeded(level, act);
                Some(done)
            }
            Err(error) => {
                if self.breaker.failed(level, act) {
                    let what = if act == Act::Read { "used" } else { "written to" };
                    self.unreported().push(format!("cache {place} not {what}: {error}"));
                }
                None
            }
        }
    }

    fn unreported(&self) -> MutexGuard<'_, Vec<String>> {
        self.unreported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
