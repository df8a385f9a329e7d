//! Bits of a deflate stream, least significant first (RFC 1951, section 3.1.1).

use crate::bounds::{BoundsError, array};

/// A position in a deflate stream, with buffered bits. Every call takes the input, since its bytes may move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BitReader {
    /// The buffered bits. Bits above `have` are also the stream's, or zero.
    buffer: u64,
    /// Number of valid bits in `buffer`.
    have: u32,
    /// Index of the next byte to buffer.
    next: usize,
}

impl BitReader {
    /// A reader at the bit `position` of the stream.
    pub(super) fn at(input: &[u8], position: usize) -> Self {
        let mut bits = Self { buffer: 0, have: 0, next: position / 8 };
        bits.refill(input);
        bits.take(position as u32 % 8);
        bits
    }

    /// The position in the stream, in bits.
    pub(super) const fn position(&self) -> usize {
        self.next * 8 - (self.have & 0xff) as usize
    }

    /// Returns true if the position is not beyond the input, where bits read as zeros.
    pub(super) const fn is_within(&self, input: &[u8]) -> bool {
        self.position() <= input.len() * 8
    }

    /// Index of the next byte to buffer, at most eight bytes after the position.
    #[inline(always)]
    pub(super) const fn next(&self) -> usize {
        self.next
    }

    /// Moves the reader to the same position in an input that begins `bytes` later.
    pub(super) const fn rebase(&mut self, bytes: usize) {
        self.next -= bytes;
    }

    /// Fills the buffer to at least 56 bits.
    #[inline(always)]
    pub(super) fn refill(&mut self, input: &[u8]) {
        let [bytes @ .., _, _, _, _, _, _, _, _] = match near(input, self.next) {
            Some(near) => *near,
            None => last(input, self.next),
        };
        self.fill(u64::from_le_bytes(bytes));
    }

    /// Fills the buffer to at least 56 bits from the bytes [near](near) the position. Returns the bytes after them.
    #[inline(always)]
    pub(super) fn refill_near(&mut self, near: &[u8; 16]) -> Result<[u8; 8], BoundsError> {
        let [first @ .., _, _, _, _, _, _, _, _] = near;
        let used = self.fill(u64::from_le_bytes(*first));
        array(near, used).copied()
    }

    /// Adds as many of the next eight bytes as the buffer has room for. Returns their number.
    #[inline(always)]
    pub(super) const fn fill(&mut self, word: u64) -> usize {
        let used = 7 - (self.have as usize >> 3 & 7);
        self.buffer |= word.wrapping_shl(self.have);
        self.next += used;
        self.have |= 0x38;
        used
    }

    /// The buffered bits.
    #[inline(always)]
    pub(super) const fn peek(&self) -> u64 {
        self.buffer
    }

    /// The buffered bits after the number of bits in the low eight bits of `entry`.
    #[inline(always)]
    pub(super) const fn behind(&self, entry: u32) -> u64 {
        self.buffer.wrapping_shr(entry)
    }

    /// Takes `count` bits, at most the buffered ones.
    #[inline(always)]
    pub(super) const fn take(&mut self, count: u32) -> u64 {
        let taken = self.buffer & ((1 << count) - 1);
        self.buffer >>= count;
        self.have -= count;
        taken
    }

    /// Skips the number of bits in the low eight bits of `entry`. Its higher bits may be anything.
    #[inline(always)]
    pub(super) const fn skip(&mut self, entry: u32) {
        self.buffer = self.buffer.wrapping_shr(entry);
        self.have = self.have.wrapping_sub(entry);
    }

    /// Advances to the next whole byte.
    pub(super) const fn align(&mut self) {
        self.take(self.have & 7);
    }
}

/// Sixteen bytes of an input from `from` on; `None` if it has fewer.
#[inline(always)]
pub(super) fn near(input: &[u8], from: usize) -> Option<&[u8; 16]> {
    input.get(from..).and_then(|rest| rest.first_chunk())
}

/// The last bytes of an input from `from` on, padded with zeros.
#[cold]
pub(super) fn last(input: &[u8], from: usize) -> [u8; 16] {
    let mut near = [0; 16];
    let rest = input.get(from..).unwrap_or(&[]);
    near.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    near
}
