//! The compressed stream, and batches of whole frames cut from it.

use std::io::{self, BufRead};

use super::frame::{BLOCK_HEADER, Frame, HEAD, ZstdBlock};
use super::{BATCH, CONTENT, PACKED};
use crate::bounds::{BoundsError, part};

/// A source of compressed bytes, from which the decoder takes some at a time.
pub(super) trait CompressedSource {
    /// The next bytes; empty at the end.
    fn bytes(&mut self) -> io::Result<&[u8]>;

    /// Takes `count` of the next bytes.
    fn take(&mut self, count: usize);

    /// Offset of the next byte in the stream.
    fn offset(&self) -> u64;
}

/// The compressed stream. Reading continues after the batches that were cut from it.
pub(super) struct FrameReader<R> {
    source: R,
    /// Bytes that were read from the source to find frames. The first `at` of them were taken in order.
    buffered: Vec<u8>,
    at: usize,
    /// Number of bytes taken from the stream.
    offset: u64,
    /// The error of the source during the search for frames. It is returned after all bytes before it.
    error: Option<io::Error>,
}

/// Whole frames, to be decoded at once or in order.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) frames: Vec<u8>,
    /// Offset of the frames in the stream.
    offset: u64,
    /// Number of bytes taken from the frames.
    at: usize,
}

/// Size of some frames.
#[derive(Clone, Copy, Default)]
struct Extent {
    packed: usize,
    /// Maximum number of decoded bytes.
    content: u64,
}

impl<R: BufRead> FrameReader<R> {
    pub(super) const fn new(source: R) -> Self {
        Self { source, buffered: Vec::new(), at: 0, offset: 0, error: None }
    }

    /// Takes the next frames, if they are small enough to be decoded ahead.
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

    /// Reads one more frame to its end. `None` if it is not a frame, is truncated, or exceeds the limits.
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

    /// `count` bytes at `from`. `None` if there are fewer, or they exceed the limit.
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
