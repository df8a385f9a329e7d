//! Chunks of a compressed stream, which are decoded before the content preceding them is known. A match that refers to that
//! content yields markers, which stand for bytes of the preceding window, and are resolved when it is known (the method of
//! Knespel and Brunst, "Rapidgzip", HPDC 2023, section 2).

use super::InflateError;
use super::block_decoder::{BlockDecoder, MARGIN, Output, Pause, Symbol, WINDOW};
use super::block_finder::{Boundary, find};
use super::checksum::Checksums;
use super::member::{self, End, TRAILER, Trailer};
use super::{Data, Piece, Resolved};
use crate::bounds::{BoundsError, copy, part, part_mut};
use crate::pool::{DecoderBuffers, PooledBuf};

/// The lowest marker. It stands for the first byte of the window.
const MARKER: u16 = 256;

/// Symbols that are resolved together.
const AT_ONCE: usize = 64;

/// Compressed bytes.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The chunk's own bytes, and the first of the following ones.
    pub(super) bytes: PooledBuf<u8>,
    /// Number of the chunk's own bytes.
    pub(super) own: usize,
}

impl Chunk {
    /// Returns true for the last chunk of its stream.
    pub(super) fn is_last(&self) -> bool {
        self.own == self.bytes.len()
    }

    /// The limit at which a decoder pauses to continue in the next chunk. Its position, up to eight bytes before the next byte
    /// that it reads, is then in the next chunk.
    pub(super) fn limit(&self) -> usize {
        if self.is_last() { usize::MAX } else { self.own + 8 }
    }
}

/// Content of a chunk between two boundaries, as far as it is known without the preceding content.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) from: Boundary,
    pub(super) to: Boundary,
    /// Bytes and markers.
    symbols: Part<u16>,
    /// The bytes after them, without markers.
    bytes: Option<Part<u8>>,
    /// Ends of members, in order.
    pub(super) ends: Vec<End>,
}

/// Decoded data after a window, in a buffer.
#[derive(Debug)]
struct Part<T> {
    data: PooledBuf<T>,
    to: usize,
}

impl<T> Part<T> {
    fn get(&self) -> Result<&[T], BoundsError> {
        part(&self.data, WINDOW..self.to)
    }
}

impl Decoded {
    /// Resolves the markers with the preceding window, and returns all bytes, in pieces.
    pub(super) fn resolve(self, window: &Window) -> Result<Resolved, InflateError> {
        let Part { mut data, to } = self.symbols;
        let symbols = part_mut(&mut data, WINDOW..to)?;
        let count = symbols.len();
        window.resolve_in_place(symbols)?;
        let from = 2 * WINDOW;
        let mut pieces = vec![Piece { data: Data::Symbols(data), from, to: from + count }];
        pieces.extend(self.bytes.map(|part| Piece { data: Data::Bytes(part.data), from: WINDOW, to: part.to }));
        let sums = Checksums::of(&pieces, &self.ends)?;
        Ok((pieces, sums))
    }

    /// The window after the content.
    pub(super) fn tail(&self, before: &Window) -> Result<Vec<u8>, InflateError> {
        let bytes = self.bytes.as_ref().map_or(Ok(&[][..]), Part::get)?;
        let symbols = self.symbols.get()?;
        // Only the content of the member that is open there.
        let since = self.ends.last().map(|end| symbols.len() + bytes.len() - end.at);
        let wanted = since.map_or(WINDOW, |since| since.min(WINDOW));
        let of_symbols = wanted.saturating_sub(bytes.len());
        let mut tail = before.last(of_symbols.saturating_sub(symbols.len()))?.to_vec();
        let symbols = last(symbols, of_symbols)?;
        let known = tail.len();
        tail.resize(known + symbols.len(), 0);
        before.resolve(symbols, part_mut(&mut tail, known..)?)?;
        tail.extend_from_slice(last(bytes, wanted)?);
        Ok(tail)
    }
}

/// The last `count` elements, or all if there are fewer.
fn last<T>(all: &[T], count: usize) -> Result<&[T], BoundsError> {
    part(all, all.len().saturating_sub(count)..)
}

