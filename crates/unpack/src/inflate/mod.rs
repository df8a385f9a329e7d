//! gzip (RFC 1952), on as many processors as there are. What cannot be decoded ahead is decoded in order, so that every stream
//! comes out, and each member is verified against the CRC-32 and the size in its trailer.
//!
//! Memory, for each stretch that the [`Pool`] permits, two for each thread: its [`STRETCH`] and [`OVERLAP`], and at most three
//! bytes for each of the [`MOST`] that it may unpack to, two of them where it begins and one behind. With two threads that is
//! 39 MiB at most, and 154 with eight; besides, each layer has the blocks that wait in its [`pipe`].

#![allow(clippy::cast_possible_truncation, reason = "bits are cut off on purpose here, everywhere")]
#![allow(clippy::inline_always, reason = "the inner loop must have no calls in it")]

mod bits;
mod code;
mod decode;
mod find;
mod header;
mod input;
mod member;
mod middle;
mod stretch;
mod sum;

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::task::Poll;

use decode::{Decoder, MARGIN, Output, Pause, WINDOW};
use find::Place;
use input::Input;
use member::{TRAILER, Trailer};
use stretch::{End, Stretch, Window};
use sum::{Sum, Sums};

use crate::pipe::{self, Pipe};
use crate::pool::{Answer, Lent, Permit, Pool, Shelf};

pub use middle::Middle;

/// Compressed bytes that are decoded by one thread at a time.
const STRETCH: usize = pipe::BLOCK;

/// Compressed bytes behind a stretch in which its last block must end, or it is decoded in order.
const OVERLAP: usize = pipe::OVERLAP;

/// Symbols of one stretch that are decoded ahead. What unpacks to more is decoded in order.
const MOST: usize = 6 * STRETCH;

/// Unpacked bytes that are handed over at once where they are decoded in order.
const PIECE: usize = 256 << 10;

/// What is wrong with compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(&'static str);

/// Where compressed data are wrong, and what is.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// They end too early: so many there are.
    #[error("the gzip data end after {0} bytes, in the middle")]
    End(u64),
    /// Near this byte of the stream.
    #[error("the gzip data are damaged near byte {0}: {1}")]
    Fault(u64, Fault),
}

/// The bytes in a gzip stream of one member or many.
#[derive(Debug)]
pub struct Gunzip<'p> {
    input: Input<'p>,
    pool: Option<&'p Pool>,
    /// Where decoding in order stands: in the first stretch of the input.
    decoder: Decoder,
    place: Place,
    /// The window, and what was decoded in order and is not handed over yet.
    data: Lent<u8>,
    at: usize,
    base: usize,
    ends: Vec<End>,
    is_over: bool,
    /// What comes next, in order.
    ready: VecDeque<Ready>,
    /// Of the member so far.
    sum: Sum,
    /// What is handed over now, and the leave to hold it.
    pieces: VecDeque<Piece>,
    permit: Option<Permit>,
    shelf: Arc<Shelf<u8>>,
}

/// Unpacked bytes: a part of `data`.
#[derive(Debug)]
struct Piece {
    data: Data,
    from: usize,
    to: usize,
}

/// Where unpacked bytes lie.
#[derive(Debug)]
enum Data {
    Bytes(Lent<u8>),
    /// Symbols, of which bytes were made where they lie.
    Symbols(Lent<u16>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        let data = match &self.data {
            Data::Bytes(data) => data.as_slice(),
            Data::Symbols(data) => bytemuck::cast_slice(data),
        };
        data.get(self.from..self.to).unwrap_or_default()
    }
}

/// Unpacked bytes, with what they sum up to.
type Resolved = (Vec<Piece>, Sums);

#[derive(Debug)]
enum Ready {
    Now(Resolved),
    Soon {
        answer: Answer<Result<Resolved, Fault>>,
        /// The answer, once it was asked for and has come.
        come: Option<Result<Resolved, Fault>>,
        permit: Permit,
    },
    /// Nothing comes behind it.
    Never(io::Error),
}

impl Ready {
    /// Whether nobody has to wait for it.
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
    /// What `source` unpacks to; with a pool, decoded ahead by its threads.
    pub fn new(source: &'p mut Pipe, pool: Option<&'p Pool>) -> Self {
        let shelf = Arc::default();
        Self {
            input: Input::new(source, pool),
            pool,
            decoder: Decoder::default(),
            place: Place::Member(0),
            data: room(&shelf),
            at: WINDOW,
            base: WINDOW,
            ends: Vec::new(),
            is_over: false,
            ready: VecDeque::new(),
            sum: Sum::default(),
            pieces: VecDeque::new(),
            permit: None,
            shelf,
        }
    }

