//! Scans of layers that were made before: what a layer holds depends on its bytes and on the scanner alone, so nobody needs to
//! look twice. In a folder of this user ([`Local`]), and, where one is named, in one that a team shares ([`Shared`]).
//!
//! Nothing here is an error of a check: what cannot be reached, read or written is told once, and the layer is scanned.

mod entry;
mod export;
mod key;
mod local;
mod shared;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::layer::scan::LayerScan;

pub use export::{Exported, export, export_all};
pub use key::{ScanKey, Scanner};
pub use local::{DEFAULT_BOUND, LocalCache, StoredScans};
pub use shared::SharedCache;

/// Where scans are looked for and kept. The default is nowhere.
#[derive(Debug, Default)]
pub struct ScanCache {
    local: Option<LocalCache>,
    shared: Option<SharedCache>,
    failed: Mutex<CacheFailures>,
}

/// What is not tried again.
#[derive(Debug, Default)]
struct CacheFailures {
    attempts: BTreeSet<(CacheLevel, Act)>,
    /// Texts that nobody was told yet.
    untold: Vec<String>,
}

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
    /// A cache of one level or two. The shared one is asked for what the local one has not.
    pub fn new(local: Option<LocalCache>, shared: Option<SharedCache>) -> Self {
        Self { local, shared, ..Self::default() }
    }

    /// The scan of these bytes, if somebody made it before.
    pub fn get(&self, key: &ScanKey<'_>) -> Option<LayerScan> {
        let name = key.name();
        let kept = self
            .local
            .as_ref()
            .and_then(|local| self.attempt((CacheLevel::Local, Act::Read), local, |local| local.read(&name)));
        if let Some(scan) = kept.flatten().and_then(|bytes| entry::decode(&bytes, key).ok()) {
            return Some(scan);
        }
        let shared = self.shared.as_ref()?;
        let bytes = self.attempt((CacheLevel::Shared, Act::Read), shared, |shared| shared.read(&name))??;
        let scan = entry::decode(&bytes, key).ok()?;
        if let Some(local) = &self.local {
            self.attempt((CacheLevel::Local, Act::Write), local, |local| local.write(&name, &bytes));
        }
        Some(scan)
    }

    /// Keeps the scan of bytes whose digest was verified. One that another try might give otherwise is not kept.
    pub fn put(&self, key: &ScanKey<'_>, scan: &LayerScan) {
        if (self.local.is_none() && self.shared.is_none()) || !scan.is_reproducible() {
            return;
        }
        let Some(bytes) = entry::encode(key, scan) else { return };
        let name = key.name();
        if let Some(local) = &self.local {
            self.attempt((CacheLevel::Local, Act::Write), local, |local| local.write(&name, &bytes));
        }
        if let Some(shared) = &self.shared {
            self.attempt((CacheLevel::Shared, Act::Write), shared, |shared| shared.write(&name, bytes));
        }
    }

    /// What failed since this was asked last, each thing once.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.failed().untold)
    }

    /// Does without what failed before: a server that does not answer would be waited for at each layer. What cannot be read
    /// is not written to either.
    fn attempt<P: fmt::Display, T, E: fmt::Display>(
        &self,
        (level, act): (CacheLevel, Act),
        place: &P,
        work: impl FnOnce(&P) -> Result<T, E>,
    ) -> Option<T> {
        let fails = |act| self.failed().attempts.contains(&(level, act));
        if fails(Act::Read) || fails(act) {
            return None;
        }
        let error = match work(place) {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        let mut failed = self.failed();
        if failed.attempts.insert((level, act)) {
            let verb = if act == Act::Read { "read" } else { "written to" };
            failed
                .untold
                .push(format!("the cache of layer scans {place} cannot be {verb}, and is done without: {error}"));
        }
        None
    }

    fn failed(&self) -> MutexGuard<'_, CacheFailures> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
