//! Leases: of several processes at most one works on something while it lives.
//!
//! A lease is a series of epochs, objects that are created and never overwritten. The process that creates the next
//! epoch holds the lease, and renews it by creating the one after that. A holder that creates no epoch for the length
//! of the lease, as others measure it from the first time they see its last epoch, has lost it. No clocks are compared.
//!
//! A process that was suspended may still work on what another has taken over, so results must be safe to write twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ObjectFolder;

/// More than the size of an epoch, in bytes.
const LONGEST: u64 = 4 << 10;

/// Renewals in the length of a lease: two may fail.
const RENEWALS: u32 = 3;

/// The leases of one holder in one folder of a store.
#[derive(Debug)]
pub struct Leases<'s> {
    store: &'s ObjectFolder,
    folder: String,
    holder: String,
    length: Duration,
    /// The last epoch of each lease of another holder, and when it was first seen.
    seen: Mutex<BTreeMap<String, (u64, Instant)>>,
}

/// A lease that is held.
#[derive(Debug)]
pub struct HeldLease {
    key: String,
    epoch: AtomicU64,
    first: bool,
    is_lost: AtomicBool,
    /// True if the holder before did not end its lease: it was killed, or cannot reach the store.
    pub is_taken_over: bool,
}

/// The content of an epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseEpoch {
    /// The process that created it.
    pub holder: String,
    /// Length of the lease.
    pub seconds: f64,
    /// True if it ends the lease.
    #[serde(default)]
    pub is_end: bool,
}

impl<'s> Leases<'s> {
    /// The leases in a folder for a holder, whose name no other process has.
    pub fn new(store: &'s ObjectFolder, folder: &str, holder: &str, length: Duration) -> Self {
        Self { store, folder: folder.to_owned(), holder: holder.to_owned(), length, seen: Mutex::default() }
    }

    /// Takes a lease; `None` while another process holds it.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn take(&self, key: &str) -> Result<Option<HeldLease>, String> {
        let last = last_epoch(self.store, &format!("{}/{key}", self.folder))?;
        let (epoch, is_taken_over) = match last {
            None => (1, false),
            Some((epoch, Some(content))) if content.is_end => (epoch + 1, false),
            // The answer to an earlier attempt was lost.
            Some((epoch, Some(content))) if content.holder == self.holder => {
                return Ok(Some(HeldLease {
                    key: key.to_owned(),
                    epoch: AtomicU64::new(epoch),
                    first: epoch == 1,
                    is_lost: AtomicBool::new(false),
                    is_taken_over: false,
                }));
            }
            Some((epoch, content)) => {
                let length =
                    content.map_or(self.length, |content| Duration::from_secs_f64(content.seconds.clamp(0.0, 3600.0)));
                if !self.has_expired(key, epoch, length) {
                    return Ok(None);
                }
                (epoch + 1, true)
            }
        };
        let held = HeldLease {
            key: key.to_owned(),
            epoch: AtomicU64::new(epoch),
            first: epoch == 1,
            is_lost: AtomicBool::new(false),
            is_taken_over,
        };
        Ok(self.create(&held, epoch, false)?.then_some(held))
    }

    /// Does work while the lease is renewed. Ends the lease afterwards, unless the work says that no process needs it
    /// again. If the end cannot be written, the lease ends by its length.
    pub fn hold<T>(&self, held: &HeldLease, work: impl FnOnce() -> (T, bool)) -> T {
        let (done, is_done) = channel::<()>();
        let (result, is_needed) = thread::scope(|scope| {
            scope.spawn(move || {
                while is_done.recv_timeout(self.length / RENEWALS) == Err(RecvTimeoutError::Timeout) {
                    let next = held.epoch.load(Ordering::Relaxed) + 1;
                    match self.create(held, next, false) {
                        Ok(true) => held.epoch.store(next, Ordering::Relaxed),
                        Ok(false) => held.is_lost.store(true, Ordering::Relaxed),
                        // The next renewal may succeed.
                        Err(_) => {}
                    }
                    if held.is_lost() {
                        return;
                    }
                }
            });
            let result = work();
            drop(done);
            result
        });
        if is_needed && !held.is_lost() {
            let _ = self.create(held, held.epoch.load(Ordering::Relaxed) + 1, true);
        }
        result
    }

    /// Creates an epoch; returns false if another process did.
    fn create(&self, held: &HeldLease, epoch: u64, is_end: bool) -> Result<bool, String> {
        let content = LeaseEpoch { holder: self.holder.clone(), seconds: self.length.as_secs_f64(), is_end };
        let bytes = serde_json::to_vec(&content).map_err(|error| error.to_string())?;
        let name = format!("{}/{}/{epoch:06}", self.folder, held.key);
        if self.store.create(&name, bytes)? {
            return Ok(true);
        }
        // The answer to an earlier attempt may have been lost.
        let found =
            self.store.read(&name, LONGEST)?.and_then(|bytes| serde_json::from_slice::<LeaseEpoch>(&bytes).ok());
        Ok(found.is_some_and(|found| found.holder == self.holder))
    }

    fn has_expired(&self, key: &str, epoch: u64, length: Duration) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen.entry(key.to_owned()).or_insert_with(|| (epoch, Instant::now()));
        if first.0 != epoch {
            *first = (epoch, Instant::now());
        }
        first.1.elapsed() >= length
    }
}

