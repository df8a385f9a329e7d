//! The lowest rate of a transfer: a server that sends a byte now and then would otherwise hold the program for ever.

use std::fmt;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Time over which the rate is measured. Only waiting counts, not what is done with the bytes between two reads.
const WINDOW: Duration = Duration::from_secs(20);

/// Lowest rate in bytes per second. A modem is faster.
const LOWEST: u64 = 1 << 10;

/// A transfer below the lowest rate.
#[derive(Debug)]
pub(super) struct TooSlow {
    bytes: u64,
    window: Duration,
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "only {} bytes arrived in {:.0} seconds", self.bytes, self.window.as_secs_f64())
    }
}

impl std::error::Error for TooSlow {}

/// A reader that fails when it becomes too slow.
#[derive(Debug)]
pub(super) struct Paced<R> {
    inner: R,
    window: Duration,
    waited: Duration,
    bytes: u64,
}

impl<R> Paced<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, window: WINDOW, waited: Duration::ZERO, bytes: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let count = self.inner.read(buffer)?;
        self.waited += begun.elapsed();
        self.bytes = self.bytes.saturating_add(count as u64);
        if count > 0 && self.waited >= self.window {
            let bytes = self.bytes;
            let window = self.waited;
            if bytes < LOWEST.saturating_mul(window.as_secs().max(1)) {
                return Err(io::Error::other(TooSlow { bytes, window }));
            }
            (self.waited, self.bytes) = (Duration::ZERO, 0);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives as many bytes at a time, each time after a pause.
    struct Slow(usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(5));
            let count = self.0.min(buffer.len());
            buffer[..count].fill(0);
            Ok(count)
        }
    }

    fn copied(bytes: usize) -> io::Result<u64> {
        let paced = Paced { window: Duration::from_millis(50), ..Paced::new(Slow(bytes)) };
        io::copy(&mut paced.take(20 * bytes as u64), &mut io::sink())
    }

    #[test]
    fn only_a_slow_transfer_fails() {
        let error = copied(1).unwrap_err();
        assert!(error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooSlow>), "{error}");
        assert_eq!(copied(4096).unwrap(), 20 * 4096);
    }
}
