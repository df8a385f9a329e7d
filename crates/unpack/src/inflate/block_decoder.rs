//! Decoding of deflate blocks (RFC 1951, section 3.2), as far as there are input and room.

use super::InflateError;
use super::bits::{BitReader, last, near};
use super::block_header::{self, BlockContent, Codes};
use super::huffman::{Meaning, Special};
use crate::bounds::{BoundsError, part_mut};

/// How far back a match may lie.
pub(super) const WINDOW: usize = 32 << 10;

/// Room behind the place that is written to, for all that is decoded before it is looked at again: five literals, and a match,
/// which has at most 258 symbols, and is copied in steps.
pub(super) const MARGIN: usize = 5 + 258_usize.next_multiple_of(STEP);

/// Symbols that are copied at once.
const STEP: usize = 16;

/// What decoded data are made of: bytes, or symbols that may also stand for a byte of a window that is not known yet.
pub(super) trait Symbol: Copy + Default + From<u8> {}

impl Symbol for u8 {}

impl Symbol for u16 {}

/// Where decoded data go.
#[derive(Debug)]
pub(super) struct Output<'o, T> {
    /// The window, what was decoded, and room.
    pub(super) data: &'o mut [T],
    /// Where the next symbol goes.
    pub(super) at: usize,
    /// Where what matches may refer to begins.
    pub(super) base: usize,
}

/// Why decoding paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// A block is over; true, it was the last of its stream.
    Block { is_final: bool },
    /// The input's limit was reached.
    Input,
    /// There is no room for another match.
    Room,
}

/// A decoder between two symbols.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockDecoder {
    pub(super) bits: BitReader,
    codes: Codes,
    /// The block that it is in, and of a stored one how many bytes are left.
    block: Option<block_header::BlockHeader>,
}

impl BlockDecoder {
    /// Goes before the block at a bit of the input.
    pub(super) fn go(&mut self, input: &[u8], bit: usize) {
        self.bits = BitReader::at(input, bit);
        self.block = None;
    }

    /// Whether it is inside of a block.
    pub(super) const fn is_inside(&self) -> bool {
        self.block.is_some()
    }

    /// Decodes until a block is over, the next byte of the input is at `limit`, or there is no more room.
    pub(super) fn run<T: Symbol>(
        &mut self,
        input: &[u8],
        limit: usize,
        output: &mut Output<'_, T>,
    ) -> Result<Pause, InflateError> {
        let mut block = match self.block {
            Some(block) => block,
            None => block_header::read(input, &mut self.bits, &mut self.codes)?,
        };
        let pause = match &mut block.content {
            BlockContent::Stored(left) => stored(&mut self.bits, left, input, limit, output)?,
            BlockContent::Compressed => compressed(&self.codes, &mut self.bits, input, limit, output)?,
        };
        if !self.bits.is_within(input) {
            return Err(InflateError("the data end in the middle of a block"));
        }
        self.block = (pause.is_some()).then_some(block);
        Ok(pause.unwrap_or(Pause::Block { is_final: block.is_final }))
    }
}

fn stored<T: Symbol>(
    bits: &mut BitReader,
    left: &mut usize,
    input: &[u8],
    limit: usize,
    output: &mut Output<'_, T>,
) -> Result<Option<Pause>, BoundsError> {
    let from = bits.position() / 8;
    let room = output.data.len().saturating_sub(MARGIN).saturating_sub(output.at);
    let count = (*left).min(limit.saturating_sub(from)).min(room);
    // Where the input ends before its limit, this is behind its end, which the caller reports.
    *bits = BitReader::at(input, (from + count) * 8);
    let Some(source) = input.get(from..from + count) else { return Ok(None) };
    let target = part_mut(output.data, output.at..output.at + count)?;
    target.iter_mut().zip(source).for_each(|(to, byte)| *to = T::from(*byte));
    output.at += count;
    *left -= count;
    Ok(match *left {
        0 => None,
        _ if count == room => Some(Pause::Room),
        _ => Some(Pause::Input),
    })
}