impl HeldLease {
    /// Returns true if no process held the lease before.
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// Returns true if another process has taken the lease over.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

/// The number of a lease's last epoch and its content, if that can be read; `None` for a lease that was never held.
fn last_epoch(store: &ObjectFolder, folder: &str) -> Result<Option<(u64, Option<LeaseEpoch>)>, String> {
    let Some(last) = store.list(folder)?.pop() else { return Ok(None) };
    let Some(epoch) = last.name.rsplit('/').next().and_then(|number| number.parse().ok()) else { return Ok(None) };
    let content = store.read(&last.name, LONGEST)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok(Some((epoch, content)))
}

#[cfg(test)]
mod tests {
    use model::Environment;

    use super::*;

    fn store(folder: &tempfile::TempDir) -> ObjectFolder {
        ObjectFolder::new(folder.path().to_str().unwrap(), &Environment::default()).unwrap()
    }

    #[test]
    fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let [one, other] = ["one", "other"].map(|name| Leases::new(&store, "lease", name, Duration::from_mins(1)));
        let held = one.take("a").unwrap().unwrap();
        assert!(!held.is_taken_over);
        assert!(other.take("a").unwrap().is_none() && other.take("b").unwrap().is_some());
        one.hold(&held, || ((), true));
        assert!(!other.take("a").unwrap().unwrap().is_taken_over, "a lease that was ended is free");
    }

    #[test]
    fn a_lease_without_renewal_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let length = Duration::from_millis(150);
        let [one, other] = ["one", "other"].map(|name| Leases::new(&store, "lease", name, length));
        let held = one.take("a").unwrap().unwrap();
        // A lease that is renewed never expires.
        one.hold(&held, || {
            let begun = Instant::now();
            while begun.elapsed() < length * 4 {
                assert!(other.take("a").unwrap().is_none());
                thread::sleep(length / 10);
            }
            ((), false)
        });
        assert!(other.take("a").unwrap().is_none(), "it is measured from the first sight");
        thread::sleep(length * 2);
        assert!(other.take("a").unwrap().unwrap().is_taken_over);
        assert!(one.take("a").unwrap().is_none());
    }

    #[test]
    fn of_many_only_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let taken = thread::scope(|scope| {
            let try_it = |number: usize| {
                let store = &store;
                scope.spawn(move || {
                    Leases::new(store, "lease", &number.to_string(), Duration::from_mins(1))
                        .take("a")
                        .unwrap()
                        .is_some()
                })
            };
            let threads: Vec<_> = (0..8).map(try_it).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        });
        assert_eq!(taken, 1);
    }
}
