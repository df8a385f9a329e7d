//! Streams between threads: one reads, another may watch the bytes (to hash them), a third decodes. Bytes pass between them in
//! blocks of 512 KiB, at most four of which wait.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::bounds::{BoundsError, copy, part, part_mut};
use crate::error::UnpackError;
use crate::pool::{BufferPool, PooledBuf};

/// New bytes in one block. Blocks are large enough that passing them between threads costs almost nothing.
pub(crate) const BLOCK: usize = if cfg!(test) { 64 << 10 } else { 512 << 10 };

/// Bytes at the end of a block that the next block repeats, so that a decoder of one block can read that far into the next.
pub(crate) const OVERLAP: usize = BLOCK / 4;

/// Blocks that may wait between two threads, 2.5 MiB in total.
const WAITING: usize = 4;

/// A flag that stops the reading threads of all pipes that share it.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Stops every reading thread at its next block, with an error from its pipe.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true after a call of [`cancel`](Self::cancel).
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes of a stream. All blocks have [`OVERLAP`] + [`BLOCK`] bytes, except the last one or two.
#[derive(Debug)]
struct PipeBlock {
    bytes: PooledBuf<u8>,
    /// Number of bytes repeated from the end of the previous block.
    again: usize,
}

impl PipeBlock {
    fn new_bytes(&self) -> Result<&[u8], BoundsError> {
        part(&self.bytes, self.again..)
    }
}

/// Divides bytes into blocks.
#[derive(Debug)]
struct BlockBuilder {
    bytes: PooledBuf<u8>,
    again: usize,
    filled: usize,
    buffers: Arc<BufferPool<u8>>,
}

impl BlockBuilder {
    fn new() -> Self {
        let buffers: Arc<BufferPool<u8>> = Arc::default();
        Self { bytes: room(&buffers), again: 0, filled: 0, buffers }
    }

    /// Room for the next bytes; empty if the block is full.
    fn room(&mut self) -> Result<&mut [u8], BoundsError> {
        part_mut(&mut self.bytes, self.filled..)
    }

    /// Adds as many bytes as fit. Returns the block if it is full, and the remaining bytes.
    fn add<'b>(&mut self, bytes: &'b [u8]) -> Result<(Option<PipeBlock>, &'b [u8]), BoundsError> {
        let room = self.room()?;
        let (now, later) = bytes.split_at(bytes.len().min(room.len()));
        copy(room, 0, now)?;
        self.filled += now.len();
        let block = if self.room()?.is_empty() { Some(self.take()?) } else { None };
        Ok((block, later))
    }

    /// Returns the filled part of the block, and starts the next block.
    fn take(&mut self) -> Result<PipeBlock, BoundsError> {
        let mut next = room(&self.buffers);
        let again = self.filled.min(OVERLAP);
        copy(&mut next, 0, part(&self.bytes, self.filled - again..self.filled)?)?;
        let mut bytes = std::mem::replace(&mut self.bytes, next);
        bytes.truncate(self.filled);
        self.filled = again;
        Ok(PipeBlock { bytes, again: std::mem::replace(&mut self.again, again) })
    }
}

fn room(buffers: &Arc<BufferPool<u8>>) -> PooledBuf<u8> {
    let mut bytes = buffers.take();
    if bytes.is_empty() {
        // Zeroed pages from the system: the untouched part of a small stream's only block takes no memory.
        *bytes = vec![0; OVERLAP + BLOCK];
    }
    bytes.resize(OVERLAP + BLOCK, 0);
    bytes
}

/// The read end of a pipe.
#[derive(Debug)]
pub struct Pipe {
    blocks: Receiver<io::Result<PipeBlock>>,
    block: Option<PipeBlock>,
    at: usize,
    taken: Arc<AtomicU64>,
}

/// The write end of a pipe, for bytes that do not come from a [`Read`]. [`finish`](Self::finish) ends the stream; dropping the
/// writer without it ends the stream early.
#[derive(Debug)]
pub struct PipeWriter {
    sender: SyncSender<io::Result<PipeBlock>>,
    builder: BlockBuilder,
}

/// Creates a pipe between two threads, one of which writes to it.
pub fn pipe() -> (PipeWriter, Pipe) {
    with_room(WAITING)
}

fn with_room(waiting: usize) -> (PipeWriter, Pipe) {
    let (sender, blocks) = sync_channel(waiting);
    (PipeWriter { sender, builder: BlockBuilder::new() }, Pipe::new(blocks))
}