/// Decodes from the first possible boundary to the first findable one of the next chunk, or to the end of the chunk's bytes, or
/// about `most` symbols.
pub(super) fn speculate(chunk: &Chunk, most: usize, buffers: &DecoderBuffers) -> Option<Decoded> {
    let mut from = 0;
    loop {
        let place = find(&chunk.bytes, from, chunk.own * 8)?;
        match decode(chunk, place, most, buffers) {
            Ok(decoded) if decoded.to != place => return Some(decoded),
            // The boundary was a false positive.
            _ => from = place.bit() + 1,
        }
    }
}

fn decode(chunk: &Chunk, from: Boundary, most: usize, buffers: &DecoderBuffers) -> Result<Decoded, InflateError> {
    let input = &*chunk.bytes;
    let mut decoder = BlockDecoder::default();
    let mut symbols = ChunkBuffer::new(buffers.symbols.take(), (MARKER..).take(WINDOW), most);
    let mut bytes: Option<ChunkBuffer<u8>> = None;
    let mut to = from;
    let mut ends = Vec::new();
    // Lengths decoded up to `to`.
    let mut whole = (0, 0);
    while to == from || to.bit() < chunk.own * 8 || !to.is_findable(input) {
        let bit = match to {
            Boundary::Block(bit) => bit,
            Boundary::Member(byte) => match member::data(input, byte) {
                Ok(Some(data)) => {
                    let bytes = bytes.get_or_insert_with(|| ChunkBuffer::new(buffers.bytes.take(), [], most));
                    bytes.base = bytes.at;
                    data * 8
                }
                // Decoding in order determines whether this is the end or an error.
                Ok(None) | Err(_) => break,
            },
        };
        if bytes.is_none()
            && let Some(window) = symbols.known_window()
        {
            bytes = Some(ChunkBuffer::new(buffers.bytes.take(), window, most.saturating_sub(symbols.len())));
        }
        decoder.go(input, bit);
        let pause = match &mut bytes {
            Some(bytes) => bytes.fill(&mut decoder, chunk),
            None => symbols.fill(&mut decoder, chunk),
        };
        let is_final = match pause {
            Ok(Pause::Block { is_final }) => is_final,
            Err(fault) if decoder.bits.is_within(input) => return Err(fault),
            // The rest of this block is unavailable or too long.
            Ok(Pause::Room | Pause::Input) | Err(_) => break,
        };
        let bit = decoder.bits.position();
        let next = if is_final {
            let at = bit.div_ceil(8);
            let Some(trailer) = Trailer::read(input, at) else { break };
            ends.push(End { at: symbols.len() + bytes.as_ref().map_or(0, ChunkBuffer::len), trailer });
            Boundary::Member(at + TRAILER)
        } else {
            Boundary::block(input, bit)
        };
        to = next;
        whole = (symbols.len(), bytes.as_ref().map_or(0, ChunkBuffer::len));
    }
    Ok(Decoded {
        from,
        to,
        symbols: symbols.into_part(whole.0),
        bytes: bytes.map(|bytes| bytes.into_part(whole.1)),
        ends,
    })
}

/// A window, and the data decoded after it.
struct ChunkBuffer<T> {
    data: PooledBuf<T>,
    at: usize,
    base: usize,
    most: usize,
}

impl<T: Symbol> ChunkBuffer<T> {
    fn new(mut data: PooledBuf<T>, window: impl IntoIterator<Item = T>, most: usize) -> Self {
        if data.len() < WINDOW + MARGIN {
            data.resize(WINDOW + MARGIN, T::default());
        }
        for (to, symbol) in data.iter_mut().zip(window) {
            *to = symbol;
        }
        Self { data, at: WINDOW, base: 0, most }
    }

    const fn len(&self) -> usize {
        self.at - WINDOW
    }

    /// Decodes to the end of the block, and grows the buffer as needed.
    fn fill(&mut self, decoder: &mut BlockDecoder, chunk: &Chunk) -> Result<Pause, InflateError> {
        let limit = if chunk.is_last() { usize::MAX } else { chunk.bytes.len() };
        loop {
            let mut output = Output { data: &mut self.data, at: self.at, base: self.base };
            let pause = decoder.run(&chunk.bytes, limit, &mut output);
            self.at = output.at;
            if pause != Ok(Pause::Room) || self.len() >= self.most {
                return pause;
            }
            let room = (self.data.len() * 3 / 2).max(2 * chunk.own).min(WINDOW + self.most + 2 * MARGIN);
            let more = room.saturating_sub(self.data.len());
            self.data.reserve_exact(more);
            self.data.resize(room, T::default());
        }
    }

