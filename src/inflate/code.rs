//! Prefix codes (RFC 1951, section 3.2.2), as tables to look the next bits up in.

use super::Fault;

/// The longest code word.
pub(super) const LONGEST: usize = 15;

/// What the next bits mean.
///
/// | bits | |
/// |---|---|
/// | 0–7 | length of the code word, or of both where two literals follow each other |
/// | 8–13 | number of literals; of a length or a distance, its extra bits |
/// | 14–15 | [kind](Meaning) |
/// | 16–31 | the literals; the base of a length or a distance; where a longer word's table begins |
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry(u32);

/// The kinds of entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Literals = 0,
    Base = 1,
    Longer = 2,
    /// The end of the block, or no code word at all.
    Special = 3,
}

impl Entry {
    const fn new(meaning: Meaning, word: usize, extra: u8, value: u16) -> Self {
        Self(word as u32 | (extra as u32) << 8 | (meaning as u32) << 14 | (value as u32) << 16)
    }

    /// A literal.
    pub(super) const fn literal(byte: u8) -> Self {
        Self::new(Meaning::Literals, 0, 1, byte as u16)
    }

    /// A length or a distance.
    pub(super) const fn base(value: u16, extra: u8) -> Self {
        Self::new(Meaning::Base, 0, extra, value)
    }

    /// The end of the block.
    pub(super) const END: Self = Self::new(Meaning::Special, 0, 0, 0);

    /// A symbol that RFC 1951 gives no meaning.
    pub(super) const INVALID: Self = Self::new(Meaning::Special, 0, 0, 1);

    const fn with_word(self, length: usize) -> Self {
        Self(self.0 & !0xff | length as u32)
    }

    #[inline(always)]
    pub(super) const fn is(self, meaning: Meaning) -> bool {
        self.0 & 0xc000 == (meaning as u32) << 14
    }

    /// The length of the code word in its low eight bits, and anything above.
    #[inline(always)]
    pub(super) const fn skip(self) -> u32 {
        self.0
    }

    /// Bits of the code word.
    #[inline(always)]
    pub(super) const fn word(self) -> u32 {
        self.0 & 0xff
    }

    /// Extra bits, or the number of literals.
    #[inline(always)]
    pub(super) const fn extra(self) -> u32 {
        self.0 >> 8 & 0x3f
    }

    /// The base, or where a longer word's table begins.
    #[inline(always)]
    pub(super) const fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// Both literals, whether there are two or not.
    #[inline(always)]
    pub(super) const fn bytes(self) -> [u8; 2] {
        [(self.0 >> 16) as u8, (self.0 >> 24) as u8]
    }
}

/// A table of `SIZE` entries for code words of up to log2(`SIZE`) bits, and one for each beginning of longer words.
#[derive(Clone, Debug)]
pub(super) struct Table<const SIZE: usize> {
    first: Box<[Entry; SIZE]>,
    longer: Vec<Entry>,
    /// Bits that the tables of longer words look at.
    more: u32,
}

impl<const SIZE: usize> Default for Table<SIZE> {
    fn default() -> Self {
        Self { first: Box::new([Entry::INVALID; SIZE]), longer: Vec::new(), more: 0 }
    }
}

impl<const SIZE: usize> Table<SIZE> {
    const BITS: usize = SIZE.trailing_zeros() as usize;

    /// What the next bits mean.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the index is below SIZE, a power of two")]
    pub(super) fn look(&self, bits: u64) -> Entry {
        self.first[bits as usize & (SIZE - 1)]
    }

    /// What they mean where `entry` says that the word is longer.
    #[inline(always)]
    pub(super) fn look_longer(&self, entry: Entry, bits: u64) -> Entry {
        let more = (bits >> Self::BITS) as usize & ((1 << self.more) - 1);
        self.longer.get(entry.value() + more).copied().unwrap_or(Entry::INVALID)
    }

    /// Makes the table of a code: the length of each symbol's word, 0 where it has none.
    pub(super) fn build(&mut self, lengths: &[u8], meaning: impl Fn(usize) -> Entry) -> Result<(), Fault> {
        let mut next = words(lengths)?;
        let longest = lengths.iter().copied().max().map_or(0, usize::from);
        self.first.fill(Entry::INVALID);
        self.longer.clear();
        self.more = longest.saturating_sub(Self::BITS) as u32;
        for (symbol, &length) in lengths.iter().enumerate() {
            let length = usize::from(length);
            let Some(word) = next.get_mut(length).filter(|_| length > 0) else { continue };
            let code = usize::from(word.reverse_bits()) >> (16 - length);
            *word += 1;
            let entry = meaning(symbol).with_word(length);
            if length <= Self::BITS {
                self.first.iter_mut().skip(code).step_by(1 << length).for_each(|to| *to = entry);
            } else {
                self.add_longer(code, length, entry);
            }
        }
        Ok(())
    }

    fn add_longer(&mut self, code: usize, length: usize, entry: Entry) {
        let Some(first) = self.first.get_mut(code & (SIZE - 1)) else { return };
        if !first.is(Meaning::Longer) {
            *first = Entry::new(Meaning::Longer, Self::BITS, 0, self.longer.len() as u16);
            self.longer.resize(self.longer.len() + (1 << self.more), Entry::INVALID);
        }
        let from = first.value() + (code >> Self::BITS);
        let end = first.value() + (1 << self.more);
        if let Some(table) = self.longer.get_mut(from..end) {
            table.iter_mut().step_by(1 << (length - Self::BITS)).for_each(|to| *to = entry);
        }
    }

    /// Where a literal's word is followed by another literal's, all within the table's bits, gives both at once.
    pub(super) fn pair(&mut self) {
        // From the end on: an entry looks at one that lies before it and is still single.
        for index in (0..SIZE).rev() {
            let Some(&one) = self.first.get(index) else { continue };
            let length = one.word() as usize;
            if !one.is(Meaning::Literals) || length >= Self::BITS {
                continue;
            }
            let two = self.first.get(index >> length).copied().unwrap_or_default();
            let both = length + two.word() as usize;
            if two.is(Meaning::Literals) && two.extra() == 1 && both <= Self::BITS {
                let [first, _] = one.bytes();
                let [second, _] = two.bytes();
                let value = u16::from_le_bytes([first, second]);
                if let Some(to) = self.first.get_mut(index) {
                    *to = Entry::new(Meaning::Literals, both, 2, value);
                }
            }
        }
    }
}

/// The first code word of each length.
fn words(lengths: &[u8]) -> Result<[u16; LONGEST + 1], Fault> {
    let mut counts = [0_u16; LONGEST + 1];
    for &length in lengths {
        *counts.get_mut(usize::from(length)).ok_or(Fault("a code word is longer than 15 bits"))? += 1;
    }
    counts[0] = 0;
    let mut next = [0; LONGEST + 1];
    let mut word = 0_u32;
    let mut before = 0;
    for (length, (count, first)) in counts.iter().zip(&mut next).enumerate() {
        word = (word + before) << 1;
        before = u32::from(*count);
        *first = word as u16;
        if word + before > 1 << length && length > 0 {
            return Err(Fault("a code has more words than there is room for"));
        }
    }
    Ok(next)
}

/// How many words of the greatest length have no meaning; below zero where a code has too many words.
pub(super) fn room(lengths: &[u8]) -> i32 {
    let taken: i32 =
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (LONGEST - usize::from(*length))).sum();
    (1 << LONGEST) - taken
}