impl PipeWriter {
    /// Adds bytes to the stream; blocks while the pipe is full. Returns `false` after the reader is dropped.
    pub fn write(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let (block, later) = match self.builder.add(bytes) {
                Ok(added) => added,
                Err(error) => return self.sender.send(Err(error.into())).is_ok(),
            };
            bytes = later;
            if block.is_some_and(|block| self.sender.send(Ok(block)).is_err()) {
                return false;
            }
        }
        true
    }

    /// Sends the rest of the stream, and ends it.
    pub fn finish(mut self) {
        // A dropped reader has reported its own error.
        let _ = self.sender.send(self.builder.take().map_err(Into::into));
    }
}

/// Runs `work` on the bytes of `source`, which a new thread reads. The thread has ended when this returns.
///
/// That thread calls `progress` with the number of bytes of each block. The pipe returns errors of the source with their kind
/// and text.
pub fn with_pipe<T>(
    source: impl Read + Send,
    progress: impl Fn(u64) + Send,
    cancel: &Cancel,
    work: impl FnOnce(Pipe) -> T,
) -> T {
    thread::scope(|scope| {
        let (sender, blocks) = sync_channel(WAITING);
        scope.spawn(move || pump(source, progress, cancel, &sender));
        work(Pipe::new(blocks))
    })
}

/// Like [`with_pipe`], but another thread first calls `watch` with every block, and with an empty one at the end of the source.
/// If `watch` returns an error, the stream ends with that error in place of the block.
pub fn with_watched_pipe<T>(
    source: impl Read + Send,
    watch: impl FnMut(&[u8]) -> io::Result<()> + Send,
    progress: impl Fn(u64) + Send,
    cancel: &Cancel,
    work: impl FnOnce(Pipe) -> T,
) -> T {
    with_pipe(source, progress, cancel, |Pipe { blocks: read, .. }| {
        thread::scope(|scope| {
            let (sender, blocks) = sync_channel(WAITING);
            scope.spawn(move || pass(&read, watch, &sender));
            work(Pipe::new(blocks))
        })
    })
}

fn pass(
    read: &Receiver<io::Result<PipeBlock>>,
    mut watch: impl FnMut(&[u8]) -> io::Result<()>,
    blocks: &SyncSender<io::Result<PipeBlock>>,
) {
    for message in read {
        let watched = message.and_then(|block| {
            let bytes = block.new_bytes()?;
            watch(bytes)?;
            Ok((bytes.is_empty(), block))
        });
        let last = !matches!(&watched, Ok((false, _)));
        let message = watched.map(|(_, block)| block);
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

fn pump(mut source: impl Read, progress: impl Fn(u64), cancel: &Cancel, blocks: &SyncSender<io::Result<PipeBlock>>) {
    let mut builder = BlockBuilder::new();
    loop {
        let read = if cancel.is_cancelled() {
            Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"))
        } else {
            builder.room().map_err(Into::into).and_then(|room| fill(&mut source, room))
        };
        let last = !matches!(read, Ok(count) if count > 0);
        let message = read.and_then(|count| {
            progress(count as u64);
            builder.filled += count;
            Ok(builder.take()?)
        });
        // A dropped reader has reported its own error.
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

/// Fills the room, or a part of it at the end of the source.
fn fill(source: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(free) = room.get_mut(have..).filter(|free| !free.is_empty()) {
        match source.read(free) {
            Ok(0) => break,
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

impl Pipe {
    fn new(blocks: Receiver<io::Result<PipeBlock>>) -> Self {
        Self { blocks, block: None, at: 0, taken: Arc::default() }
    }

    /// A pipe that contains a copy of these bytes and then ends.
    pub fn of(bytes: &[u8]) -> Self {
        let (mut blocks, pipe) = with_room(bytes.len() / BLOCK + 2);
        blocks.write(bytes);
        blocks.finish();
        pipe
    }

    /// A live counter of the bytes consumed from the pipe.
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// The next whole block, including the bytes repeated from the previous one and any consumed bytes. A block of fewer than
    /// [`OVERLAP`] + [`BLOCK`] bytes is the last; `None` after it.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<PooledBuf<u8>>> {
        self.receive()?;
        let block = self.block.take();
        let new = block.as_ref().map_or(0, |block| block.bytes.len() - self.at);
        self.taken.fetch_add(new as u64, Ordering::Relaxed);
        Ok(block.map(|block| block.bytes))
    }

    /// Ensures a current block with unread bytes, except at the end.
    fn receive(&mut self) -> io::Result<()> {
        if self.block.as_ref().is_none_or(|block| self.at == block.bytes.len()) {
            // After the last block the sender is dropped, so later calls also see the end.
            self.block = self.blocks.recv().ok().transpose().map_err(UnpackError::Source)?;
            self.at = self.block.as_ref().map_or(0, |block| block.again);
        }
        Ok(())
    }
}

impl BufRead for Pipe {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.receive()?;
        Ok(self.block.as_ref().map_or(Ok(&[][..]), |block| part(&block.bytes, self.at..))?)
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
        self.taken.fetch_add(amount as u64, Ordering::Relaxed);
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
