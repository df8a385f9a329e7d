//! Pauses after failures of a cache: an unresponsive server would cost its timeout at each layer, but a worker that
//! lives for hours must not do without the cache for the rest of its life.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Act, CacheLevel};

/// The first pause; it doubles with each further failure.
const FIRST: Duration = Duration::from_secs(30);

/// The longest pause.
const LONGEST: Duration = Duration::from_mins(10);

/// The pauses of a cache.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    pauses: Mutex<BTreeMap<(CacheLevel, Act), CachePause>>,
}

#[derive(Debug)]
struct CachePause {
    until: Instant,
    length: Duration,
}

impl Breaker {
    /// Returns true during a pause. A cache that cannot be read is not written to either.
    pub(super) fn is_open(&self, level: CacheLevel, act: Act) -> bool {
        self.is_open_at(Instant::now(), level, act)
    }

    fn is_open_at(&self, now: Instant, level: CacheLevel, act: Act) -> bool {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_paused = |act| pauses.get(&(level, act)).is_some_and(|pause| now < pause.until);
        is_paused(Act::Read) || is_paused(act)
    }

    /// Begins a pause; returns true for the first one since the last success.
    pub(super) fn failed(&self, level: CacheLevel, act: Act) -> bool {
        self.failed_at(Instant::now(), level, act)
    }

    fn failed_at(&self, now: Instant, level: CacheLevel, act: Act) -> bool {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pauses.get(&(level, act)).map(|pause| pause.length);
        let length = before.map_or(FIRST, |length| (length * 2).min(LONGEST));
        pauses.insert((level, act), CachePause { until: now + length, length });
        before.is_none()
    }

    /// Ends the series of failures.
    pub(super) fn succeeded(&self, level: CacheLevel, act: Act) {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).remove(&(level, act));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_with_a_success() {
        let level = CacheLevel::Shared;
        let read = Act::Read;
        let write = Act::Write;
        let breaker = Breaker::default();
        let start = Instant::now();
        let at = |pauses: u32| start + FIRST * pauses / 2;
        let is_open = |now, act| breaker.is_open_at(now, level, act);
        assert!(!is_open(start, read));
        assert!(breaker.failed_at(start, level, read));
        assert!(is_open(at(1), read) && is_open(at(1), write), "it is not written to either");
        assert!(!breaker.is_open_at(at(1), CacheLevel::Local, read));
        assert!(!is_open(at(2), read));
        assert!(!breaker.failed_at(at(2), level, read), "it is reported once");
        assert!(is_open(at(5), read) && !is_open(at(6), read), "the second pause is longer");
        for _ in 0..9 {
            breaker.failed_at(start, level, read);
        }
        assert!(!is_open(start + LONGEST, read), "no pause is longer");
        breaker.succeeded(level, read);
        assert!(breaker.failed_at(start, level, read) && !is_open(at(2), read));
    }
}
