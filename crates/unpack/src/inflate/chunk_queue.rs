//! The compressed stream as a queue of chunks. The reader consumes the first; threads decode the others ahead.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use super::block_finder::Boundary;
use super::chunk::{Chunk, Decoded, speculate};
use super::{CHUNK, MOST, OVERLAP};
use crate::pipe::Pipe;
use crate::pool::{JobHandle, Permit, Pool};

/// The queue of chunks.
#[derive(Debug)]
pub(super) struct ChunkQueue<'p> {
    source: &'p mut Pipe,
    pool: Option<&'p Pool>,
    chunks: VecDeque<QueuedChunk>,
    is_read: bool,
    /// Bytes before the first chunk.
    offset: u64,
}

#[derive(Debug)]
struct QueuedChunk {
    chunk: Arc<Chunk>,
    speculation: Speculation,
}

#[derive(Debug)]
enum Speculation {
    None,
    Running(JobHandle<Option<Decoded>>, Permit),
    Done(Box<Decoded>, Permit),
}

impl<'p> ChunkQueue<'p> {
    pub(super) const fn new(source: &'p mut Pipe, pool: Option<&'p Pool>) -> Self {
        Self { source, pool, chunks: VecDeque::new(), is_read: false, offset: 0 }
    }

    /// Reads two chunks, and as many more as may be decoded ahead.
    pub(super) fn read_ahead(&mut self) -> io::Result<()> {
        while !self.is_read {
            // A chunk that is decoded in order needs no permit.
            let permit = self.pool.filter(|_| !self.chunks.is_empty()).and_then(Pool::permit);
            if permit.is_none() && self.chunks.len() >= 2 {
                break;
            }
            let chunk = Arc::new(self.read()?);
            let speculation = match (self.pool, permit) {
                (Some(pool), Some(permit)) => {
                    let chunk = Arc::clone(&chunk);
                    Speculation::Running(pool.run_ahead(move |buffers| speculate(&chunk, MOST, buffers)), permit)
                }
                _ => Speculation::None,
            };
            self.chunks.push_back(QueuedChunk { chunk, speculation });
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Chunk> {
        let bytes = self.source.next_block()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.is_read = bytes.len() < CHUNK + OVERLAP;
        let own = if self.is_read { bytes.len() } else { CHUNK };
        Ok(Chunk { bytes, own })
    }

    /// The first chunk.
    pub(super) fn first(&self) -> Option<Arc<Chunk>> {
        self.chunks.front().map(|ahead| Arc::clone(&ahead.chunk))
    }

    /// Returns true if a thread decodes the first chunk.
    pub(super) fn is_decoded_ahead(&self) -> bool {
        self.chunks.front().is_some_and(|ahead| matches!(ahead.speculation, Speculation::Running(..)))
    }

    /// Advances to the next chunk. Returns the number of bytes by which positions shift.
    pub(super) fn leave(&mut self) -> io::Result<usize> {
        self.read_ahead()?;
        let own = self.chunks.pop_front().map_or(0, |ahead| ahead.chunk.own);
        self.offset += own as u64;
        Ok(own)
    }

    /// A byte's offset in the whole stream.
    pub(super) const fn offset(&self, byte: usize) -> u64 {
        self.offset + byte as u64
    }

    /// The content that was decoded ahead from exactly this boundary of the first chunk on. While it is being decoded, waits for
    /// it or returns `None`.
    pub(super) fn decoded(&mut self, place: Boundary, wait: bool) -> Option<(Decoded, Permit)> {
        let speculation = &mut self.chunks.front_mut()?.speculation;
        *speculation = match std::mem::replace(speculation, Speculation::None) {
            // A job that has not started is taken back: decoding in order is less work.
            Speculation::Running(answer, _) if answer.take_back() => Speculation::None,
            Speculation::Running(answer, permit) => {
                let decoded = if wait { Poll::Ready(answer.wait()) } else { answer.poll() };
                match decoded {
                    Poll::Ready(Some(Some(decoded))) => Speculation::Done(Box::new(decoded), permit),
                    Poll::Pending => Speculation::Running(answer, permit),
                    // The job found no block, or panicked.
                    Poll::Ready(_) => Speculation::None,
                }
            }
            known => known,
        };
        match std::mem::replace(speculation, Speculation::None) {
            Speculation::Done(decoded, permit) if decoded.from == place => Some((*decoded, permit)),
            // The content starts at a false boundary.
            Speculation::Done(decoded, _) if decoded.from.bit() <= place.bit() => None,
            later => {
                *speculation = later;
                None
            }
        }
    }
}
