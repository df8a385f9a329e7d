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
#[derive(Debug)]
pub(super) struct Breaker {
    first: Duration,
    pauses: Mutex<BTreeMap<(CacheLevel, Act), CachePause>>,
}

#[derive(Debug)]
struct CachePause {
    until: Instant,
    length: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { first: FIRST, pauses: Mutex::default() }
    }
}

impl Breaker {
    /// Returns true during a pause. A cache that cannot be read is not written to either.
    pub(super) fn is_open(&self, level: CacheLevel, act: Act) -> bool {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_paused = |act| pauses.get(&(level, act)).is_some_and(|pause| Instant::now() < pause.until);
        is_paused(Act::Read) || is_paused(act)
    }

    /// Begins a pause; returns true for the first one since the last success.
    pub(super) fn failed(&self, level: CacheLevel, act: Act) -> bool {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pauses.get(&(level, act)).map(|pause| pause.length);
        let length = before.map_or(self.first, |length| (length * 2).min(LONGEST));
        pauses.insert((level, act), CachePause { until: Instant::now() + length, length });
        before.is_none()
    }

    /// Ends the series of failures.
    pub(super) fn succeeded(&self, level: CacheLevel, act: Act) {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).remove(&(level, act));
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn pauses_double_and_end_with_a_success() {
        let level = CacheLevel::Shared;
        let read = Act::Read;
        let write = Act::Write;
        let first = Duration::from_millis(40);
        let breaker = Breaker { first, ..Breaker::default() };
        assert!(!breaker.is_open(level, read));
        assert!(breaker.failed(level, read));
        assert!(breaker.is_open(level, read) && breaker.is_open(level, write), "it is not written to either");
        assert!(!breaker.is_open(CacheLevel::Local, read));
        sleep(first * 3 / 2);
        assert!(!breaker.is_open(level, read));
        assert!(!breaker.failed(level, read), "it is reported once");
        sleep(first * 3 / 2);
        assert!(breaker.is_open(level, read), "the second pause is longer");
        sleep(first);
        breaker.succeeded(level, read);
        assert!(breaker.failed(level, read));
        sleep(first * 3 / 2);
        assert!(!breaker.is_open(level, read));
    }
}