/// Nothing if the block is over.
fn compressed<T: Symbol>(
    codes: &Codes,
    place: &mut BitReader,
    input: &[u8],
    limit: usize,
    output: &mut Output<'_, T>,
) -> Result<Option<Pause>, InflateError> {
    let (mut bits, mut at) = (*place, output.at - output.base);
    let data = part_mut(output.data, output.base..)?;
    let end = data.len().saturating_sub(MARGIN);
    let mut rest;
    let pause = loop {
        if at >= end {
            break Ok(Some(Pause::Room));
        }
        if bits.next() >= limit {
            break Ok(Some(Pause::Input));
        }
        let near = if let Some(near) = near(input, bits.next()) {
            near
        } else {
            rest = last(input, bits.next());
            &rest
        };
        let more = bits.refill_near(near)?;
        // 56 bits are at hand now. Two entries of literals, a length behind them, and the first bits of a distance need at most
        // 2 * 12 + 15 + 5 + 8; a match alone 15 + 5 + 15 + 13.
        let mut entry = codes.literals.look(bits.peek());
        // What comes behind an entry is looked up in both codes before it is known which one it is of: that can hardly be
        // foreseen, and is waited for where it was not.
        let mut behind = bits.behind(entry.skip());
        let mut distance = codes.distances.look(behind);
        let is_match = !entry.is(Meaning::Literals);
        if !is_match {
            let next = codes.literals.look(behind);
            at = put(data, at, entry.bytes(), entry.count());
            bits.skip(entry.skip());
            entry = next;
            behind = bits.behind(entry.skip());
            distance = codes.distances.look(behind);
            if entry.is(Meaning::Literals) {
                let next = codes.literals.look(behind);
                at = put(data, at, entry.bytes(), entry.count());
                bits.skip(entry.skip());
                entry = next;
                distance = codes.distances.look(bits.behind(entry.skip()));
                if entry.is(Meaning::Literals) {
                    at = put(data, at, entry.bytes(), entry.count());
                    bits.skip(entry.skip());
                    continue;
                }
            }
        }
        if entry.is(Meaning::Special) {
            if entry.is_special(Special::Longer) {
                entry = codes.literals.look_longer(entry, bits.peek());
                distance = codes.distances.look(bits.behind(entry.skip()));
            }
            if entry.is(Meaning::Literals) {
                at = put(data, at, entry.bytes(), 1);
                bits.skip(entry.skip());
                continue;
            }
            if entry.is(Meaning::Special) {
                if entry.is_special(Special::End) {
                    bits.skip(entry.skip());
                    break Ok(None);
                }
                break Err(InflateError("there are bits that are no word of the code of literals"));
            }
        }
        at = put(data, at, entry.bytes(), entry.count_before());
        let length = entry.to_length(bits.peek());
        bits.skip(entry.skip());
        if !is_match {
            bits.fill(u64::from_le_bytes(more));
        }
        if distance.is_special(Special::Longer) {
            distance = codes.distances.look_longer(distance, bits.peek());
        }
        if !distance.is(Meaning::Base) {
            break Err(InflateError("there are bits that are no word of the code of distances"));
        }
        let back = distance.to_distance(bits.peek());
        bits.skip(distance.skip());
        if back > at {
            break Err(InflateError("a match begins before the data"));
        }
        at = repeat(data, at, back, length);
    };
    if at > data.len() {
        return Err(BoundsError::new().into());
    }
    *place = bits;
    output.at = at + output.base;
    pause
}

/// The place after one outside of the buffer, which ends the decoding: behind every buffer, and not so far that sums overflow.
/// An error in its stead, returned at once, would cost the inner loop 5 % more instructions.
const LOST: usize = usize::MAX / 2;

/// [`LOST`], and a panic in debug builds.
#[inline(always)]
#[track_caller]
fn lost() -> usize {
    BoundsError::new();
    LOST
}

/// Writes two literals, of which `count` count. Returns the place after them.
#[inline(always)]
fn put<T: Symbol>(data: &mut [T], at: usize, bytes: [u8; 2], count: usize) -> usize {
    let Some([first, second]) = data.get_mut(at..at + 2) else { return lost() };
    *first = T::from(bytes[0]);
    *second = T::from(bytes[1]);
    at + count
}

/// Writes again what lies `distance` before. Returns the place after it.
#[inline(always)]
fn repeat<T: Symbol>(data: &mut [T], at: usize, distance: usize, length: usize) -> usize {
    // A step must not reach what it writes itself.
    let copied = if distance >= STEP {
        steps::<T, STEP>(data, at, distance, length)
    } else if distance >= 8 {
        steps::<T, 8>(data, at, distance, length)
    } else if distance >= 4 {
        steps::<T, 4>(data, at, distance, length)
    } else {
        one_by_one(data, at, distance, length)
    };
    if copied.is_some() { at + length } else { lost() }
}

#[inline(always)]
fn steps<T: Symbol, const COUNT: usize>(data: &mut [T], at: usize, distance: usize, length: usize) -> Option<()> {
    // Most are not longer than two steps, and how many are needed can hardly be foreseen.
    step::<T, COUNT>(data, at, distance)?;
    step::<T, COUNT>(data, at + COUNT, distance)?;
    let mut done = 2 * COUNT;
    while done < length {
        step::<T, COUNT>(data, at + done, distance)?;
        done += COUNT;
    }
    Some(())
}

#[inline(always)]
fn step<T: Symbol, const COUNT: usize>(data: &mut [T], at: usize, distance: usize) -> Option<()> {
    let symbols: [T; COUNT] = *data.get(at - distance..)?.first_chunk()?;
    *data.get_mut(at..)?.first_chunk_mut()? = symbols;
    Some(())
}

#[inline(always)]
fn one_by_one<T: Symbol>(data: &mut [T], at: usize, distance: usize, length: usize) -> Option<()> {
    if distance == 1 {
        let symbol = *data.get(at - 1)?;
        data.get_mut(at..at + length)?.fill(symbol);
        return Some(());
    }
    for to in at..at + length {
        *data.get_mut(to)? = *data.get(to - distance)?;
    }
    Some(())
}
