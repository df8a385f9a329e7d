//! Bits of a deflate stream, least significant first (RFC 1951, section 3.1.1).

use crate::bounds::{BoundsError, array};

/// A place in a deflate stream, with the bits around it at hand. The bytes are given to every call, since they may move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BitReader {
    /// The bits at hand; those above `have` are the stream's too, or zero.
    buffer: u64,
    /// How many of them count.
    have: u32,
    /// The byte that comes next into the buffer.
    next: usize,
}

impl BitReader {
    /// The place that so many bits of the stream lie before.
    pub(super) fn at(input: &[u8], position: usize) -> Self {
        let mut bits = Self { buffer: 0, have: 0, next: position / 8 };
        bits.refill(input);
        bits.take(position as u32 % 8);
        bits
    }

    /// How many bits of the stream lie before this place.
    pub(super) const fn position(&self) -> usize {
        self.next * 8 - (self.have & 0xff) as usize
    }

    /// Whether the bytes up to here are all there were: what comes behind an input reads as zeros.
    pub(super) const fn is_within(&self, input: &[u8]) -> bool {
        self.position() <= input.len() * 8
    }

    /// The byte that comes next into the buffer: not more than eight behind the place.
    #[inline(always)]
    pub(super) const fn next(&self) -> usize {
        self.next
    }

    /// The same place in an input that begins `bytes` later.
    pub(super) const fn rebase(&mut self, bytes: usize) {
        self.next -= bytes;
    }

    /// Has at least 56 bits at hand.
    #[inline(always)]
    pub(super) fn refill(&mut self, input: &[u8]) {
        let [bytes @ .., _, _, _, _, _, _, _, _] = match near(input, self.next) {
            Some(near) => *near,
            None => last(input, self.next),
        };
        self.fill(u64::from_le_bytes(bytes));
    }

    /// The same with the bytes [near](near) this place. Returns those that come next then.
    #[inline(always)]
    pub(super) fn refill_near(&mut self, near: &[u8; 16]) -> Result<[u8; 8], BoundsError> {
        let [first @ .., _, _, _, _, _, _, _, _] = near;
        let used = self.fill(u64::from_le_bytes(*first));
        array(near, used).copied()
    }

    /// Adds the next eight bytes, as much of them as there is room for. Returns how many of them are in.
    #[inline(always)]
    pub(super) const fn fill(&mut self, word: u64) -> usize {
        let used = 7 - (self.have as usize >> 3 & 7);
        self.buffer |= word.wrapping_shl(self.have);
        self.next += used;
        self.have |= 0x38;
        used
    }

    /// The bits at hand.
    #[inline(always)]
    pub(super) const fn peek(&self) -> u64 {
        self.buffer
    }

    /// The bits at hand behind so many as the low eight bits of `entry` say.
    #[inline(always)]
    pub(super) const fn behind(&self, entry: u32) -> u64 {
        self.buffer.wrapping_shr(entry)
    }

    /// Takes so many bits, at most as many as are at hand.
    #[inline(always)]
    pub(super) const fn take(&mut self, count: u32) -> u64 {
        let taken = self.buffer & ((1 << count) - 1);
        self.buffer >>= count;
        self.have -= count;
        taken
    }

    /// Takes as many bits as the low eight bits of `entry` say. What is above them may be anything.
    #[inline(always)]
    pub(super) const fn skip(&mut self, entry: u32) {
        self.buffer = self.buffer.wrapping_shr(entry);
        self.have = self.have.wrapping_sub(entry);
    }

    /// Goes on to the next whole byte.
    pub(super) const fn align(&mut self) {
        self.take(self.have & 7);
    }
}

/// The bytes of an input from a place on, where it has so many.
#[inline(always)]
pub(super) fn near(input: &[u8], from: usize) -> Option<&[u8; 16]> {
    input.get(from..).and_then(|rest| rest.first_chunk())
}

/// Where it has less: its last bytes, and zeros.
#[cold]
pub(super) fn last(input: &[u8], from: usize) -> [u8; 16] {
    let mut near = [0; 16];
    let rest = input.get(from..).unwrap_or(&[]);
    near.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    near
}
