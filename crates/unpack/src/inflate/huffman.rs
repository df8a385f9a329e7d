//! Prefix codes (RFC 1951, section 3.2.2), as lookup tables for the next bits.

use super::InflateError;
use crate::bounds::{BoundsError, part_mut};

/// The longest code word.
pub(super) const LONGEST: usize = 15;

/// Meaning of the next bits.
///
/// | bits | |
/// |---|---|
/// | 0–7 | consumed bits: the code words, and the extra bits of a length or a distance |
/// | 8–13 | number of literals; for a length or a distance, the bits of the code words alone |
/// | 14–15 | [kind](Meaning) |
/// | 16–31 | the literals; a literal, and a length's base minus [`SHORTEST`]; a distance's base; start of a longer word's table |
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry(u32);

/// The kinds of entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Literals = 0,
    /// A length or a distance.
    Base = 1,
    /// One of [`Special`].
    Special = 2,
    /// A literal, and the length after it.
    LiteralAndBase = 3,
}

/// An entry other than literals, lengths and distances. It replaces the number of literals.
#[derive(Clone, Copy, Debug)]
pub(super) enum Special {
    /// The word is longer than the bits that the table looks up.
    Longer = 0,
    /// The end of the block.
    End = 1,
    /// Not a word, or one without a meaning in RFC 1951.
    Invalid = 2,
}

/// The shortest match.
const SHORTEST: u16 = 3;

impl Entry {
    const fn new(meaning: Meaning, done: usize, value: u16) -> Self {
        Self(done as u32 | (meaning as u32) << 14 | (value as u32) << 16)
    }

    /// A literal.
    pub(super) const fn literal(byte: u8) -> Self {
        Self(Self::new(Meaning::Literals, 0, byte as u16).0 | 1 << 8)
    }

    /// A length, and its extra bits.
    pub(super) const fn length(base: u16, extra: u8) -> Self {
        Self::base((base - SHORTEST) << 8, extra)
    }

    /// A distance, or a symbol of the code of code lengths, and its extra bits.
    pub(super) const fn base(value: u16, extra: u8) -> Self {
        Self::new(Meaning::Base, extra as usize, value)
    }

    pub(super) const END: Self = Self::special(Special::End);

    pub(super) const INVALID: Self = Self::special(Special::Invalid);

    const fn special(special: Special) -> Self {
        Self(Self::new(Meaning::Special, 0, 0).0 | (special as u32) << 8)
    }

    /// Adds a code word of `length` bits.
    const fn with_word(self, length: usize) -> Self {
        let length = length as u32;
        Self(if self.is(Meaning::Base) { self.0 + (length | length << 8) } else { self.0 + length })
    }

    /// For a literal: the entry of two literals, without the second.
    const fn before_literal(self) -> u32 {
        self.0
    }

    /// For a literal: the entry of it and a length, without the length. The bits of its word replace the number of literals.
    const fn before_length(self) -> u32 {
        let kind = Meaning::LiteralAndBase as u32 - Meaning::Base as u32;
        self.0 & 0xff_00ff | self.done() << 8 | kind << 14
    }

    /// For a literal or a length: the value that it adds to the entry of a preceding literal.
    const fn behind_literal(self) -> u32 {
        if self.is(Meaning::Literals) { self.0 & 0xffff | self.0 >> 16 << 24 } else { self.0 }
    }

    #[inline(always)]
    pub(super) const fn is(self, meaning: Meaning) -> bool {
        self.0 & 0xc000 == (meaning as u32) << 14
    }

    #[inline(always)]
    pub(super) const fn is_special(self, special: Special) -> bool {
        self.0 & 0xff00 == (Meaning::Special as u32) << 14 | (special as u32) << 8
    }

    /// The number of consumed bits in the low eight bits, with arbitrary higher bits.
    #[inline(always)]
    pub(super) const fn skip(self) -> u32 {
        self.0
    }

    /// The number of consumed bits.
    #[inline(always)]
    pub(super) const fn done(self) -> u32 {
        self.0 & 0xff
    }

    /// The number of literals.
    #[inline(always)]
    pub(super) const fn count(self) -> usize {
        (self.0 >> 8 & 0x3f) as usize
    }

