//! gzip (RFC 1952), decoded by many threads. Chunks of the compressed stream are decoded before the content that precedes them
//! is known. A chunk for which that fails is decoded in order, so every valid stream is decoded. Each member is verified against
//! the CRC-32 and the size in its trailer.
//!
//! # Memory
//!
//! The [`Pool`] permits two chunks per thread. Each takes its [`CHUNK`] and [`OVERLAP`], and up to three bytes for each of the
//! [`MOST`] symbols that it may decode to: two for a symbol that may stand for an unknown byte, and one for a byte. That is at
//! most 39 MiB with two threads, and 154 MiB with eight. In addition, each stream has the blocks that wait in its [`pipe`].

#![allow(clippy::cast_possible_truncation, reason = "bits are cut off on purpose here, everywhere")]
#![allow(clippy::inline_always, reason = "the inner loop must have no calls in it")]

mod bits;
mod block_decoder;
mod block_finder;
mod block_header;
mod checksum;
mod chunk;
mod chunk_queue;
mod huffman;
mod member;

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::task::Poll;

use block_decoder::{BlockDecoder, MARGIN, Output, Pause, WINDOW};
use block_finder::Boundary;
use checksum::{Checksum, Checksums};
use chunk::{Chunk, Window};
use chunk_queue::ChunkQueue;
use member::{End, TRAILER, Trailer};

use crate::bounds::{BoundsError, copy, part};
use crate::error::DecodeError;
use crate::pipe::{self, Pipe};
use crate::pool::{BufferPool, JobHandle, Permit, Pool, PooledBuf};

pub use crate::error::{GzipError, InflateError};

/// Compressed bytes that one thread decodes at a time.
const CHUNK: usize = pipe::BLOCK;

/// Compressed bytes after a chunk in which its last block must end; otherwise the block is decoded in order.
const OVERLAP: usize = pipe::OVERLAP;

/// Symbols of one chunk that are decoded ahead. The rest of a chunk that decodes to more is decoded in order.
const MOST: usize = 6 * CHUNK;

/// Decoded bytes per piece when decoding in order.
const PIECE: usize = 256 << 10;

/// The content of a gzip stream of one member or many.
///
/// Reading fails with a [`GzipError`] inside the [`io::Error`] if the stream is damaged or truncated, and with the error of the
/// source if that fails. Bytes after the last member that do not form a member count as damage.
#[derive(Debug)]
pub struct Gunzip<'p> {
    input: ChunkQueue<'p>,
    pool: Option<&'p Pool>,
    /// The decoder for decoding in order, in the first chunk of the input.
    decoder: BlockDecoder,
    place: Boundary,
    /// The window, and the bytes that were decoded in order and not returned yet.
    data: PooledBuf<u8>,
    at: usize,
    base: usize,
    ends: Vec<End>,
    is_over: bool,
    /// The next results, in order.
    ready: VecDeque<Ready>,
    /// Checksum of the current member so far.
    sum: Checksum,
    /// Pieces that are being returned, and the permit that bounds them.
    pieces: VecDeque<Piece>,
    permit: Option<Permit>,
    buffers: Arc<BufferPool<u8>>,
}

/// Decoded bytes: a part of `data`.
#[derive(Debug)]
struct Piece {
    data: Data,
    from: usize,
    to: usize,
}

/// Memory of decoded bytes.
#[derive(Debug)]
enum Data {
    Bytes(PooledBuf<u8>),
    /// Symbols that were replaced by bytes in place.
    Symbols(PooledBuf<u16>),
}

impl Piece {
    const fn is_empty(&self) -> bool {
        self.from == self.to
    }

    fn bytes(&self) -> Result<&[u8], BoundsError> {
        let data = match &self.data {
            Data::Bytes(data) => data.as_slice(),
            Data::Symbols(data) => bytemuck::cast_slice(data),
        };
        part(data, self.from..self.to)
    }
}

/// Decoded bytes with their checksums.
type Resolved = (Vec<Piece>, Checksums);

