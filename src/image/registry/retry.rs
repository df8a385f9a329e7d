//! How long we wait for a registry, and how often we come back.

use std::thread;
use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The longest wait that a registry can impose on us by `Retry-After`.
const LONGEST: Duration = Duration::from_mins(1);

/// The times of one registry. Tests shorten them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// How long a connection may take.
    pub(super) connect: Duration,
    /// How long nothing at all may come over a connection. The whole of a blob may take any time.
    pub(super) idle: Duration,
    /// The first wait is up to this; every further one is up to twice as long as the one before.
    pub(super) base: Duration,
    /// Tries after the first one.
    pub(super) retries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            idle: Duration::from_mins(1),
            base: Duration::from_millis(500),
            retries: 5,
        }
    }
}

impl Patience {
    /// For the first contact: where nobody has ever answered, nobody waits long.
    pub(super) fn shorter(self) -> Self {
        Self { retries: self.retries.min(2), ..self }
    }
}

/// The waits between the tries of one request: exponential, each one random from nothing to its bound, so that clients
/// that failed together do not come back together.
#[derive(Debug)]
pub(super) struct Backoff {
    patience: Patience,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, failures: 0 }
    }

    /// Waits before the next try, as long as the server asked for if it did. False when there is no next try.
    pub(super) fn wait(&mut self, asked: Option<Duration>) -> bool {
        let Some(wait) = self.next(asked, fastrand::f64()) else { return false };
        thread::sleep(wait);
        true
    }

    /// How long to wait before the next try, of which `random` is from 0 to 1; `None` when there is no next try.
    fn next(&mut self, asked: Option<Duration>, random: f64) -> Option<Duration> {
        if self.failures >= self.patience.retries {
            return None;
        }
        let bound = self.patience.base.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures += 1;
        Some(asked.map_or_else(|| bound.mul_f64(random), |asked| asked.min(LONGEST)))
    }

    /// There was progress: what failed before does not count any more.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3). A date counts from the server's own clock where it
/// tells it: ours may be wrong.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let now = headers.get(DATE).and_then(|now| date(now.to_str().ok()?)).unwrap_or_else(SystemTime::now);
    Some(date(text)?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(RETRY_AFTER, "120".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_mins(2)));
        headers.insert(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::ZERO));
        headers.insert(DATE, "Wed, 21 Oct 2015 07:27:30 GMT".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(30)));
        headers.insert(RETRY_AFTER, "soon".parse().unwrap());
        assert_eq!(retry_after(&headers), None);
    }

    #[test]
    fn tries_are_counted_from_the_last_progress() {
        let mut backoff = Backoff::new(Patience { base: Duration::ZERO, retries: 2, ..Patience::default() });
        assert!(backoff.wait(None) && backoff.wait(Some(Duration::ZERO)) && !backoff.wait(None));
        backoff.reset();
        assert!(backoff.wait(None));
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits = |patience: Patience, random: f64| -> Vec<_> {
            let mut backoff = Backoff::new(patience);
            std::iter::from_fn(|| backoff.next(None, random)).map(|wait| wait.as_secs_f64()).collect()
        };
        assert_eq!(waits(Patience::default(), 1.0), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(waits(Patience::default(), 0.5), [0.25, 0.5, 1.0, 2.0, 4.0]);
        assert_eq!(waits(Patience::default().shorter(), 1.0), [0.5, 1.0]);
        assert_eq!(waits(Patience { retries: 1, ..Patience::default() }.shorter(), 1.0), [0.5]);
        let slow = waits(Patience { base: Duration::from_secs(20), retries: 40, ..Patience::default() }, 1.0);
        assert_eq!(slow[..4], [20.0, 40.0, 60.0, 60.0]);
        assert_eq!((slow.len(), slow[39]), (40, 60.0));
    }

    #[test]
    fn a_server_says_how_long_to_wait_up_to_a_minute() {
        let mut backoff = Backoff::new(Patience::default());
        for (asked, waited) in [(0, 0), (7, 7), (60, 60), (3600, 60)] {
            assert_eq!(backoff.next(Some(Duration::from_secs(asked)), 0.5), Some(Duration::from_secs(waited)));
        }
    }
}
