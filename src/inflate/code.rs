//! Prefix codes (RFC 1951, section 3.2.2), as tables to look the next bits up in.

use super::Fault;

/// The longest code word.
pub(super) const LONGEST: usize = 15;

/// What the next bits mean.
///
/// | bits | |
/// |---|---|
/// | 0–7 | bits that are done with: the code word, or those of two literals, and the extra bits of a length or a distance |
/// | 8–13 | number of literals; of a length or a distance, the bits of its code word alone |
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
    const fn new(meaning: Meaning, done: usize, value: u16) -> Self {
        Self(done as u32 | (meaning as u32) << 14 | (value as u32) << 16)
    }

    /// A literal.
    pub(super) const fn literal(byte: u8) -> Self {
        Self(Self::new(Meaning::Literals, 0, byte as u16).0 | 1 << 8)
    }

    /// A length or a distance, and its extra bits.
    pub(super) const fn base(value: u16, extra: u8) -> Self {
        Self::new(Meaning::Base, extra as usize, value)
    }

    /// The end of the block.
    pub(super) const END: Self = Self::new(Meaning::Special, 0, 0);

    /// A symbol that RFC 1951 gives no meaning.
    pub(super) const INVALID: Self = Self::new(Meaning::Special, 0, 1);

    /// The same with a code word of so many bits.
    const fn with_word(self, length: usize) -> Self {
        let length = length as u32;
        Self(if self.is(Meaning::Base) { self.0 + (length | length << 8) } else { self.0 + length })
    }

    /// Of two literals, both; otherwise anything.
    const fn and(self, next: Self) -> Self {
        Self(self.0.wrapping_add(next.0 & 0xffff).wrapping_add(next.0 << 8 & 0xff00_0000))
    }

    #[inline(always)]
    pub(super) const fn is(self, meaning: Meaning) -> bool {
        self.0 & 0xc000 == (meaning as u32) << 14
    }

    /// In its low eight bits, how many bits are done with, and anything above.
    #[inline(always)]
    pub(super) const fn skip(self) -> u32 {
        self.0
    }

    /// Bits that are done with.
    #[inline(always)]
    pub(super) const fn done(self) -> u32 {
        self.0 & 0xff
    }

    /// The number of literals.
    #[inline(always)]
    pub(super) const fn count(self) -> usize {
        (self.0 >> 8 & 0x3f) as usize
    }

    /// Both literals, whether there are two or not.
    #[inline(always)]
    pub(super) const fn bytes(self) -> [u8; 2] {
        [(self.0 >> 16) as u8, (self.0 >> 24) as u8]
    }

    /// The base, or where a longer word's table begins.
    #[inline(always)]
    pub(super) const fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// The length or the distance that the bits mean, from its code word's first on. That the extra bits are taken away with
    /// the code word and looked at later is faster than one after the other: the next word waits for it.
    #[inline(always)]
    pub(super) const fn sum(self, bits: u64) -> usize {
        let done = bits & 1_u64.wrapping_shl(self.0).wrapping_sub(1);
        self.value() + done.wrapping_shr(self.0 >> 8) as usize
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
        let words = Words::new(lengths)?;
        self.longer.clear();
        self.more = words.longest().saturating_sub(Self::BITS) as u32;
        self.first.iter_mut().take(1).for_each(|to| *to = Entry::INVALID);
        let mut filled = 1;
        for length in 1..=LONGEST {
            // So far the table looks at one bit less, whose other value means the same.
            if filled < SIZE {
                self.first.copy_within(..filled, filled);
                filled *= 2;
            }
            for (symbol, word) in words.of(length) {
                let code = usize::from(word.reverse_bits()) >> (16 - length);
                let entry = meaning(symbol).with_word(length);
                match self.first.get_mut(code) {
                    Some(to) if length <= Self::BITS => *to = entry,
                    _ => self.add_longer(code, length, entry),
                }
            }
        }
        Ok(())
    }

    fn add_longer(&mut self, code: usize, length: usize, entry: Entry) {
        let Some(first) = self.first.get_mut(code & (SIZE - 1)) else { return };
        if !first.is(Meaning::Longer) {
            *first = Entry::new(Meaning::Longer, Self::BITS, self.longer.len() as u16);
            self.longer.resize(self.longer.len() + (1 << self.more), Entry::INVALID);
        }
        let from = first.value() + (code >> Self::BITS);
        let end = first.value() + (1 << self.more);
        if let Some(table) = self.longer.get_mut(from..end) {
            table.iter_mut().step_by(1 << (length - Self::BITS)).for_each(|to| *to = entry);
        }
    }

    /// Where a literal's word is followed by another literal's, all within the table's bits, gives both at once. The shortest
    /// literal's word has so many bits.
    pub(super) fn pair(&mut self, shortest: usize) {
        if 2 * shortest > Self::BITS {
            return;
        }
        // From the end on: an entry looks at one that lies before it and is still single.
        for index in (0..SIZE).rev() {
            let one = self.first.get(index).copied().unwrap_or_default();
            let two = self.first.get(index >> (one.done() & 15)).copied().unwrap_or_default();
            let is_pair = one.is(Meaning::Literals) && two.is(Meaning::Literals);
            let fits = one.done() + two.done() <= Self::BITS as u32;
            // Chosen without a branch, which could not be foreseen.
            let chosen = u32::from(is_pair & fits).wrapping_neg();
            if let Some(to) = self.first.get_mut(index) {
                *to = Entry(one.0 ^ (one.0 ^ one.and(two).0) & chosen);
            }
        }
    }
}

