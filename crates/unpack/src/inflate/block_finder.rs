//! Search for positions in the middle of compressed bytes at which decoding may begin.

use memchr::memmem;

use super::bits::BitReader;
use super::block_header::Lengths;
use super::member::{self, MAGIC};

/// A position at which decoding may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// A block's header, at this bit.
    Block(usize),
    /// A gzip member's header, at this byte.
    Member(usize),
}

impl Boundary {
    pub(super) const fn bit(self) -> usize {
        match self {
            Self::Block(bit) => bit,
            Self::Member(byte) => byte * 8,
        }
    }

    /// The same position in an input that begins `bytes` later.
    pub(super) const fn rebase(self, bytes: usize) -> Self {
        match self {
            Self::Block(bit) => Self::Block(bit - bytes * 8),
            Self::Member(byte) => Self::Member(byte - bytes),
        }
    }

    /// The block at this bit. A stored block's header has a variable number of zero bits before the length. The block then counts
    /// as beginning with the last three of them, so that every search finds the same bit.
    pub(super) fn block(input: &[u8], bit: usize) -> Self {
        let last = (bit + 3).div_ceil(8) * 8 - 3;
        let is_zero = |bit: usize| input.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 0);
        let is_stored = is_stored(input, last / 8 + 1) && (bit..last).all(is_zero);
        Self::Block(if is_stored { last } else { bit })
    }

    /// Returns true if [`find`] would stop here: at a dynamic or stored block that is not the last of its stream, or at a
    /// member. Other blocks have too few recognisable bits.
    pub(super) fn is_findable(self, input: &[u8]) -> bool {
        match self {
            Self::Block(bit) => is_dynamic(input, bit) || bit % 8 == 5 && is_stored(input, bit / 8 + 1),
            Self::Member(byte) => matches!(member::data(input, byte), Ok(Some(_))),
        }
    }
}

/// The first boundary from the bit `from` on and before the bit `end`.
pub(super) fn find(input: &[u8], from: usize, end: usize) -> Option<Boundary> {
    let first = from.div_ceil(8);
    let member = memmem::find_iter(input.get(first..end / 8)?, &MAGIC)
        .map(|at| Boundary::Member(first + at))
        .find(|place| place.is_findable(input));
    let end = member.map_or(end, Boundary::bit);
    let is_block = |bit: &usize| is_dynamic(input, *bit) || bit % 8 == 5 && is_stored(input, bit / 8 + 1);
    (from..end).find(is_block).map(Boundary::Block).or(member)
}

/// At least 121 bits from here on, padded with zeros at the end of the input.
#[inline]
fn head(input: &[u8], bit: usize) -> u128 {
    let bytes = input.get(bit / 8..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u128::from_le_bytes(*bytes) >> (bit % 8))
}

/// Returns true if the length of a non-final stored block may be at this byte: three zero bits before it, both lengths, and
/// another possible block after its data (RFC 1951, section 3.2.4).
fn is_stored(input: &[u8], at: usize) -> bool {
    let Some([before, low, high, not_low, not_high]) = input.get(at - 1..).and_then(|rest| rest.first_chunk()) else {
        return false;
    };
    let is_length = before >> 5 == 0 && *low == !*not_low && *high == !*not_high;
    is_length && {
        let behind = at + 4 + usize::from(u16::from_le_bytes([*low, *high]));
        let next = head(input, behind * 8);
        match next >> 1 & 3 {
            0 => input.len() < behind + 5 || next >> 8 & 0xffff == !next >> 24 & 0xffff,
            2 => next & 1 == 1 || is_dynamic(input, behind * 8),
            kind => kind == 1,
        }
    }
}

/// Returns true if a non-final dynamic block may begin here. The cheapest test comes first.
#[inline]
fn is_dynamic(input: &[u8], bit: usize) -> bool {
    let Some(bytes) = input.get(bit / 8..).and_then(|rest| rest.first_chunk()) else { return false };
    let bits = u32::from_le_bytes(*bytes) >> (bit % 8);
    // Not final, dynamic; at most 286 and 30 symbols (RFC 1951, section 3.2.7).
    bits & 7 == 4
        && bits >> 3 & 31 < 30
        && bits >> 8 & 31 < 30
        && is_complete(head(input, bit))
        && has_codes(input, bit)
}

/// The part of the space of 7-bit code words that four lengths of 3 bits take together.
#[expect(clippy::indexing_slicing, reason = "this is done by the compiler")]
static TAKEN: [u16; 1 << 12] = {
    let mut taken = [0; 1 << 12];
    let mut lengths = 0;
    while lengths < taken.len() {
        let mut place = 0;
        while place < 12 {
            taken[lengths] += 0x80 >> (lengths >> place & 7) & 0x7f;
            place += 3;
        }
        lengths += 1;
    }
    taken
};

#[expect(clippy::indexing_slicing, reason = "the index is below the length, a power of two")]
/// Returns true if the code of code lengths is complete.
fn is_complete(head: u128) -> bool {
    let count = (head >> 13) as u32 & 15;
    let mut lengths = (head >> 17) as u64 & ((1 << (3 * (count + 4))) - 1);
    let mut taken = 0;
    while lengths > 0 {
        taken += TAKEN[lengths as usize & (TAKEN.len() - 1)];
        lengths >>= 12;
    }
    taken == 0x80
}

#[cold]
fn has_codes(input: &[u8], bit: usize) -> bool {
    let mut bits = BitReader::at(input, bit + 3);
    Lengths::read(input, &mut bits).is_ok() && bits.is_within(input)
}
