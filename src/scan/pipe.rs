//! Reading on one thread, hashing on a second, unpacking on others: the bytes of a blob pass between them in large blocks.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::model::Meter;
use crate::pool::{Lent, Shelf};

/// Bytes of one block. Large enough that handing it over costs nothing.
const BLOCK: usize = 256 << 10;

/// Blocks that may wait between two threads: 2 MiB.
const WAITING: usize = 8;

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

/// The reading end.
#[derive(Debug)]
pub struct Pipe {
    blocks: Receiver<io::Result<Lent<u8>>>,
    block: Lent<u8>,
    at: usize,
}

/// The writing end, for who is handed bytes and does not read them.
#[derive(Debug)]
pub struct Blocks {
    sender: SyncSender<io::Result<Lent<u8>>>,
    block: Lent<u8>,
    shelf: Arc<Shelf<u8>>,
}

/// A pipe between two threads.
pub fn pipe() -> (Blocks, Pipe) {
    let (sender, blocks) = sync_channel(WAITING);
    let shelf: Arc<Shelf<u8>> = Arc::default();
    let (first, block) = (shelf.lend(), shelf.lend());
    (Blocks { sender, block, shelf }, Pipe { blocks, block: first, at: 0 })
}

impl Blocks {
    /// Hands over more bytes; false when nobody reads them any more.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        self.block.extend_from_slice(bytes);
        if self.block.len() < BLOCK {
            return true;
        }
        let mut next = self.shelf.lend();
        next.clear();
        self.sender.send(Ok(std::mem::replace(&mut self.block, next))).is_ok()
    }

    /// The end: the rest is handed over.
    pub fn finish(self) {
        // Nobody reads any more once the scan has failed, and that is told by the scan.
        let _ = self.sender.send(Ok(self.block));
    }
}

/// Runs `work` on the bytes of `source`, which is read by a thread of its own. The thread is gone when this returns.
pub fn with_pipe<T>(
    source: impl Read + Send,
    meter: Box<dyn Meter>,
    cancel: &Cancel,
    work: impl FnOnce(Pipe) -> T,
) -> T {
    thread::scope(|scope| {
        let (sender, blocks) = sync_channel(WAITING);
        let shelf: Arc<Shelf<u8>> = Arc::default();
        let block = shelf.lend();
        scope.spawn(move || pump(source, &*meter, cancel, &sender, &shelf));
        work(Pipe { blocks, block, at: 0 })
    })
}

/// The same, where `watch` sees every block first, on another thread: none of no bytes but the last, at the end of the source.
/// What it says against one comes in that block's place.
pub fn with_watched_pipe<T>(
    source: impl Read + Send,
    watch: impl FnMut(&[u8]) -> io::Result<()> + Send,
    meter: Box<dyn Meter>,
    cancel: &Cancel,
    work: impl FnOnce(Pipe) -> T,
) -> T {
    with_pipe(source, meter, cancel, |Pipe { blocks: read, block, at }| {
        thread::scope(|scope| {
            let (sender, blocks) = sync_channel(WAITING);
            scope.spawn(move || pass(&read, watch, &sender));
            work(Pipe { blocks, block, at })
        })
    })
}

fn pass(
    read: &Receiver<io::Result<Lent<u8>>>,
    mut watch: impl FnMut(&[u8]) -> io::Result<()>,
    blocks: &SyncSender<io::Result<Lent<u8>>>,
) {
    for message in read {
        let message = message.and_then(|block| watch(&block).map(|()| block));
        let last = !matches!(&message, Ok(block) if !block.is_empty());
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

fn pump(
    mut source: impl Read,
    meter: &dyn Meter,
    cancel: &Cancel,
    blocks: &SyncSender<io::Result<Lent<u8>>>,
    shelf: &Arc<Shelf<u8>>,
) {
    loop {
        let mut block = shelf.lend();
        block.resize(BLOCK, 0);
        let read = if cancel.is_cancelled() {
            Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"))
        } else {
            fill(&mut source, &mut block)
        };
        let last = !matches!(read, Ok(count) if count > 0);
        let message = read.map(|count| {
            block.truncate(count);
            meter.add(count as u64);
            block
        });
        // Nobody listens any more once the scan has failed.
        if blocks.send(message).is_err() || last {
            return;
        }
    }
}

/// Fills the block as far as the source goes.
fn fill(source: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(free) = block.get_mut(have..).filter(|free| !free.is_empty()) {
        match source.read(free) {
            Ok(0) => break,
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

impl BufRead for Pipe {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.block.len() {
            match self.blocks.recv() {
                Ok(block) => self.block = block.map_err(wrap)?,
                // After the last, empty block the sender is gone, and the end stays the end.
                Err(_gone) => self.block.clear(),
            }
            self.at = 0;
        }
        Ok(self.block.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at = (self.at + amount).min(self.block.len());
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
