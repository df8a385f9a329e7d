//! Reading and hashing on one thread, unpacking on another: the bytes of a blob pass between them in large blocks.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::model::Meter;

/// Bytes of one block. Large enough that handing it over costs nothing.
const BLOCK: usize = 256 << 10;

/// Blocks that may wait: 4 MiB for each layer in flight.
const WAITING: usize = 16;

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
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
}

/// The writing end, for who is handed bytes and does not read them.
#[derive(Debug)]
pub struct Blocks {
    sender: SyncSender<io::Result<Vec<u8>>>,
    block: Vec<u8>,
}

/// A pipe between two threads.
pub fn pipe() -> (Blocks, Pipe) {
    let (sender, blocks) = sync_channel(WAITING);
    (Blocks { sender, block: Vec::new() }, Pipe { blocks, block: Vec::new(), at: 0 })
}

impl Blocks {
    /// Hands over more bytes; false when nobody reads them any more.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        self.block.extend_from_slice(bytes);
        self.block.len() < BLOCK || self.sender.send(Ok(std::mem::take(&mut self.block))).is_ok()
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
        scope.spawn(move || pump(source, &*meter, cancel, &sender));
        work(Pipe { blocks, block: Vec::new(), at: 0 })
    })
}

fn pump(mut source: impl Read, meter: &dyn Meter, cancel: &Cancel, blocks: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut block = vec![0; BLOCK];
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
            // After the last, empty block the sender is gone, and the end stays the end.
            self.block = self.blocks.recv().unwrap_or_else(|_| Ok(Vec::new())).map_err(wrap)?;
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
