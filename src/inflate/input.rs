//! The compressed stream in stretches, the first of which is the one that is read, and what is decoded of the others ahead.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use super::find::Place;
use super::stretch::{Decoded, Stretch, speculate};
use super::{MOST, OVERLAP, STRETCH};
use crate::pool::{Lent, Permit, Pool, Shelf};

/// The stream.
#[derive(Debug)]
pub(super) struct Input<'p, R> {
    source: R,
    pool: Option<&'p Pool>,
    stretches: VecDeque<Ahead>,
    /// For the next stretch. It begins with what was read behind the last one's own bytes.
    next: Lent<u8>,
    /// How much that is.
    rest: usize,
    shelf: Arc<Shelf<u8>>,
    is_read: bool,
    /// Bytes before the first stretch.
    offset: u64,
}

#[derive(Debug)]
struct Ahead {
    stretch: Arc<Stretch>,
    conjecture: Conjecture,
}

#[derive(Debug)]
enum Conjecture {
    None,
    Running(Receiver<Option<Decoded>>, Permit),
    Done(Box<Decoded>, Permit),
}

impl<'p, R: Read> Input<'p, R> {
    pub(super) fn new(source: R, pool: Option<&'p Pool>) -> Self {
        let shelf: Arc<Shelf<u8>> = Arc::default();
        Self { source, pool, stretches: VecDeque::new(), next: shelf.lend(), rest: 0, shelf, is_read: false, offset: 0 }
    }

    /// Reads two stretches, and as many more as may be decoded ahead.
    pub(super) fn read_ahead(&mut self) -> io::Result<()> {
        while !self.is_read {
            // What is decoded in order anyway needs no leave.
            let permit = self.pool.filter(|_| !self.stretches.is_empty()).and_then(Pool::permit);
            if permit.is_none() && self.stretches.len() >= 2 {
                break;
            }
            let stretch = Arc::new(self.read()?);
            let conjecture = match (self.pool, permit) {
                (Some(pool), Some(permit)) => {
                    let stretch = Arc::clone(&stretch);
                    Conjecture::Running(pool.run(move |buffers| speculate(&stretch, MOST, buffers)), permit)
                }
                _ => Conjecture::None,
            };
            self.stretches.push_back(Ahead { stretch, conjecture });
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Stretch> {
        const WANTED: usize = STRETCH + OVERLAP;
        let mut bytes = std::mem::replace(&mut self.next, self.shelf.lend());
        bytes.resize(WANTED, 0);
        let len = self.rest + fill(&mut self.source, bytes.get_mut(self.rest..).unwrap_or_default())?;
        bytes.truncate(len);
        self.is_read = len < WANTED;
        let own = if self.is_read { len } else { STRETCH };
        let rest = bytes.get(own..).unwrap_or_default();
        if !self.is_read {
            self.next.resize(WANTED, 0);
            self.next.get_mut(..rest.len()).unwrap_or_default().copy_from_slice(rest);
        }
        self.rest = rest.len();
        Ok(Stretch { bytes, own })
    }

    /// The stretch that is read.
    pub(super) fn first(&self) -> Option<Arc<Stretch>> {
        self.stretches.front().map(|ahead| Arc::clone(&ahead.stretch))
    }

    /// Goes on to the next stretch. Returns by how many bytes places are less in it.
    pub(super) fn leave(&mut self) -> io::Result<usize> {
        self.read_ahead()?;
        let own = self.stretches.pop_front().map_or(0, |ahead| ahead.stretch.own);
        self.offset += own as u64;
        Ok(own)
    }

    /// A byte's place in the whole stream.
    pub(super) const fn offset(&self, byte: usize) -> u64 {
        self.offset + byte as u64
    }

    /// What was decoded ahead from just this place of the first stretch on. If nobody knows yet, waits for it or does without.
    pub(super) fn decoded(&mut self, place: Place, wait: bool) -> Option<(Decoded, Permit)> {
        let conjecture = &mut self.stretches.front_mut()?.conjecture;
        *conjecture = match std::mem::replace(conjecture, Conjecture::None) {
            Conjecture::Running(answer, permit) => {
                let decoded = if wait { answer.recv().map_err(TryRecvError::from) } else { answer.try_recv() };
                match decoded {
                    Ok(Some(decoded)) => Conjecture::Done(Box::new(decoded), permit),
                    Err(TryRecvError::Empty) => Conjecture::Running(answer, permit),
                    // Nothing was found, or whoever looked is gone.
                    Ok(None) | Err(TryRecvError::Disconnected) => Conjecture::None,
                }
            }
            known => known,
        };
        match std::mem::replace(conjecture, Conjecture::None) {
            Conjecture::Done(decoded, permit) if decoded.from == place => Some((*decoded, permit)),
            // It begins where no block does.
            Conjecture::Done(decoded, _) if decoded.from.bit() <= place.bit() => None,
            later => {
                *conjecture = later;
                None
            }
        }
    }
}

/// Reads as much as there is room for, or there is. Returns how much.
fn fill(source: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(room) = to.get_mut(len..).filter(|room| !room.is_empty()) {
        match source.read(room) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
