//! Search for functions without a symbol, by a literal that their code refers to. The starts of functions come from the table
//! for unwinding, which stripping preserves (Linux Standard Base, Core, 10.6.2 "The .eh_frame_hdr section").

use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;

use super::{ElfError, ElfImage, Machine, word};

/// Maximum number of returned functions. Even two are rare.
const MOST_FUNCTIONS: usize = 4;

/// Bytes before a literal's words in which to search for its start.
const LONGEST_LITERAL: u64 = 1 << 13;

/// Instructions between the two halves of an address that AArch64 code computes.
const ADDRESS_HALVES: usize = 8;

impl ElfImage<'_> {
    /// The addresses of functions that refer to a literal that contains `words`, at most the first four. Serves files without
    /// symbols: the starts of functions come from `.eh_frame_hdr`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn functions_that_refer_to(&self, words: &[u8]) -> Result<Vec<u64>, ElfError> {
        let literals = self.literals(words)?;
        let mut starts = BTreeSet::new();
        if literals.is_empty() {
            return Ok(Vec::new());
        }
        for place in self.references(&literals)? {
            starts.extend(self.function_around(place)?);
        }
        Ok(starts.into_iter().take(MOST_FUNCTIONS).collect())
    }

    /// Address ranges of the literals, each from its first byte to its terminating zero.
    fn literals(&self, words: &[u8]) -> Result<Vec<Range<u64>>, ElfError> {
        let finder = memmem::Finder::new(words);
        let mut places = Vec::new();
        for segment in &self.segments {
            self.chunks(segment.offset, segment.in_file, words.len(), &mut |at, bytes| {
                places.extend(
                    finder.find_iter(bytes).map(|within| segment.address.wrapping_add(at).wrapping_add(within as u64)),
                );
                false
            })?;
        }
        places.sort_unstable();
        places.dedup();
        let ends = |place: u64| -> Result<Range<u64>, ElfError> {
            let mut before = vec![0; usize::try_from(LONGEST_LITERAL.min(place))?];
            self.read(place - before.len() as u64, &mut before)?;
            let start = memchr::memrchr(0, &before).map_or(before.len(), |zero| before.len() - zero - 1);
            let mut behind = vec![0; before.len()];
            self.read(place, &mut behind)?;
            let end = memchr::memchr(0, &behind).unwrap_or(behind.len());
            Ok(place.saturating_sub(start as u64)..place.saturating_add(end as u64))
        };
        places.into_iter().map(ends).collect()
    }

    /// Addresses of code that computes an address in one of the literals.
    fn references(&self, literals: &[Range<u64>]) -> Result<Vec<u64>, ElfError> {
        let is_inside = |address: u64| literals.iter().any(|literal| literal.contains(&address));
        let mut places = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.executable) {
            let overlap = 4 * ADDRESS_HALVES;
            self.chunks(segment.offset, segment.in_file, overlap, &mut |at, bytes| {
                let base = segment.address.wrapping_add(at);
                match self.machine {
                    Machine::X86 => x86_references(base, bytes, &is_inside, &mut places),
                    Machine::Arm => arm_references(base, bytes, &is_inside, &mut places),
                }
                false
            })?;
        }
        Ok(places)
    }

    /// Start of the function that contains this address.
    fn function_around(&self, place: u64) -> Result<Option<u64>, ElfError> {
        /// Version 1; a count of four bytes; entries of two numbers of four bytes, relative to the table's start.
        const FORMAT: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let Some(table) = self.frame_table else { return Ok(None) };
        let mut header = [0; 12];
        self.read(table, &mut header)?;
        if !header.starts_with(&FORMAT) {
            return Ok(None);
        }
        let start =
            |index: u32| Ok::<_, ElfError>(offset(table, self.word_at(table.wrapping_add(12 + 8 * u64::from(index)))?));
        // Entries are sorted: takes the last one that is not after the address.
        let mut low = 0;
        let mut high = word(&header, 8);
        while low < high {
            let middle = low + (high - low) / 2;
            if start(middle)? <= place { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).map(start).transpose()
    }
}

/// An address from its signed distance to another.
fn offset(from: u64, distance: u32) -> u64 {
    from.wrapping_add_signed(i64::from(distance.cast_signed()))
}

/// Operands relative to the instruction pointer (Intel SDM, volume 2, 2.2.1.6): a ModR/M byte of this kind, and then the distance
/// from the instruction's end, which is the operand's end unless an immediate follows.
fn x86_references(base: u64, code: &[u8], is_inside: &dyn Fn(u64) -> bool, places: &mut Vec<u64>) {
    for (at, window) in code.windows(5).enumerate() {
        let [kind, a, b, c, d] = *window else { continue };
        if kind & 0xc7 == 0x05 {
            let place = base.wrapping_add(at as u64);
            if is_inside(offset(place.wrapping_add(5), u32::from_le_bytes([a, b, c, d]))) {
                places.push(place);
            }
        }
    }
}

/// ADRP computes a page, ADD an address in it (Arm ARM, C6.2).
fn arm_references(base: u64, code: &[u8], is_inside: &dyn Fn(u64) -> bool, places: &mut Vec<u64>) {
    let instructions: Vec<_> = code.chunks_exact(4).map(|bytes| word(bytes, 0)).collect();
    for (index, window) in instructions.windows(2).enumerate() {
        let Some(&adrp) = window.first().filter(|instruction| **instruction & 0x9f00_0000 == 0x9000_0000) else {
            continue;
        };
        let place = base.wrapping_add(4 * index as u64);
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        // 21 bits, signed.
        let pages = i64::from((pages << 11).cast_signed() >> 11);
        let page = (place & !0xfff).wrapping_add_signed(pages << 12);
        let register = adrp & 0x1f;
        let halves = instructions.iter().skip(index + 1).take(ADDRESS_HALVES);
        let adds = halves.filter(|add| **add & 0xffc0_0000 == 0x9100_0000 && **add >> 5 & 0x1f == register);
        if adds.map(|add| page.wrapping_add(u64::from(add >> 10 & 0xfff))).any(is_inside) {
            places.push(place);
        }
    }
}