    /// Gets the next pieces; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.permit = None;
        loop {
            self.input.read_ahead()?;
            self.leave_stretches()?;
            while self.has_room() && self.take_decoded()? {}
            // While the first that was decoded ahead is not ready yet, what nobody decodes ahead is decoded here.
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
                let gone = || io::Error::other("decompression failed: this is a defect of ncclcheck");
                let answer = come.or_else(|| answer.wait());
                answer.ok_or_else(gone)?.map_err(|fault| self.damage(fault))?
            }
            Ready::Never(error) => return Err(error),
        };
        self.sum.follow(&sums).map_err(|fault| self.damage(fault))?;
        self.pieces.extend(pieces);
        Ok(())
    }

    /// Decodes in order: to the end of a block, of the stretch, or of the room.
    fn decode(&mut self) -> io::Result<()> {
        let Some(stretch) = self.input.first() else {
            self.is_over = true;
            return Ok(());
        };
        let input = &*stretch.bytes;
        if !self.decoder.is_inside() {
            let bit = match self.place {
                Place::Block(bit) => bit,
                Place::Member(byte) if stretch.is_last() && byte == input.len() => {
                    self.flush();
                    self.is_over = true;
                    return Ok(());
                }
                Place::Member(byte) => {
                    let data = member::data(input, byte).map_err(|fault| self.damage(fault))?;
                    self.base = self.at;
                    let long = || self.damage(Fault("a gzip header is longer than any that is read here"));
                    data.ok_or_else(|| if stretch.is_last() { self.cut(input.len()) } else { long() })? * 8
                }
            };
            self.decoder.go(input, bit);
        }
        let mut output = Output { data: &mut self.data, at: self.at, base: self.base };
        let pause = self.decoder.run(input, stretch.limit(), &mut output);
        self.at = output.at;
        self.place = Place::Block(self.decoder.bits.position());
        match pause {
            Err(_) if !self.decoder.bits.is_within(input) => return Err(self.cut(input.len())),
            Err(fault) => return Err(self.damage(fault)),
            Ok(Pause::Room) => self.flush(),
            Ok(Pause::Input) => {
                let own = self.input.leave()?;
                self.decoder.bits.rebase(own);
                self.place = self.place.rebase(own);
            }
            Ok(Pause::Block { is_final: false }) => self.place = Place::block(input, self.place.bit()),
            Ok(Pause::Block { is_final: true }) => {
                let at = self.decoder.bits.position().div_ceil(8);
                let trailer = Trailer::read(input, at).ok_or_else(|| self.cut(input.len()))?;
                self.ends.push(End { at: self.at - WINDOW, trailer });
                self.place = Place::Member(at + TRAILER);
            }
        }
        Ok(())
    }

    /// Hands over what was decoded in order.
    fn flush(&mut self) {
        let mut next = room(&self.shelf);
        let window = self.data.get(self.at - WINDOW..self.at).unwrap_or_default();
        next.get_mut(..WINDOW).unwrap_or_default().copy_from_slice(window);
        let data = Data::Bytes(std::mem::replace(&mut self.data, next));
        let piece = Piece { data, from: WINDOW, to: self.at };
        self.base = self.base.saturating_sub(self.at - WINDOW);
        self.at = WINDOW;
        let sums = Sums::of([piece.bytes()], &std::mem::take(&mut self.ends));
        self.ready.push_back(Ready::Now((vec![piece], sums)));
    }

    /// Between two blocks, goes on to the stretch in which the next one begins: a block begins before the end of its stretch,
    /// so that what follows the stretch is enough for the block's header.
    fn leave_stretches(&mut self) -> io::Result<()> {
        let is_behind = |stretch: &Stretch, place: Place| !stretch.is_last() && place.bit() >= stretch.own * 8;
        while !self.decoder.is_inside() && self.input.first().is_some_and(|stretch| is_behind(&stretch, self.place)) {
            self.place = self.place.rebase(self.input.leave()?);
        }
        Ok(())
    }

    /// Whether more may be made ready. It has at most half of the pool's leave: if all of it waited to be read, nothing could
    /// be decoded ahead of what is read next.
    fn has_room(&self) -> bool {
        self.pool.is_some_and(|pool| self.ready.len() < pool.threads())
    }

    /// Goes over what was decoded ahead from here on, if that is so. It is waited for if there is nothing to hand over.
    fn take_decoded(&mut self) -> io::Result<bool> {
        let Some(pool) = self.pool.filter(|_| !self.decoder.is_inside() && !self.is_over) else { return Ok(false) };
        let Some((decoded, permit)) = self.input.decoded(self.place, self.ready.is_empty()) else { return Ok(false) };
        self.flush();
        let window = Window::new(self.data.get(self.base..WINDOW).unwrap_or_default());
        let tail = decoded.tail(&window).map_err(|fault| self.damage(fault))?;
        self.base = WINDOW - tail.len();
        self.data.get_mut(self.base..WINDOW).unwrap_or_default().copy_from_slice(&tail);
        self.place = decoded.to;
        let answer = pool.run_first(move |_| decoded.resolve(&window));
        self.ready.push_back(Ready::Soon { answer, come: None, permit });
        self.leave_stretches()?;
        Ok(true)
    }

    fn damage(&self, fault: Fault) -> io::Error {
        let at = self.input.offset(self.place.bit() / 8);
        io::Error::new(io::ErrorKind::InvalidData, Damage::Fault(at, fault))
    }

    /// The data end with these bytes of the last stretch.
    fn cut(&self, bytes: usize) -> io::Error {
        io::Error::new(io::ErrorKind::UnexpectedEof, Damage::End(self.input.offset(bytes)))
    }
}

/// A buffer for what is decoded in order.
fn room(shelf: &Arc<Shelf<u8>>) -> Lent<u8> {
    let mut data = shelf.lend();
    data.resize(WINDOW + PIECE + MARGIN, 0);
    data
}

impl BufRead for Gunzip<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.pieces.front().is_none_or(|piece| piece.bytes().is_empty()) {
            let is_there = self.pieces.pop_front().is_some() || self.advance()?;
            if !is_there {
                return Ok(&[]);
            }
        }
        Ok(self.pieces.front().map(Piece::bytes).unwrap_or_default())
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
