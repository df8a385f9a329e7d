//! Timeouts and retries for requests to a registry.

use std::thread;
use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Maximum delay that a registry can request with `Retry-After`.
const LONGEST: Duration = Duration::from_mins(1);

/// Timeouts and retries for one registry. Tests shorten them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Time limit for establishing a connection.
    pub(super) connect: Duration,
    /// Time limit without any data on a connection. A whole blob may take longer.
    pub(super) idle: Duration,
    /// Upper bound of the first delay; it doubles for every further one.
    pub(super) base: Duration,
    /// Number of attempts after the first one.
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
    /// For the first contact: fewer retries, because the host may not exist.
    pub(super) fn shorter(self) -> Self {
        Self { retries: self.retries.min(2), ..self }
    }
}

/// The delays between the attempts of one request: exponential, each one random between zero and its bound, so that
/// clients that failed together do not retry together.
#[derive(Debug)]
pub(super) struct Backoff {
    patience: Patience,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, failures: 0 }
    }

    /// Waits before the next attempt, for the delay that the server requests if any. Returns false if no attempt is
    /// left.
    pub(super) fn wait(&mut self, asked: Option<Duration>) -> bool {
        let Some(wait) = self.next(asked, fastrand::f64()) else { return false };
        thread::sleep(wait);
        true
    }

    /// The delay before the next attempt, where `random` is between 0 and 1; `None` if no attempt is left.
    fn next(&mut self, asked: Option<Duration>, random: f64) -> Option<Duration> {
        if self.failures >= self.patience.retries {
            return None;
        }
        let bound = self.patience.base.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures += 1;
        Some(asked.map_or_else(|| bound.mul_f64(random), |asked| asked.min(LONGEST)))
    }

    /// Records progress: earlier failures no longer count.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Parses `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3). A date is relative to the server's own
/// `Date` if present, because our clock may be wrong.
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
    fn attempts_are_counted_from_the_last_progress() {
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
    fn retry_after_is_limited_to_a_minute() {
        let mut backoff = Backoff::new(Patience::default());
        for (asked, waited) in [(0, 0), (7, 7), (60, 60), (3600, 60)] {
            assert_eq!(backoff.next(Some(Duration::from_secs(asked)), 0.5), Some(Duration::from_secs(waited)));
        }
    }
}
