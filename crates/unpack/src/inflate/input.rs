//! The compressed stream in stretches, the first of which is the one that is read, and what is decoded of the others ahead.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use super::find::Place;
use super::stretch::{Decoded, Stretch, speculate};
use super::{MOST, OVERLAP, STRETCH};
use crate::pipe::Pipe;
use crate::pool::{Answer, Permit, Pool};

/// The stream.
#[derive(Debug)]
pub(super) struct Input<'p> {
    source: &'p mut Pipe,
    pool: Option<&'p Pool>,
    stretches: VecDeque<Ahead>,
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
    Running(Answer<Option<Decoded>>, Permit),
    Done(Box<Decoded>, Permit),
}

impl<'p> Input<'p> {
    pub(super) const fn new(source: &'p mut Pipe, pool: Option<&'p Pool>) -> Self {
        Self { source, pool, stretches: VecDeque::new(), is_read: false, offset: 0 }
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
                    Conjecture::Running(pool.run_ahead(move |buffers| speculate(&stretch, MOST, buffers)), permit)
                }
                _ => Conjecture::None,
            };
            self.stretches.push_back(Ahead { stretch, conjecture });
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Stretch> {
        let bytes = self.source.next_block()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.is_read = bytes.len() < STRETCH + OVERLAP;
        let own = if self.is_read { bytes.len() } else { STRETCH };
        Ok(Stretch { bytes, own })
    }

    /// The stretch that is read.
    pub(super) fn first(&self) -> Option<Arc<Stretch>> {
        self.stretches.front().map(|ahead| Arc::clone(&ahead.stretch))
    }

    /// Whether somebody decodes the stretch that is read.
    pub(super) fn is_decoded_ahead(&self) -> bool {
        self.stretches.front().is_some_and(|ahead| matches!(ahead.conjecture, Conjecture::Running(..)))
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
            // What nobody has begun to decode ahead is decoded in order: that is less work.
            Conjecture::Running(answer, _) if answer.take_back() => Conjecture::None,
            Conjecture::Running(answer, permit) => {
                let decoded = if wait { Poll::Ready(answer.wait()) } else { answer.poll() };
                match decoded {
                    Poll::Ready(Some(Some(decoded))) => Conjecture::Done(Box::new(decoded), permit),
                    Poll::Pending => Conjecture::Running(answer, permit),
                    // Nothing was found, or whoever looked is gone.
                    Poll::Ready(_) => Conjecture::None,
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
