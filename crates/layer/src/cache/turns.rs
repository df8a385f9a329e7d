//! Turns: of several images in one process that have a layer in common, the first scans it, and the others find the scan
//! in the cache.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

use model::Digest;

/// The blobs that are scanned now.
#[derive(Debug, Default)]
pub(super) struct ScanTurns {
    taken: Mutex<BTreeSet<Digest>>,
    ended: Condvar,
}

/// The right to scan a blob, until it is dropped.
#[derive(Debug)]
pub struct ScanTurn<'a> {
    turns: &'a ScanTurns,
    digest: Digest,
}

impl ScanTurns {
    /// Waits until nothing else scans this blob.
    pub(super) fn take(&self, digest: &Digest) -> ScanTurn<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while !taken.insert(digest.clone()) {
            taken = self.ended.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        ScanTurn { turns: self, digest: digest.clone() }
    }
}

impl Drop for ScanTurn<'_> {
    fn drop(&mut self) {
        self.turns.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.digest);
        self.turns.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_turn() {
        let digest: Digest = format!("sha256:{}", "a".repeat(64)).parse().unwrap();
        let turns = ScanTurns::default();
        let inside = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _turn = turns.take(&digest);
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }
}
