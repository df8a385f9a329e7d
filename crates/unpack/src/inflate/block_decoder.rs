//! Decoding of deflate blocks (RFC 1951, section 3.2), within the available input and room.

use super::InflateError;
use super::bits::{BitReader, last, near};
use super::block_header::{self, BlockContent, Codes};
use super::huffman::{Meaning, Special};
use crate::bounds::{BoundsError, part_mut};

/// Maximum distance of a match.
pub(super) const WINDOW: usize = 32 << 10;

/// Room after the write position, for all symbols that are decoded between two checks of it: five literals, and a match of at
/// most 258 symbols, which is copied in steps.
pub(super) const MARGIN: usize = 5 + 258_usize.next_multiple_of(STEP);

/// Symbols per copy step.
const STEP: usize = 16;

/// An element of decoded data: a byte, or a symbol that may also stand for a byte of a still unknown window.
pub(super) trait Symbol: Copy + Default + From<u8> {}

impl Symbol for u8 {}

impl Symbol for u16 {}

/// Destination of decoded data.
#[derive(Debug)]
pub(super) struct Output<'o, T> {
    /// The window, the decoded data, and room.
    pub(super) data: &'o mut [T],
    /// Index of the next symbol.
    pub(super) at: usize,
    /// Start of the data that matches may refer to.
    pub(super) base: usize,
}

/// Reason for a pause in decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The block ended. `is_final`: it was the last of its stream.
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
    /// The current block, with the remaining bytes of a stored one.
    block: Option<block_header::BlockHeader>,
}

impl BlockDecoder {
    /// Moves to the block at a bit of the input.
    pub(super) fn go(&mut self, input: &[u8], bit: usize) {
        self.bits = BitReader::at(input, bit);
        self.block = None;
    }

    /// Returns true inside a block.
    pub(super) const fn is_inside(&self) -> bool {
        self.block.is_some()
    }

    /// Decodes until the block ends, the next byte of the input is at `limit`, or there is no more room.
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
            return Err(InflateError("the data end within a block"));
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
    // If the input ends before its limit, this position is beyond its end, which the caller reports.
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

/// Decodes a compressed block. Returns `None` at its end.
fn compressed<T: Symbol>(
    codes: &Codes,
    place: &mut BitReader,
    input: &[u8],
    limit: usize,
    output: &mut Output<'_, T>,
) -> Result<Option<Pause>, InflateError> {
    let mut bits = *place;
    let mut at = output.at - output.base;
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
        // The buffer now has 56 bits. Two entries of literals, a length after them, and the first bits of a distance need at most
        // 2 * 12 + 15 + 5 + 8; a match alone needs 15 + 5 + 15 + 13.
        let mut entry = codes.literals.look(bits.peek());
        // The bits after an entry are looked up in both codes before it is known which code applies, because a branch on that
        // would be hard to predict.
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
                break Err(InflateError("the bits are not a valid literal/length code"));
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
            break Err(InflateError("the bits are not a valid distance code"));
        }
        let back = distance.to_distance(bits.peek());
        bits.skip(distance.skip());
        if back > at {
            break Err(InflateError("a match refers to bytes before the data"));
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

/// The write position after an access out of bounds, which ends the decoding. It is beyond every buffer, but sums do not overflow.
/// Returning an error at once instead would cost the inner loop 5 % more instructions.
const LOST: usize = usize::MAX / 2;

/// Returns [`LOST`]; panics in debug builds.
#[inline(always)]
#[track_caller]
fn lost() -> usize {
    BoundsError::new();
    LOST
}

/// Writes two literals, of which only `count` are valid. Returns the position after the valid ones.
#[inline(always)]
fn put<T: Symbol>(data: &mut [T], at: usize, bytes: [u8; 2], count: usize) -> usize {
    let Some([first, second]) = data.get_mut(at..at + 2) else { return lost() };
    *first = T::from(bytes[0]);
    *second = T::from(bytes[1]);
    at + count
}

/// Copies a match from `distance` before. Returns the position after it.
#[inline(always)]
fn repeat<T: Symbol>(data: &mut [T], at: usize, distance: usize, length: usize) -> usize {
    // A step must not read symbols that it writes itself.
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
    // Most matches take at most two steps, and a branch on their number would be hard to predict.
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