    /// For a length, the number of literals before it.
    #[inline(always)]
    pub(super) const fn count_before(self) -> usize {
        (self.0 >> 15 & 1) as usize
    }

    /// Both literals. The second is arbitrary if there is only one.
    #[inline(always)]
    pub(super) const fn bytes(self) -> [u8; 2] {
        [(self.0 >> 16) as u8, (self.0 >> 24) as u8]
    }

    /// The base, or the start of a longer word's table.
    #[inline(always)]
    pub(super) const fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// The distance, from the bits starting with its code word. The reader skips the extra bits together with the code word, and
    /// extracts them later, so that the next lookup need not wait.
    #[inline(always)]
    pub(super) const fn to_distance(self, bits: u64) -> usize {
        self.value() + self.extra(bits)
    }

    /// The length, from the bits starting with its code word.
    #[inline(always)]
    pub(super) const fn to_length(self, bits: u64) -> usize {
        (self.0 >> 24) as usize + SHORTEST as usize + self.extra(bits)
    }

    #[inline(always)]
    const fn extra(self, bits: u64) -> usize {
        let done = bits & 1_u64.wrapping_shl(self.0).wrapping_sub(1);
        done.wrapping_shr(self.0 >> 8) as usize
    }
}

/// A table of `SIZE` entries for code words of up to log2(`SIZE`) bits, and a further table for each prefix of longer words.
#[derive(Clone, Debug)]
pub(super) struct Table<const SIZE: usize> {
    first: Box<[Entry; SIZE]>,
    longer: Vec<Entry>,
    /// Bits that the tables of longer words look up.
    more: u32,
}

impl<const SIZE: usize> Default for Table<SIZE> {
    fn default() -> Self {
        Self { first: Box::new([Entry::INVALID; SIZE]), longer: Vec::new(), more: 0 }
    }
}

impl<const SIZE: usize> Table<SIZE> {
    const BITS: usize = SIZE.trailing_zeros() as usize;

    /// The entry for the next bits.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the index is below SIZE, a power of two")]
    pub(super) fn look(&self, bits: u64) -> Entry {
        self.first[bits as usize & (SIZE - 1)]
    }

    /// The entry for a longer word, whose prefix has the entry `entry`.
    #[inline(always)]
    pub(super) fn look_longer(&self, entry: Entry, bits: u64) -> Entry {
        let more = (bits >> Self::BITS) as usize & ((1 << self.more) - 1);
        self.longer.get(entry.value() + more).copied().unwrap_or(Entry::INVALID)
    }

    /// Builds the table of a code. `lengths` has the length of each symbol's word, 0 for a symbol without one.
    pub(super) fn build(&mut self, lengths: &[u8], meaning: impl Fn(usize) -> Entry) -> Result<(), InflateError> {
        Ok(self.fill(&Codewords::new(lengths, meaning)?, |_, _| Ok(()))?)
    }