    fn into_part(self, len: usize) -> Part<T> {
        Part { data: self.data, to: WINDOW + len }
    }
}

impl ChunkBuffer<u16> {
    /// The window before the next symbol, if it has no marker.
    fn known_window(&self) -> Option<Vec<u8>> {
        let window = self.data.get(self.at - WINDOW..self.at)?;
        is_known(window).then(|| window.iter().map(|symbol| *symbol as u8).collect())
    }
}

/// The bytes before a position: the last 32 KiB, or all since the member's beginning.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Maps each symbol to its byte: itself, or a byte of the window.
    bytes: Box<[u8]>,
    /// The lowest marker that stands for a byte.
    first: u16,
}

impl Window {
    /// The window that ends with these bytes.
    pub(super) fn new(before: &[u8]) -> Result<Self, BoundsError> {
        let before = last(before, WINDOW)?;
        let mut bytes = vec![0; MARKER as usize + WINDOW].into_boxed_slice();
        for (byte, to) in (0..=u8::MAX).zip(bytes.iter_mut()) {
            *to = byte;
        }
        let start = bytes.len() - before.len();
        copy(&mut bytes, start, before)?;
        Ok(Self { bytes, first: start as u16 })
    }

    /// The last `count` bytes, or all if there are fewer.
    fn last(&self, count: usize) -> Result<&[u8], BoundsError> {
        last(part(&self.bytes, usize::from(self.first)..)?, count)
    }

    /// Writes the bytes of `symbols` to `to`.
    fn resolve(&self, symbols: &[u16], to: &mut [u8]) -> Result<(), InflateError> {
        for (symbols, to) in symbols.chunks(AT_ONCE).zip(to.chunks_mut(AT_ONCE)) {
            let mut bytes = [0; AT_ONCE];
            self.resolve_some(&some(symbols), &mut bytes)?;
            to.copy_from_slice(part(&bytes, ..to.len())?);
        }
        Ok(())
    }

    /// Replaces the symbols by their bytes, in the first half of their memory.
    fn resolve_in_place(&self, symbols: &mut [u16]) -> Result<(), InflateError> {
        for from in (0..symbols.len()).step_by(AT_ONCE) {
            let here = some(part(symbols, from..)?);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(symbols);
            let to = part_mut(bytes, from..)?;
            if let Some(to) = to.first_chunk_mut() {
                self.resolve_some(&here, to)?;
            } else {
                // Fewer than `AT_ONCE` bytes of room are left, so fewer than half as many symbols.
                let mut bytes = [0; AT_ONCE];
                self.resolve_some(&here, &mut bytes)?;
                to.copy_from_slice(part(&bytes, ..to.len())?);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn resolve_some(&self, symbols: &[u16; AT_ONCE], to: &mut [u8; AT_ONCE]) -> Result<(), InflateError> {
        if is_known(symbols) {
            *to = symbols.map(|symbol| symbol as u8);
            return Ok(());
        }
        if symbols.iter().any(|symbol| (MARKER..self.first).contains(symbol)) {
            return Err(InflateError("a match refers to bytes before the data"));
        }
        for (to, symbol) in to.iter_mut().zip(symbols) {
            *to = *part(&self.bytes, usize::from(*symbol))?;
        }
        Ok(())
    }
}

/// The first `AT_ONCE` symbols, padded with zeros.
#[inline(always)]
fn some(symbols: &[u16]) -> [u16; AT_ONCE] {
    symbols.first_chunk().copied().unwrap_or_else(|| {
        let mut some = [0; AT_ONCE];
        some.iter_mut().zip(symbols).for_each(|(to, symbol)| *to = *symbol);
        some
    })
}

/// Returns true if no symbol is a marker.
#[inline(always)]
fn is_known(symbols: &[u16]) -> bool {
    // A fold over all symbols vectorizes, which matters because this runs at every block.
    symbols.iter().fold(0, |all, symbol| all | symbol) < MARKER
}
