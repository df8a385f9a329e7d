//! Large layers are scanned once by all processes that share a cache: one scans, the others wait for its scan.

use std::thread;
use std::time::Duration;

use crate::store::lease::Leases;
use unpack::pipe::Cancel;

use super::{ScanCache, ScanKey};

/// Size of a layer from which waiting pays, in bytes. Smaller ones are scanned in less time than a few requests take.
const LARGE: u64 = 64 << 20;

/// Length of a lease. The process that holds it renews it three times as often.
const LENGTH: Duration = Duration::from_mins(1);

/// The pause between two looks for the scan of another process.
const PAUSE: Duration = Duration::from_secs(1);

/// Folder of the leases in the shared cache.
const FOLDER: &str = "leases";

impl ScanCache {
    /// Makes this process and others with leases scan each large layer once. `holder` is a name that no other process
    /// has.
    #[must_use]
    pub fn with_leases(self, holder: String) -> Self {
        Self { holder: Some(holder), ..self }
    }

    /// Scans a layer by `scan`, if no other process does. Otherwise waits for that scan and returns `None` once the
    /// cache has it. A cache that fails is not a reason to wait.
    pub fn once<T>(&self, key: &ScanKey<'_>, cancel: &Cancel, scan: impl FnOnce() -> T) -> Option<T> {
        let shared = self.shared.as_ref().filter(|shared| shared.has_create() && key.blob.size >= LARGE);
        let (Some(holder), Some(shared)) = (&self.holder, shared) else { return Some(scan()) };
        let leases = Leases::new(shared, FOLDER, holder, LENGTH);
        let name = key.name();
        loop {
            match leases.take(&name) {
                Ok(Some(held)) => {
                    // The other process may have finished in between.
                    if !held.is_first() && self.get(key).is_some() {
                        return None;
                    }
                    return Some(leases.hold(&held, || (scan(), true)));
                }
                Ok(None) if !cancel.is_cancelled() => thread::sleep(PAUSE),
                Ok(None) | Err(_) => return Some(scan()),
            }
            if self.get(key).is_some() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::scan::{Compression, LayerScan};
    use crate::store::ObjectFolder;
    use model::{BlobRef, Environment, Limits};

    use super::*;

    fn scan() -> LayerScan {
        LayerScan {
            compression: Compression::None,
            unpacked: LARGE,
            diff_id: None,
            entries: Vec::new(),
            found: BTreeMap::new(),
        }
    }

    #[test]
    fn a_large_layer_is_scanned_once() {
        let folder = tempfile::tempdir().unwrap();
        let scans = AtomicUsize::new(0);
        let digest: model::Digest = format!("sha256:{}", "a".repeat(64)).parse().unwrap();
        let scanned = |size: u64| {
            thread::scope(|scope| {
                for number in 0..4 {
                    let scans = &scans;
                    let digest = digest.clone();
                    let folder = folder.path();
                    scope.spawn(move || {
                        let shared = ObjectFolder::new(folder.to_str().unwrap(), &Environment::default()).unwrap();
                        let cache = ScanCache::new(None, Some(shared)).with_leases(number.to_string());
                        let blob = BlobRef { digest, size };
                        let limits = Limits::default();
                        let key = ScanKey { blob: &blob, limits: &limits };
                        let done = cache.once(&key, &Cancel::default(), || {
                            scans.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(300));
                            cache.put(&key, &scan());
                        });
                        assert!(done.is_some() || cache.get(&key).map(|cached| cached.scan) == Some(scan()));
                    });
                }
            });
            scans.swap(0, Ordering::Relaxed)
        };
        assert_eq!(scanned(LARGE), 1);
        assert_eq!(scanned(LARGE - 1), 4, "a small layer is not worth waiting for");
    }
}
