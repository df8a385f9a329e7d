//! Reads the stored bytes of a blob forward, with jumps. A registry serves ranges, so ranges grow while reading is
//! sequential, and small gaps are read through.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::model::{Meter, part, part_mut};
use unpack::UnpackError;
use unpack::pipe::Cancel;

use super::{OpenRange, Ranged};

/// Sizes of the first range at a position, and of the largest.
const WINDOW: Range<u64> = 1 << 20..16 << 20;

const BUFFER: usize = 128 << 10;

/// A blob and the position in it. Its own methods return the error of the medium unchanged; its readers get it in an
/// [`UnpackError`], which distinguishes it from theirs.
pub(super) struct StoredEntries<'a> {
    open: &'a OpenRange<'a>,
    /// Maximum size of a gap that is read and dropped.
    gap: u64,
    /// Number of bytes of the blob that may be requested.
    size: u64,
    meter: &'a dyn Meter,
    cancel: &'a Cancel,
    /// Reader of the bytes behind the buffered ones, which begin at `at`.
    reader: Option<Box<dyn Read + Send + 'a>>,
    /// Bytes left in the reader.
    left: u64,
    window: u64,
    buffer: Box<[u8]>,
    /// The part of the buffer that is not read yet.
    ready: Range<usize>,
    /// Offset in the blob of the first of these bytes.
    at: u64,
    /// End of the readable range.
    end: u64,
    read: u64,
}

impl fmt::Debug for StoredEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("at", &self.at).field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'a> StoredEntries<'a> {
    /// Reads the first `size` bytes of a blob.
    pub(super) fn new(blob: &'a Ranged<'a>, size: u64, meter: &'a dyn Meter, cancel: &'a Cancel) -> Self {
        Self {
            open: blob.open,
            gap: blob.cost,
            size,
            meter,
            cancel,
            reader: None,
            left: 0,
            window: WINDOW.start,
            buffer: vec![0; BUFFER].into(),
            ready: 0..0,
            at: 0,
            end: 0,
            read: 0,
        }
    }

    /// Goes to a range of the blob that begins at or after the current position.
    pub(super) fn seek(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.end = range.start.min(self.size);
        let buffered = self.ready.len() as u64;
        let ahead = range.start.saturating_sub(self.at);
        if range.start < self.at || ahead > buffered + self.left.min(self.gap) {
            self.reader = None;
            self.left = 0;
            self.window = WINDOW.start;
            self.ready = 0..0;
            self.at = range.start;
        }
        while self.at < range.start {
            let count = self.at_hand()?.len();
            let wanted = usize::try_from(range.start - self.at).unwrap_or(usize::MAX);
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.consume(count.min(wanted));
        }
        self.end = range.end.min(self.size);
        Ok(())
    }

    /// Bytes received from the medium.
    pub(super) const fn read_so_far(&self) -> u64 {
        self.read
    }

    /// Returns the buffered bytes, and reads more if there are none; empty at the end.
    fn at_hand(&mut self) -> io::Result<&[u8]> {
        if self.at < self.end && self.ready.is_empty() {
            self.fill()?;
        }
        let most = usize::try_from(self.end - self.at.min(self.end)).unwrap_or(usize::MAX);
        let end = self.ready.end.min(self.ready.start.saturating_add(most));
        Ok(part(&self.buffer, self.ready.start..end)?)
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        if self.left == 0 {
            let window = self.window.max((self.end - self.at).min(WINDOW.end));
            let end = self.at.saturating_add(window).min(self.size);
            self.window = (self.window * 2).min(WINDOW.end);
            self.reader = (self.open)(self.at..end)?;
            self.left = end - self.at;
        }
        let Some(reader) = &mut self.reader else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "its source only provides whole blobs"));
        };
        // The bytes after the end may never be needed.
        let wanted = self.left.min(self.end - self.at);
        let most = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.buffer.len());
        let count = loop {
            match reader.read(part_mut(&mut self.buffer, ..most)?) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if count == 0 {
            let what = format!("the blob ends early, at byte {}", self.at);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        self.ready = 0..count;
        self.left -= count as u64;
        self.read += count as u64;
        Ok(())
    }
}

/// Reads all bytes of a range, whose size the caller has limited. An error is that of the medium.
pub(super) fn bytes(blob: &Ranged<'_>, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let wanted = range.end - range.start;
    let reader = (blob.open)(range)?;
    let none = || io::Error::new(io::ErrorKind::Unsupported, "its source only provides whole blobs");
    let read = io::copy(&mut reader.ok_or_else(none)?.take(wanted), &mut bytes)?;
    if read < wanted {
        let what = format!("the blob ends {} bytes early", wanted - read);
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
    }
    Ok(bytes)
}

impl BufRead for StoredEntries<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.at_hand().map_err(UnpackError::Source)?)
    }

    fn consume(&mut self, amount: usize) {
        self.ready.start = (self.ready.start + amount).min(self.ready.end);
        self.at += amount as u64;
        self.meter.add(amount as u64);
    }
}

impl Read for StoredEntries<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}