    /// Builds a table that looks up two literals, or a literal and a length, at once if both words fit.
    pub(super) fn build_with_pairs(
        &mut self,
        lengths: &[u8],
        meaning: impl Fn(usize) -> Entry,
    ) -> Result<(), InflateError> {
        let words = Codewords::new(lengths, meaning)?;
        self.fill(&words, |table, length| {
            for first in 1..length {
                let literals = words.literals(length - first);
                let lengths = words.lengths(length - first);
                for word in words.literals(first) {
                    word.pair(first, word.entry.before_literal(), literals, table)?;
                    word.pair(first, word.entry.before_length(), lengths, table)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Writes words to the table, shorter ones first. After the words of each length, `more` may add entries to the table of that
    /// many bits.
    fn fill(
        &mut self,
        words: &Codewords,
        more: impl Fn(&mut [Entry], usize) -> Result<(), BoundsError>,
    ) -> Result<(), BoundsError> {
        self.longer.clear();
        self.more = words.longest().saturating_sub(Self::BITS) as u32;
        self.first.iter_mut().take(1).for_each(|to| *to = Entry::INVALID);
        let mut filled = 1;
        for length in 1..=LONGEST {
            let words = words.of(length);
            if filled == SIZE {
                for word in words {
                    self.add_longer(usize::from(word.code), length, word.entry)?;
                }
                continue;
            }
            // So far the table looks up one bit less, so both values of the new bit get the same entry.
            self.first.copy_within(..filled, filled);
            filled *= 2;
            let table = part_mut(self.first.as_mut_slice(), ..filled)?;
            for word in words {
                *part_mut(table, usize::from(word.code))? = word.entry;
            }
            more(table, length)?;
        }
        Ok(())
    }

    fn add_longer(&mut self, code: usize, length: usize, entry: Entry) -> Result<(), BoundsError> {
        let first = part_mut(self.first.as_mut_slice(), code & (SIZE - 1))?;
        if !first.is_special(Special::Longer) {
            *first = Entry::new(Meaning::Special, Self::BITS, self.longer.len() as u16);
            self.longer.resize(self.longer.len() + (1 << self.more), Entry::INVALID);
        }
        let from = first.value() + (code >> Self::BITS);
        let end = first.value() + (1 << self.more);
        let table = part_mut(&mut self.longer, from..end)?;
        table.iter_mut().step_by(1 << (length - Self::BITS)).for_each(|to| *to = entry);
        Ok(())
    }
}

/// The words of a code, in order.
struct Codewords {
    words: [Codeword; 320],
    /// For each length, the number of shorter words; at the end, the number of all words.
    before: [u16; LONGEST + 2],
}

#[derive(Clone, Copy, Default)]
struct Codeword {
    /// The bits of the word, the first one lowest.
    code: u16,
    entry: Entry,
    /// Its part of the entry after a literal.
    behind: u32,
}

impl Codeword {
    /// Writes the pairs of this word, a literal's of `length` bits, and each of `followers` to the table.
    #[inline(always)]
    fn pair(self, length: usize, entry: u32, followers: &[Self], table: &mut [Entry]) -> Result<(), BoundsError> {
        for next in followers {
            *part_mut(table, usize::from(self.code) | usize::from(next.code) << length)? = Entry(entry + next.behind);
        }
        Ok(())
    }
}

#[expect(clippy::indexing_slicing, reason = "no word is longer than LONGEST, and no code has more than 320 symbols")]
impl Codewords {
    fn new(lengths: &[u8], meaning: impl Fn(usize) -> Entry) -> Result<Self, InflateError> {
        let mut counts = [0_u16; LONGEST + 1];
        for &length in lengths {
            *counts.get_mut(usize::from(length)).ok_or(InflateError("a code word is longer than 15 bits"))? += 1;
        }
        let mut words = Self { words: [Codeword::default(); 320], before: [0; LONGEST + 2] };
        let mut first = [0_u16; LONGEST + 1];
        let mut word = 0_u32;
        let mut before = 0;
        for (length, &count) in counts.iter().enumerate().skip(1) {
            word <<= 1;
            first[length] = word as u16;
            word += u32::from(count);
            if word > 1 << length {
                return Err(InflateError("a Huffman code is oversubscribed"));
            }
            words.before[length] = before;
            before += count;
        }
        words.before[LONGEST + 1] = before;
        let mut next = words.before;
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let length = usize::from(length);
            let code = first[length].reverse_bits() >> (16 - length);
            let entry = meaning(symbol).with_word(length);
            words.words[usize::from(next[length])] = Codeword { code, entry, behind: entry.behind_literal() };
            first[length] += 1;
            next[length] += 1;
        }
        Ok(words)
    }

    /// The words of a length.
    fn of(&self, length: usize) -> &[Codeword] {
        &self.words[usize::from(self.before[length])..usize::from(self.before[length + 1])]
    }

    /// The words of a length that are literals.
    fn literals(&self, length: usize) -> &[Codeword] {
        let words = self.of(length);
        &words[..words.partition_point(|word| word.entry.is(Meaning::Literals))]
    }

    /// The words of a length that are match lengths.
    fn lengths(&self, length: usize) -> &[Codeword] {
        let words = self.of(length);
        &words[words.partition_point(|word| !word.entry.is(Meaning::Base))..]
    }

    fn longest(&self) -> usize {
        (1..=LONGEST).rev().find(|length| !self.of(*length).is_empty()).unwrap_or(0)
    }
}

/// Number of unused words of the greatest length; negative if the code has too many words.
pub(super) fn room(lengths: &[u8]) -> i32 {
    let taken: i32 =
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (LONGEST - usize::from(*length))).sum();
    (1 << LONGEST) - taken
}
