//! The bytes of a blob, over as many connections as it takes.

use std::fmt;
use std::io::{self, Read};

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};

use super::Registry;
use super::pace::Paced;
use super::request_error::{RequestError, RequestErrorKind};
use super::response_error::{AttemptError, RequestedObject};
use super::retry::Backoff;
use crate::source::SourceError;
use model::BlobRef;

/// A blob that resumes after a broken connection by requesting the rest (RFC 9110, section 14).
pub(super) struct Blob<'a> {
    registry: &'a Registry,
    wanted: BlobRef,
    /// `None` after a failure, until the next attempt.
    body: Option<Paced<Response>>,
    /// Offset of the next byte to return.
    position: u64,
    /// Number of bytes to skip, from a server that does not support ranges.
    skip: u64,
    /// Counts the failures since the last progress.
    backoff: Backoff,
    /// Number of bytes since the last failure.
    fresh: u64,
}

/// Number of bytes on one connection that count as progress.
const PROGRESS: u64 = 4 << 10;

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("blob", &self.wanted).field("position", &self.position).finish_non_exhaustive()
    }
}

impl<'a> Blob<'a> {
    /// Opens the blob; HTTP errors surface here, not on the first read.
    pub(super) fn open(registry: &'a Registry, blob: &BlobRef) -> Result<Self, SourceError> {
        let backoff = Backoff::new(registry.patience);
        let mut this = Self { registry, wanted: blob.clone(), body: None, position: 0, skip: 0, backoff, fresh: 0 };
        this.begin()?;
        Ok(this)
    }

    fn begin(&mut self) -> Result<(), SourceError> {
        while let Err(fault) = self.connect() {
            self.give_up_or_wait(fault)?;
        }
        self.backoff.reset();
        Ok(())
    }

    fn object(&self) -> RequestedObject<'_> {
        RequestedObject::Blob { name: &self.registry.name, digest: &self.wanted.digest }
    }

    /// Makes one attempt to request the bytes from `position` on.
    fn connect(&mut self) -> Result<(), AttemptError> {
        let path = format!("blobs/{}", self.wanted.digest);
        let mut headers = HeaderMap::new();
        let asks = self.position > 0;
        if asks {
            let range = HeaderValue::try_from(format!("bytes={}-", self.position));
            headers.extend(range.ok().map(|range| (RANGE, range)));
        }
        let answer = self.registry.ask(&path, &headers, self.object())?;
        let invalid = |what: String| SourceError::invalid(format!("{}: {} {what}", self.object(), answer.host));
        let size = self.wanted.size;
        self.skip = match answer.status() {
            StatusCode::PARTIAL_CONTENT if asks => {
                let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                if !range.is_some_and(|range| is_rest(range, self.position, size)) {
                    let range = range.unwrap_or("no Content-Range");
                    return Err(invalid(format!("sent {range} for the bytes from {} of {size}", self.position)).into());
                }
                0
            }
            StatusCode::OK => {
                if let Some(length) = answer.response.content_length().filter(|length| *length != size) {
                    return Err(invalid(format!("has {length} bytes, the manifest says {size}")).into());
                }
                self.position
            }
            status => return Err(invalid(format!("answered {status} to a request for a blob")).into()),
        };
        self.body = Some(Paced::new(answer.response));
        Ok(())
    }

    /// Makes one attempt to read the next bytes.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, AttemptError> {
        let size = self.wanted.size;
        if self.body.is_none() {
            self.connect()?;
        }
        let broken = |object: RequestedObject<'_>, position: u64, cause: String| AttemptError::Transient {
            error: SourceError::unreachable(format!(
                "{object}: the connection broke at byte {position} of {size}: {cause}"
            )),
            after: None,
        };
        loop {
            let Some(body) = &mut self.body else { return Ok(0) };
            // Read up to one byte more than the blob has: that byte lets the verification detect an excess.
            let most = size.saturating_add(1);
            let wanted = if self.skip > 0 { self.skip } else { most.saturating_sub(self.position) };
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(buffer.len());
            let count = match body.read(buffer.get_mut(..wanted).unwrap_or_default()) {
                Ok(0) if self.position < size => {
                    return Err(broken(self.object(), self.position, "it ended early".to_owned()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if self.position < size => {
                    let failure = RequestError::from(&error);
                    let fault = broken(self.object(), self.position, failure.cause);
                    let is_slow = failure.kind == RequestErrorKind::Slow;
                    return Err(if is_slow { AttemptError::Final(fault.into_error()) } else { fault });
                }
                // All bytes have arrived, so an error at the end of the connection does not matter.
                Ok(0) | Err(_) => return Ok(0),
                Ok(count) => count,
            };
            if self.skip > 0 {
                self.skip = self.skip.saturating_sub(count as u64);
                continue;
            }
            self.position = self.position.saturating_add(count as u64);
            self.fresh = self.fresh.saturating_add(count as u64);
            // A server that sends a byte for each request makes no progress.
            if self.fresh >= PROGRESS {
                self.backoff.reset();
            }
            return Ok(count);
        }
    }

    fn give_up_or_wait(&mut self, fault: AttemptError) -> Result<(), SourceError> {
        self.body = None;
        self.fresh = 0;
        match fault {
            AttemptError::Transient { after, .. } if self.backoff.wait(after) => Ok(()),
            fault => Err(self.registry.auth.conceal(fault.into_error())),
        }
    }
}

impl Read for Blob<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // More bytes than the blob's size have been returned, so the verification has already failed.
        if buffer.is_empty() || self.position > self.wanted.size {
            return Ok(0);
        }
        loop {
            // At the end of the blob, a lost connection is no longer needed.
            if self.body.is_none() && self.position == self.wanted.size && self.position > 0 {
                return Ok(0);
            }
            match self.next(buffer) {
                Ok(count) => return Ok(count),
                Err(fault) => self.give_up_or_wait(fault).map_err(io::Error::other)?,
            }
        }
    }
}

/// Returns true if `Content-Range` starts at `first` in a blob of `size` bytes. It may end before the blob does: the
/// rest is then requested again.
fn is_rest(range: &str, first: u64, size: u64) -> bool {
    let parse = || {
        let (bytes, total) = range.strip_prefix("bytes ")?.trim().split_once('/')?;
        let (from, to) = bytes.split_once('-')?;
        let total = if total == "*" { size } else { total.parse().ok()? };
        Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?, total))
    };
    parse().is_some_and(|(from, to, total)| from == first && to < size && total == size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_range_must_match_the_request() {
        for range in ["bytes 4-9/10", "bytes 4-9/*", "bytes 4-6/10"] {
            assert!(is_rest(range, 4, 10), "{range}");
        }
        for range in ["bytes 0-9/10", "bytes 5-9/10", "bytes 4-9/11", "bytes 4-10/10", "bytes */10", "4-9/10", ""] {
            assert!(!is_rest(range, 4, 10), "{range}");
        }
    }
}
