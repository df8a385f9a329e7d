//! zstd (RFC 8878), on as many processors as there are: frames are independent of one another, and their headers say how long
//! they are. Many frames are written by zstd:chunked, one for each chunk, by pzstd and in zstd's seekable format. A layer of one
//! frame, and all that is not of a size to be decoded ahead, is decoded in order as it is read; so is a batch again in which
//! anything is wrong, so that its bytes and its fault come out as if nothing had been decoded ahead.
//!
//! Memory, for each batch that the [`Pool`] permits, two for each thread: at most [`PACKED`] bytes, and [`CONTENT`] that they
//! unpack to; for each thread, what zstd keeps of a frame, which is no more of its window than the frame fills. With two threads
//! that is 88 MiB at most, and 352 with eight, less than gzip's. Besides, each layer has a frame of at most [`PACKED`] bytes that is
//! looked at, and zstd's window of one that is decoded in order.

mod decode;
mod frame;
mod input;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::pool::{Answer, Lent, Permit, Pool};
use decode::{InOrder, decode};
use input::{Batch, Input, Source as _};

/// Compressed bytes that are enough for a batch.
const BATCH: usize = if cfg!(test) { 16 << 10 } else { 1 << 20 };

/// Compressed bytes of a batch, or of the frame in it, at most.
const PACKED: usize = 4 * BATCH;

/// Bytes that a batch unpacks to at most.
const CONTENT: usize = 12 * BATCH;

/// Unpacked bytes that are handed over at once where they are decoded in order.
const PIECE: usize = 256 << 10;

/// Where compressed data are wrong, and what is.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// They end too early: so many there are.
    #[error("the zstd data end after {0} bytes, in the middle")]
    End(u64),
    /// Near this byte of the stream, in zstd's words.
    #[error("the zstd data are damaged near byte {0} ({1})")]
    Fault(u64, io::Error),
}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        let kind = match damage {
            Damage::End(_) => io::ErrorKind::UnexpectedEof,
            Damage::Fault(..) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, damage)
    }
}

/// The bytes in a zstd stream of one frame or many.
pub struct Unzstd<'p, R> {
    input: Input<R>,
    pool: Option<&'p Pool>,
    window_log: u32,
    in_order: InOrder,
    /// Whether the next frame of the input was seen not to be one to decode ahead.
    is_next_in_order: bool,
    /// What is decoded ahead.
    ahead: VecDeque<Ahead>,
    current: Current,
    /// What was decoded in order, and which part of it is not handed over yet.
    piece: Box<[u8]>,
    left: Range<usize>,
}

/// A batch that is being decoded; one that cannot be comes back.
struct Ahead {
    answer: Answer<Result<Lent<u8>, Batch>>,
    permit: Permit,
}

/// What is handed over.
enum Current {
    Nothing,
    /// What was decoded ahead, from the next byte on.
    Decoded {
        bytes: Lent<u8>,
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
    /// What `source` unpacks to, with windows of at most `1 << window_log` bytes; with a pool, decoded ahead by its threads.
    pub fn new(source: R, window_log: u32, pool: Option<&'p Pool>) -> io::Result<Self> {
        Ok(Self {
            input: Input::new(source),
            pool,
            window_log,
            in_order: InOrder::new(window_log)?,
            is_next_in_order: false,
            ahead: VecDeque::new(),
            current: Current::Nothing,
            piece: vec![0; PIECE].into(),
            left: 0..0,
        })
    }

    /// Goes on to what comes next; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.read_ahead();
        self.current = if let Some(Ahead { answer, permit }) = self.ahead.pop_front() {
            let gone = || io::Error::other("decompression failed: this is a defect of ncclcheck");
            match answer.wait_and_help().ok_or_else(gone)? {
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
    fn read_ahead(&mut self) {
        let Some(pool) = self.pool else { return };
        while !self.is_next_in_order
            && let Some(permit) = pool.permit()
        {
            let Some(batch) = self.input.batch() else {
                self.is_next_in_order = true;
                return;
            };
            let window_log = self.window_log;
            let answer = pool.run(move |buffers| {
                let mut bytes = buffers.bytes.lend();
                // What is wrong with it is told when it is decoded in order.
                decode(&batch.frames, window_log, &mut bytes).map_or(Err(batch), |()| Ok(bytes))
            });
            self.ahead.push_back(Ahead { answer, permit });
        }
    }
}

impl<R: BufRead> Unzstd<'_, R> {
    fn at_hand(&self) -> &[u8] {
        let bytes = match &self.current {
            Current::Decoded { bytes, at, .. } => bytes.get(*at..),
            _ => self.piece.get(self.left.clone()),
        };
        bytes.unwrap_or_default()
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
        while self.at_hand().is_empty() && self.go_on()? {}
        Ok(self.at_hand())
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
