//! The compressed stream, and batches of whole frames cut from it.

use std::io::{self, BufRead};

use super::frame::{BLOCK_HEADER, Frame, HEAD, ZstdBlock};
use super::{BATCH, CONTENT, PACKED};
use crate::bounds::{BoundsError, part};

/// Compressed bytes, from which some are taken at a time.
pub(super) trait CompressedSource {
    /// The next bytes. There are none at the end.
    fn bytes(&mut self) -> io::Result<&[u8]>;

    /// So many of them are taken.
    fn take(&mut self, count: usize);

    /// Where the next byte is in the stream.
    fn offset(&self) -> u64;
}

/// The stream. Reading goes on behind the batches that were cut off.
pub(super) struct FrameReader<R> {
    source: R,
    /// Bytes that were read from the source to find frames, and how many of them were taken in order.
    buffered: Vec<u8>,
    at: usize,
    /// Bytes of the stream that were taken.
    offset: u64,
    /// The error of the source while frames were looked for. It is returned after all bytes before it.
    error: Option<io::Error>,
}

/// Whole frames, to be decoded at once or in order.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) frames: Vec<u8>,
    /// Where they begin in the stream.
    offset: u64,
    /// How many bytes of them were taken.
    at: usize,
}

/// How far some frames go.
#[derive(Clone, Copy, Default)]
struct Extent {
    packed: usize,
    /// Bytes that they unpack to at most.
    content: u64,
}

impl<R: BufRead> FrameReader<R> {
    pub(super) const fn new(source: R) -> Self {
        Self { source, buffered: Vec::new(), at: 0, offset: 0, error: None }
    }

    /// Takes the next frames, if there are any which are of a size to be decoded ahead.
    pub(super) fn batch(&mut self) -> Result<Option<Batch>, BoundsError> {
        self.buffered.drain(..self.at);
        self.at = 0;
        let mut extent = Extent::default();
        while extent.packed < BATCH {
            let Some(further) = self.frame(extent) else { break };
            extent = further;
        }
        if extent.packed == 0 {
            return Ok(None);
        }
        let mut next = Vec::with_capacity(BATCH + BATCH / 8);
        next.extend_from_slice(part(&self.buffered, extent.packed..)?);
        self.buffered.truncate(extent.packed);
        let batch = Batch { frames: std::mem::replace(&mut self.buffered, next), offset: self.offset, at: 0 };
        self.offset += extent.packed as u64;
        Ok(Some(batch))
    }

    /// Reads one more frame to its end. Nothing if it is none, or is cut, or goes too far.
    fn frame(&mut self, before: Extent) -> Option<Extent> {
        let Extent { mut packed, mut content } = before;
        match Frame::read(self.find(packed, HEAD)?)? {
            Frame::Skippable(size) => packed = packed.saturating_add(size),
            Frame::Blocks(header) => {
                let declared = header.content(self.find(packed, header.len())?);
                content = content.saturating_add(declared.unwrap_or(0));
                packed += header.len();
                loop {
                    let block = ZstdBlock::read(self.find(packed, BLOCK_HEADER)?)?;
                    packed += BLOCK_HEADER + block.packed;
                    content += if declared.is_none() { block.content as u64 } else { 0 };
                    if content > CONTENT as u64 {
                        return None;
                    }
                    if block.is_last {
                        break;
                    }
                }
                packed += header.checksum();
            }
        }
        self.find(packed, 0)?;
        Some(Extent { packed, content })
    }

    /// Some bytes from here on. Nothing if there are less, or they go too far.
    fn find(&mut self, from: usize, count: usize) -> Option<&[u8]> {
        let to = from.checked_add(count).filter(|to| *to <= PACKED)?;
        while self.buffered.len() < to && self.error.is_none() {
            match self.source.fill_buf() {
                Ok([]) => return None,
                Ok(bytes) => {
                    let some = bytes.get(..to - self.buffered.len()).unwrap_or(bytes);
                    let count = some.len();
                    self.buffered.extend_from_slice(some);
                    self.source.consume(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.error = Some(error),
            }
        }
        self.buffered.get(from..to)
    }
}

impl<R: BufRead> CompressedSource for FrameReader<R> {
    fn bytes(&mut self) -> io::Result<&[u8]> {
        if self.at < self.buffered.len() {
            return Ok(part(&self.buffered, self.at..)?);
        }
        self.error.take().map_or_else(|| self.source.fill_buf(), Err)
    }

    fn take(&mut self, count: usize) {
        self.offset += count as u64;
        if self.at < self.buffered.len() {
            self.at += count;
        } else {
            self.source.consume(count);
        }
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

impl CompressedSource for Batch {
    fn bytes(&mut self) -> io::Result<&[u8]> {
        Ok(part(&self.frames, self.at..)?)
    }

    fn take(&mut self, count: usize) {
        self.at += count;
    }

    fn offset(&self) -> u64 {
        self.offset + self.at as u64
    }
}
