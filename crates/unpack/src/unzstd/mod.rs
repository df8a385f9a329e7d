//! zstd (RFC 8878), decoded by many threads. Frames are independent of one another, and their headers say how long they are.
//! zstd:chunked writes a frame for each chunk; pzstd and the seekable format write many frames, too. A stream of one frame, and
//! every frame that is too large to be decoded ahead, is decoded in order as it is read. A batch of frames in which anything is
//! damaged is decoded again in order, so that its bytes and its error are those of a decoder that knows no threads.
//!
//! # Memory
//!
//! For each batch that the [`Pool`] permits, of which there are two for each thread: at most [`PACKED`] compressed bytes, and
//! [`CONTENT`] that they decode to; for each thread, zstd's buffers for a frame, which are no larger than the frame. With two
//! threads that is at most 88 MiB, with eight 352 MiB. Besides, each stream
//! has one frame of at most [`PACKED`] bytes that is looked at, and zstd's window of a frame that is decoded in order.

mod batch;
mod decode;
mod frame;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::bounds::part;
use crate::error::DecodeError;
use crate::pool::{JobHandle, Permit, Pool, PooledBuf};
use batch::{Batch, CompressedSource as _, FrameReader};
use decode::{SequentialDecoder, decode};

/// Compressed bytes that are enough for a batch.
const BATCH: usize = if cfg!(test) { 16 << 10 } else { 1 << 20 };

/// Compressed bytes of a batch, or of the frame in it, at most.
const PACKED: usize = 4 * BATCH;

/// Bytes that a batch unpacks to at most.
const CONTENT: usize = 12 * BATCH;

/// Unpacked bytes that are handed over at once where they are decoded in order.
const PIECE: usize = 256 << 10;

/// Damage of a zstd stream. [`Unzstd`] returns it inside an [`io::Error`]; [`UnpackError`](crate::UnpackError) takes it out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZstdError {
    /// The stream ends inside a frame. Kind [`io::ErrorKind::UnexpectedEof`].
    #[error("the zstd data end after {length} bytes, in the middle")]
    Truncated {
        /// Compressed bytes that the stream has.
        length: u64,
    },
    /// The stream is no valid zstd. Kind [`io::ErrorKind::InvalidData`].
    #[error("the zstd data are damaged near byte {offset} ({error})")]
    Corrupt {
        /// Byte of the compressed stream near which the decoder noticed the damage.
        offset: u64,
        /// The error of the zstd library.
        error: io::Error,
    },
}

/// The content of a zstd stream of one frame or many.
///
/// Reading fails with a [`ZstdError`] inside the [`io::Error`] where the stream is damaged or truncated, and with the error of
/// the source where that fails. Skippable frames are skipped. Bytes after the last frame that are no frame are damage.
pub struct Unzstd<'p, R> {
    input: FrameReader<R>,
    pool: Option<&'p Pool>,
    window_log: u32,
    in_order: SequentialDecoder,
    /// Whether the next frame of the input was seen not to be one to decode ahead.
    is_next_in_order: bool,
    /// What is decoded ahead.
    ahead: VecDeque<PendingBatch>,
    current: Current,
    /// What was decoded in order, and which part of it is not handed over yet.
    piece: Box<[u8]>,
    left: Range<usize>,
}

/// A batch that is being decoded; one that cannot be comes back.
struct PendingBatch {
    answer: JobHandle<Result<PooledBuf<u8>, Batch>>,
    permit: Permit,
}

/// What is handed over.
enum Current {
    Nothing,
    /// What was decoded ahead, from the next byte on.
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
    /// Decodes the stream in `source`; with a pool, its threads decode ahead of the reader, otherwise the reader decodes in order.
    /// Frames whose window is larger than `1 << window_log` bytes are refused as damage.
    ///
    /// # Errors
    ///
    /// The zstd library has no memory, or `window_log` is outside of what it supports (10 to 31).
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

    /// Goes on to what comes next; false at the end.
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
            // Also where there are no bytes at all: that is a frame which was cut.
            self.is_next_in_order = false;
            Current::Frame
        };
        Ok(true)
    }

    /// Has as many batches decoded as may be.
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
                // Decoding it again in order returns its error.
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

    /// Goes on where nothing is at hand; false at the end. There may be nothing at hand still.
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