#[derive(Debug)]
enum Ready {
    Now(Resolved),
    Soon {
        answer: JobHandle<Result<Resolved, InflateError>>,
        /// The result, once it was polled and is ready.
        come: Option<Result<Resolved, InflateError>>,
        permit: Permit,
    },
    /// An error, after which nothing follows.
    Never(io::Error),
}

impl Ready {
    /// Returns true if the result is available without waiting.
    fn has_come(&mut self) -> bool {
        match self {
            Self::Soon { answer, come: come @ None, .. } => match answer.poll() {
                Poll::Pending => false,
                Poll::Ready(answered) => {
                    *come = answered;
                    true
                }
            },
            _ => true,
        }
    }
}

impl<'p> Gunzip<'p> {
    /// Creates a decoder of the stream in `source`. With a pool, its threads decode ahead of the reader; without one, the reader
    /// decodes in order.
    pub fn new(source: &'p mut Pipe, pool: Option<&'p Pool>) -> Self {
        let buffers = Arc::default();
        Self {
            input: ChunkQueue::new(source, pool),
            pool,
            decoder: BlockDecoder::default(),
            place: Boundary::Member(0),
            data: room(&buffers),
            at: WINDOW,
            base: WINDOW,
            ends: Vec::new(),
            is_over: false,
            ready: VecDeque::new(),
            sum: Checksum::default(),
            pieces: VecDeque::new(),
            permit: None,
            buffers,
        }
    }

