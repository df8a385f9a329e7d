//! Reading on one thread, hashing on a second, unpacking on others: the bytes of a blob pass between them in large blocks.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::pool::{Lent, Shelf};

/// Bytes that are new in one block. Large enough that handing it over costs nothing.
pub(crate) const BLOCK: usize = if cfg!(test) { 64 << 10 } else { 512 << 10 };

/// Bytes of the block before with which a block begins again: who decodes blocks ahead can go on for so far in each.
pub(crate) const OVERLAP: usize = BLOCK / 4;

/// Blocks that may wait between two threads: 2.5 MiB.
const WAITING: usize = 4;

/// Tells all who read that the run is over.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Everybody stops at the next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An error of the medium, carried through the decoder unchanged: it may come out of a decoder itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(#[source] io::Error);

/// Bytes of a stream. All blocks are of [`OVERLAP`] and [`BLOCK`] together, but the last, or the last two.
#[derive(Debug)]
struct Block {
    bytes: Lent<u8>,
    /// How many of them ended the block before.
    again: usize,
}

impl Block {
    fn new_bytes(&self) -> &[u8] {
        self.bytes.get(self.again..).unwrap_or_default()
    }
}

/// Puts bytes into blocks.
#[derive(Debug)]
struct Filling {
    bytes: Lent<u8>,
    again: usize,
    filled: usize,
    shelf: Arc<Shelf<u8>>,
}

impl Filling {
    fn new() -> Self {
        let shelf: Arc<Shelf<u8>> = Arc::default();
        Self { bytes: room(&shelf), again: 0, filled: 0, shelf }
    }

    /// Where the next bytes go; empty when the block is full.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// The block as far as it is filled; the next is begun.
    fn take(&mut self) -> Block {
        let mut next = room(&self.shelf);
        let again = self.filled.min(OVERLAP);
        let tail = self.bytes.get(self.filled - again..self.filled).unwrap_or_default();
        next.get_mut(..again).unwrap_or_default().copy_from_slice(tail);
        let mut bytes = std::mem::replace(&mut self.bytes, next);
        bytes.truncate(self.filled);
        self.filled = again;
        Block { bytes, again: std::mem::replace(&mut self.again, again) }
    }
}

fn room(shelf: &Arc<Shelf<u8>>) -> Lent<u8> {
    let mut bytes = shelf.lend();
    if bytes.is_empty() {
        // Zeros that nobody wrote: of a small blob's only block, most is never touched, and takes no memory.
        *bytes = vec![0; OVERLAP + BLOCK];
    }
    bytes.resize(OVERLAP + BLOCK, 0);
    bytes
}

/// The reading end.
#[derive(Debug)]
pub struct Pipe {
    blocks: Receiver<io::Result<Block>>,
    block: Option<Block>,
    at: usize,
    taken: Arc<AtomicU64>,
}

/// The writing end, for who is handed bytes and does not read them.
#[derive(Debug)]
pub struct Blocks {
    sender: SyncSender<io::Result<Block>>,
    filling: Filling,
}

/// A pipe between two threads.
pub fn pipe() -> (Blocks, Pipe) {
    with_room(WAITING)
}

fn with_room(waiting: usize) -> (Blocks, Pipe) {
    let (sender, blocks) = sync_channel(waiting);
    (Blocks { sender, filling: Filling::new() }, Pipe::new(blocks))
}

impl Blocks {
    /// Hands over more bytes; false when nobody reads them any more.
    pub fn write(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let room = self.filling.room();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room.get_mut(..now.len()).unwrap_or_default().copy_from_slice(now);
            self.filling.filled += now.len();
            bytes = later;
            if self.filling.room().is_empty() && self.sender.send(Ok(self.filling.take())).is_err() {
                return false;
            }
        }
        true
    }

    /// The end: the rest is handed over.
    pub fn finish(mut self) {
        // Nobody reads any more once the scan has failed, and that is told by the scan.
        let _ = self.sender.send(Ok(self.filling.take()));
    }
}

/// Runs `work` on the bytes of `source`, which a thread of its own reads. The thread has ended when this returns.
///
/// `progress` is called with the number of bytes of each block as it is read.
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

/// The same, where `watch` sees every block first, on another thread: none of no bytes but the last, at the end of the source.
/// What it says against one comes in that block's place.
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
    read: &Receiver<io::Result<Block>>,
    mut watch: impl FnMut(&[u8]) -> io::Result<()>,
    blocks: &SyncSender<io::Result<Block>>,
) {
    for message in read {
        let message = message.and_then(|block| watch(block.new_bytes()).map(|()| block));
        let last = !matches!(&message, Ok(block) if !block.new_bytes().is_empty());
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

fn pump(mut source: impl Read, progress: impl Fn(u64), cancel: &Cancel, blocks: &SyncSender<io::Result<Block>>) {
    let mut filling = Filling::new();
    loop {
        let read = if cancel.is_cancelled() {
            Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"))
        } else {
            fill(&mut source, filling.room())
        };
        let last = !matches!(read, Ok(count) if count > 0);
        let message = read.map(|count| {
            progress(count as u64);
            filling.filled += count;
            filling.take()
        });
        // Nobody listens any more once the scan has failed.
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

/// Fills the room as far as the source goes.
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
    fn new(blocks: Receiver<io::Result<Block>>) -> Self {
        Self { blocks, block: None, at: 0, taken: Arc::default() }
    }

    /// A pipe that went through already: these bytes lie in it.
    pub fn of(bytes: &[u8]) -> Self {
        let (mut blocks, pipe) = with_room(bytes.len() / BLOCK + 2);
        blocks.write(bytes);
        blocks.finish();
        pipe
    }

    /// How many bytes were taken from it, now and later.
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// The next block, whole: with the bytes that ended the one before, and whatever was consumed of it. One of fewer bytes
    /// than [`OVERLAP`] and [`BLOCK`] together is the last. Nothing behind it.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<Lent<u8>>> {
        self.receive()?;
        let block = self.block.take();
        let new = block.as_ref().map_or(0, |block| block.bytes.len() - self.at);
        self.taken.fetch_add(new as u64, Ordering::Relaxed);
        Ok(block.map(|block| block.bytes))
    }

    /// Sees to it that there is a block of which something is left, unless it is the end.
    fn receive(&mut self) -> io::Result<()> {
        if self.block.as_ref().is_none_or(|block| self.at == block.bytes.len()) {
            // After the last block the sender is gone, and the end stays the end.
            self.block = self.blocks.recv().ok().transpose().map_err(wrap)?;
            self.at = self.block.as_ref().map_or(0, |block| block.again);
        }
        Ok(())
    }
}

impl BufRead for Pipe {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.receive()?;
        Ok(self.block.as_ref().and_then(|block| block.bytes.get(self.at..)).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
        self.taken.fetch_add(amount as u64, Ordering::Relaxed);
    }
}

fn wrap(error: io::Error) -> io::Error {
    let kind = if error.kind() == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { error.kind() };
    io::Error::new(kind, Broken(error))
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