/// The words of a code, in order.
struct Words {
    /// The symbols that have one, by its length.
    symbols: [u16; 1 << 9],
    /// Of each length, how many symbols have shorter words; at last, how many there are.
    before: [u16; LONGEST + 2],
    /// The first word of each length.
    first: [u16; LONGEST + 1],
}

#[expect(clippy::indexing_slicing, reason = "no word is longer than LONGEST, and no code has more than 320 symbols")]
impl Words {
    fn new(lengths: &[u8]) -> Result<Self, Fault> {
        let mut counts = [0_u16; LONGEST + 1];
        for &length in lengths {
            *counts.get_mut(usize::from(length)).ok_or(Fault("a code word is longer than 15 bits"))? += 1;
        }
        let mut words = Self { symbols: [0; 1 << 9], before: [0; LONGEST + 2], first: [0; LONGEST + 1] };
        let (mut word, mut before) = (0_u32, 0);
        for (length, &count) in counts.iter().enumerate().skip(1) {
            word <<= 1;
            words.first[length] = word as u16;
            word += u32::from(count);
            if word > 1 << length {
                return Err(Fault("a code has more words than there is room for"));
            }
            words.before[length] = before;
            before += count;
        }
        words.before[LONGEST + 1] = before;
        let mut next = words.before;
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let at = &mut next[usize::from(length)];
            words.symbols[usize::from(*at)] = symbol as u16;
            *at += 1;
        }
        Ok(words)
    }

    /// Symbols with words of this length, and the words.
    fn of(&self, length: usize) -> impl Iterator<Item = (usize, u16)> {
        let range = usize::from(self.before[length])..usize::from(self.before[length + 1]);
        let symbols = self.symbols.get(range).unwrap_or_default();
        symbols.iter().map(|symbol| usize::from(*symbol)).zip(self.first[length]..)
    }

    fn longest(&self) -> usize {
        (1..=LONGEST).rev().find(|length| self.of(*length).next().is_some()).unwrap_or(0)
    }
}

/// How many words of the greatest length have no meaning; below zero where a code has too many words.
pub(super) fn room(lengths: &[u8]) -> i32 {
    let taken: i32 =
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (LONGEST - usize::from(*length))).sum();
    (1 << LONGEST) - taken
}