    /// Gets the next pieces. Returns false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.permit = None;
        loop {
            self.input.read_ahead()?;
            self.leave_chunks()?;
            while self.has_room() && self.take_decoded()? {}
            // While the first result is not ready, decode here a chunk that no thread decodes.
            let may_decode = self.has_room() && !self.input.is_decoded_ahead();
            if self.is_over || self.ready.front_mut().is_some_and(|first| first.has_come() || !may_decode) {
                let Some(ready) = self.ready.pop_front() else { return Ok(false) };
                return self.hand_over(ready).map(|()| true);
            }
            if let Err(error) = self.decode() {
                self.ready.push_back(Ready::Never(error));
                self.is_over = true;
            }
        }
    }

    fn hand_over(&mut self, ready: Ready) -> io::Result<()> {
        let (pieces, sums) = match ready {
            Ready::Now(resolved) => resolved,
            Ready::Soon { answer, come, permit } => {
                self.permit = Some(permit);
                let answer = come.or_else(|| answer.wait());
                answer.ok_or(DecodeError::Panicked)?.map_err(|error| self.damage(error))?
            }
            Ready::Never(error) => return Err(error),
        };
        self.sum.follow(&sums).map_err(|error| self.damage(error))?;
        self.pieces.extend(pieces);
        Ok(())
    }

    /// Decodes in order, to the end of the block, the chunk, or the room.
    fn decode(&mut self) -> io::Result<()> {
        let Some(chunk) = self.input.first() else {
            self.is_over = true;
            return Ok(());
        };
        let input = &*chunk.bytes;
        if !self.decoder.is_inside() {
            let bit = match self.place {
                Boundary::Block(bit) => bit,
                Boundary::Member(byte) if chunk.is_last() && byte == input.len() => {
                    self.flush()?;
                    self.is_over = true;
                    return Ok(());
                }
                Boundary::Member(byte) => {
                    let data = member::data(input, byte).map_err(|error| self.damage(error))?;
                    self.base = self.at;
                    let long = || self.damage(InflateError("a gzip header exceeds the maximum length"));
                    data.ok_or_else(|| if chunk.is_last() { self.cut(input.len()) } else { long() })? * 8
                }
            };
            self.decoder.go(input, bit);
        }
        let mut output = Output { data: &mut self.data, at: self.at, base: self.base };
        let pause = self.decoder.run(input, chunk.limit(), &mut output);
        self.at = output.at;
        self.place = Boundary::Block(self.decoder.bits.position());
        match pause {
            Err(_) if !self.decoder.bits.is_within(input) => return Err(self.cut(input.len())),
            Err(fault) => return Err(self.damage(fault)),
            Ok(Pause::Room) => self.flush()?,
            Ok(Pause::Input) => {
                let own = self.input.leave()?;
                self.decoder.bits.rebase(own);
                self.place = self.place.rebase(own);
            }
            Ok(Pause::Block { is_final: false }) => self.place = Boundary::block(input, self.place.bit()),
            Ok(Pause::Block { is_final: true }) => {
                let at = self.decoder.bits.position().div_ceil(8);
                let trailer = Trailer::read(input, at).ok_or_else(|| self.cut(input.len()))?;
                self.ends.push(End { at: self.at - WINDOW, trailer });
                self.place = Boundary::Member(at + TRAILER);
            }
        }
        Ok(())
    }

    /// Queues the bytes that were decoded in order.
    fn flush(&mut self) -> Result<(), BoundsError> {
        let mut next = room(&self.buffers);
        copy(&mut next, 0, part(&self.data, self.at - WINDOW..self.at)?)?;
        let data = Data::Bytes(std::mem::replace(&mut self.data, next));
        let piece = Piece { data, from: WINDOW, to: self.at };
        self.base = self.base.saturating_sub(self.at - WINDOW);
        self.at = WINDOW;
        let pieces = vec![piece];
        let sums = Checksums::of(&pieces, &std::mem::take(&mut self.ends))?;
        self.ready.push_back(Ready::Now((pieces, sums)));
        Ok(())
    }

    /// Between two blocks, advances to the chunk in which the next block begins. A block begins before the end of its chunk, so
    /// the bytes after the chunk suffice for the block's header.
    fn leave_chunks(&mut self) -> io::Result<()> {
        let is_behind = |chunk: &Chunk, place: Boundary| !chunk.is_last() && place.bit() >= chunk.own * 8;
        while !self.decoder.is_inside() && self.input.first().is_some_and(|chunk| is_behind(&chunk, self.place)) {
            self.place = self.place.rebase(self.input.leave()?);
        }
        Ok(())
    }

    /// Returns true if more results may wait to be read. They may hold at most half of the pool's permits: if they held all,
    /// nothing could be decoded ahead of the next read.
    fn has_room(&self) -> bool {
        self.pool.is_some_and(|pool| self.ready.len() < pool.threads())
    }

    /// Takes the content that was decoded ahead from here on, if any. Waits for it if there is nothing else to return.
    fn take_decoded(&mut self) -> io::Result<bool> {
        let Some(pool) = self.pool.filter(|_| !self.decoder.is_inside() && !self.is_over) else { return Ok(false) };
        let Some((decoded, permit)) = self.input.decoded(self.place, self.ready.is_empty()) else { return Ok(false) };
        self.flush()?;
        let window = Window::new(part(&self.data, self.base..WINDOW)?)?;
        let tail = decoded.tail(&window).map_err(|error| self.damage(error))?;
        self.base = WINDOW - tail.len();
        copy(&mut self.data, self.base, &tail)?;
        self.place = decoded.to;
        let answer = pool.run_first(move |_| decoded.resolve(&window));
        self.ready.push_back(Ready::Soon { answer, come: None, permit });
        self.leave_chunks()?;
        Ok(true)
    }

    fn damage(&self, error: InflateError) -> io::Error {
        GzipError::Corrupt { offset: self.input.offset(self.place.bit() / 8), error }.into()
    }

    /// The error for data that end after `bytes` of the last chunk.
    fn cut(&self, bytes: usize) -> io::Error {
        GzipError::Truncated { length: self.input.offset(bytes) }.into()
    }
}

/// A buffer for decoding in order.
fn room(buffers: &Arc<BufferPool<u8>>) -> PooledBuf<u8> {
    let mut data = buffers.take();
    data.resize(WINDOW + PIECE + MARGIN, 0);
    data
}

impl BufRead for Gunzip<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.pieces.front().is_none_or(Piece::is_empty) {
            let is_there = self.pieces.pop_front().is_some() || self.advance()?;
            if !is_there {
                return Ok(&[]);
            }
        }
        Ok(self.pieces.front().map_or(Ok(&[][..]), Piece::bytes)?)
    }

    fn consume(&mut self, amount: usize) {
        if let Some(piece) = self.pieces.front_mut() {
            piece.from = (piece.from + amount).min(piece.to);
        }
    }
}

impl Read for Gunzip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
