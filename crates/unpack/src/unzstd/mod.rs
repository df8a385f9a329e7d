//! zstd (RFC 8878), decoded by many threads. Frames are independent of one another, and their headers give their length.
//! zstd:chunked writes a frame per chunk; pzstd and the seekable format also write many frames. A stream of one frame, and every
//! frame that is too large to be decoded ahead, is decoded in order as it is read. A batch of frames with any damage is decoded
//! again in order, so that its bytes and its error are those of a sequential decoder.
//!
//! # Memory
//!
//! The [`Pool`] permits two batches per thread. Each takes at most [`PACKED`] compressed bytes and [`CONTENT`] decoded bytes.
//! Each thread has zstd's buffers for a frame, which are no larger than the frame. That is at most 88 MiB with two threads, and
//! 352 MiB with eight. In addition, each stream has one frame of at most [`PACKED`] bytes that it examines, and zstd's window of
//! a frame that is decoded in order.

mod batch;
mod decode;
mod frame;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::bounds::part;
use crate::error::DecodeError;
pub use crate::error::ZstdError;
use crate::pool::{JobHandle, Permit, Pool, PooledBuf};
use batch::{Batch, CompressedSource as _, FrameReader};
use decode::{SequentialDecoder, decode};

/// Compressed bytes that complete a batch.
const BATCH: usize = if cfg!(test) { 16 << 10 } else { 1 << 20 };

/// Maximum number of compressed bytes of a batch, or of the frame in it.
const PACKED: usize = 4 * BATCH;

/// Maximum number of decoded bytes of a batch.
const CONTENT: usize = 12 * BATCH;

/// Decoded bytes per piece when decoding in order.
const PIECE: usize = 256 << 10;

/// The content of a zstd stream of one frame or many.
///
/// Reading fails with a [`ZstdError`] inside the [`io::Error`] if the stream is damaged or truncated, and with the error of the
/// source if that fails. Skippable frames are skipped. Bytes after the last frame that do not form a frame count as damage.
pub struct Unzstd<'p, R> {
    input: FrameReader<R>,
    pool: Option<&'p Pool>,
    window_log: u32,
    in_order: SequentialDecoder,
    /// True if the next frame of the input is known to be unsuitable for decoding ahead.
    is_next_in_order: bool,
    /// Batches that are decoded ahead.
    ahead: VecDeque<PendingBatch>,
    current: Current,
    /// Bytes that were decoded in order, and the range of them that was not returned yet.
    piece: Box<[u8]>,
    left: Range<usize>,
}

/// A batch that is being decoded. The job returns a batch that it cannot decode.
struct PendingBatch {
    answer: JobHandle<Result<PooledBuf<u8>, Batch>>,
    permit: Permit,
}

/// The source of the bytes being returned.
enum Current {
    Nothing,
    /// Bytes that were decoded ahead; `at` is the next one.
    Decoded {
        bytes: PooledBuf<u8>,
        at: usize,
        _permit: Permit,
    },
    /// A batch that is decoded again, in order.
    Again {
        batch: Batch,
        _permit: Permit,
    },
    /// A frame of the input, decoded in order.
    Frame,
}

impl<R> fmt::Debug for Unzstd<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd").field("ahead", &self.ahead.len()).finish_non_exhaustive()
    }
}

impl<'p, R: BufRead> Unzstd<'p, R> {
    /// Creates a decoder of the stream in `source`. With a pool, its threads decode ahead of the reader; without one, the reader
    /// decodes in order. A frame whose window is larger than `1 << window_log` bytes counts as damage.
    ///
    /// # Errors
    ///
    /// The zstd library cannot allocate memory, or does not support `window_log` (it supports 10 to 31).
    pub fn new(source: R, window_log: u32, pool: Option<&'p Pool>) -> io::Result<Self> {
        Ok(Self {
            input: FrameReader::new(source),
            pool,
            window_log,
            in_order: SequentialDecoder::new(window_log)?,
            is_next_in_order: false,
            ahead: VecDeque::new(),
            current: Current::Nothing,
            piece: vec![0; PIECE].into(),
            left: 0..0,
        })
    }

    /// Advances to the next batch or frame. Returns false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.read_ahead()?;
        self.current = if let Some(PendingBatch { answer, permit }) = self.ahead.pop_front() {
            match answer.wait_and_help().ok_or(DecodeError::Panicked)? {
                Ok(bytes) => Current::Decoded { bytes, at: 0, _permit: permit },
                Err(batch) => Current::Again { batch, _permit: permit },
            }
        } else if self.input.offset() > 0 && self.input.bytes()?.is_empty() {
            return Ok(false);
        } else {
            // An empty stream is also handled here, as a truncated frame.
            self.is_next_in_order = false;
            Current::Frame
        };
        Ok(true)
    }

    /// Submits as many batches as the pool permits.
    fn read_ahead(&mut self) -> io::Result<()> {
        let Some(pool) = self.pool else { return Ok(()) };
        while !self.is_next_in_order
            && let Some(permit) = pool.permit()
        {
            let Some(batch) = self.input.batch()? else {
                self.is_next_in_order = true;
                break;
            };
            let window_log = self.window_log;
            let answer = pool.run(move |buffers| {
                let mut bytes = buffers.bytes.take();
                // Decoding the batch again in order returns its error.
                decode(&batch.frames, window_log, &mut bytes).map_or(Err(batch), |()| Ok(bytes))
            });
            self.ahead.push_back(PendingBatch { answer, permit });
        }
        Ok(())
    }
}

impl<R: BufRead> Unzstd<'_, R> {
    fn at_hand(&self) -> io::Result<&[u8]> {
        Ok(match &self.current {
            Current::Decoded { bytes, at, .. } => part(bytes, *at..)?,
            _ => part(&self.piece, self.left.clone())?,
        })
    }

    /// Decodes further when no bytes are left. Returns false at the end. Afterwards there may still be no bytes.
    fn go_on(&mut self) -> io::Result<bool> {
        let is_over = match &mut self.current {
            Current::Nothing => return self.advance(),
            Current::Decoded { .. } => true,
            Current::Again { batch, .. } => {
                self.left = 0..self.in_order.read(batch, &mut self.piece)?;
                !self.in_order.is_inside() && batch.bytes()?.is_empty()
            }
            Current::Frame => {
                self.left = 0..self.in_order.read(&mut self.input, &mut self.piece)?;
                !self.in_order.is_inside()
            }
        };
        if is_over {
            self.current = Current::Nothing;
        }
        Ok(true)
    }
}

impl<R: BufRead> BufRead for Unzstd<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at_hand()?.is_empty() && self.go_on()? {}
        self.at_hand()
    }

    fn consume(&mut self, amount: usize) {
        match &mut self.current {
            Current::Decoded { at, .. } => *at += amount,
            _ => self.left.start += amount,
        }
    }
}

impl<R: BufRead> Read for Unzstd<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
