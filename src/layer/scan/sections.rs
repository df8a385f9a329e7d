//! Positions of a library's sections, from its section header table near the end of the file (System V gABI, chapter
//! 4). Linkers put the section names right before the table, so both can be kept in one pass.

use std::ops::Range;

use crate::model::{BoundsError, index, part};

/// Size of an ELF64 header, and of a section header, in bytes.
const HEADER: usize = 64;

/// Maximum number of sections. Libraries have about forty.
const SECTIONS: u64 = 1024;

/// Bytes before the table that are searched for the section names. The names take a few hundred.
const NAMES: u64 = 16 << 10;

/// Gathers the section headers of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct ElfSections {
    header: Vec<u8>,
    /// Range of the names and the table.
    wanted: Range<u64>,
    /// The bytes received from that range.
    bytes: Vec<u8>,
}

impl ElfSections {
    /// The range of the section headers and their names, which the first bytes of a file name; `None` if they cannot be
    /// read.
    pub(super) fn wanted_by(head: &[u8]) -> Option<Range<u64>> {
        let header = head.get(..HEADER)?.to_vec();
        Self { header, ..Self::default() }.table().map(|table| names_and(&table))
    }

    /// The section headers of a file with these first bytes, and these bytes in the range that [`Self::wanted_by`] gave.
    pub(super) fn of(head: &[u8], wanted: Range<u64>, bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() as u64 == wanted.end - wanted.start;
        is_whole.then_some(Self { header: head.get(..HEADER)?.to_vec(), wanted, bytes: bytes.to_vec() })
    }

    /// The ranges of machine code, ascending; `None` if the section headers cannot be read.
    pub(super) fn code(&self) -> Option<Vec<Range<u64>>> {
        const SHT_NOBITS: u64 = 8;
        const SHF_EXECINSTR: u64 = 4;
        let table = self.table()?;
        let mut code = Vec::new();
        for index in 0..number(&self.header, 60, 2)? {
            let header = self.get(table.start + index * HEADER as u64)?;
            if number(header, 4, 4)? != SHT_NOBITS && number(header, 8, 8)? & SHF_EXECINSTR != 0 {
                code.push(self.section(&table, index)?);
            }
        }
        code.sort_by_key(|range| range.start);
        Some(code)
    }

    /// Receives the next bytes of the file, in order.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if offset == self.header.len() as u64 && self.header.len() < HEADER {
            let missing = HEADER - self.header.len();
            self.header.extend_from_slice(bytes.get(..missing).unwrap_or(bytes));
            self.wanted = self.table().map_or(0..0, |table| names_and(&table));
            // The range may include bytes from before the header was complete.
            let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let before = place(self.wanted.start)..place(self.wanted.end.min(offset));
            self.bytes = self.header.get(before).unwrap_or_default().to_vec();
        }
        let from = self.wanted.start.max(offset);
        let to = self.wanted.end.min(offset + bytes.len() as u64);
        if from < to {
            // Holes read as zeros. All differences are within the range, which is small.
            self.bytes.resize(index(from - self.wanted.start)?, 0);
            self.bytes.extend_from_slice(part(bytes, index(from - offset)?..index(to - offset)?)?);
        }
        Ok(())
    }

    /// Offset of the first byte to gather from `at` on, the end of the bytes received.
    pub(super) fn next(&self, at: u64) -> Option<u64> {
        if self.header.len() < HEADER {
            return Some(at);
        }
        (at < self.wanted.end).then(|| at.max(self.wanted.start))
    }

    /// The ranges of the sections with this name; `None` if the section headers cannot be read.
    pub(super) fn named(&self, name: &[u8]) -> Option<Vec<Range<u64>>> {
        let table = self.table()?;
        let names = self.section(&table, number(&self.header, 62, 2)?)?;
        let mut found = Vec::new();
        for index in 0..number(&self.header, 60, 2)? {
            let at = table.start + index * HEADER as u64;
            let start = names.start.checked_add(number(self.get(at)?, 0, 4)?)?;
            let text = self.get(start)?.split(|byte| *byte == 0).next()?;
            if start < names.end && text == name {
                found.push(self.section(&table, index)?);
            }
        }
        Some(found)
    }

    /// The range of the table; `None` unless the file is a little-endian 64-bit one.
    fn table(&self) -> Option<Range<u64>> {
        let number = |at, size| number(&self.header, at, size);
        let is_read = self.header.starts_with(b"\x7fELF\x02\x01") && number(58, 2)? == HEADER as u64;
        let (start, count) = (number(40, 8)?, number(60, 2)?);
        let end = start.checked_add(count * HEADER as u64)?;
        (is_read && start > 0 && (1..=SECTIONS).contains(&count)).then_some(start..end)
    }

    /// The range of a section by its index in the table.
    fn section(&self, table: &Range<u64>, index: u64) -> Option<Range<u64>> {
        let header = self.get(table.start.checked_add(index * HEADER as u64)?)?;
        let start = number(header, 24, 8)?;
        Some(start..start.checked_add(number(header, 32, 8)?)?)
    }

    /// The gathered bytes from an offset on.
    fn get(&self, offset: u64) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(offset.checked_sub(self.wanted.start)?).ok()?..)
    }
}

/// The range of the table and of the names before it.
fn names_and(table: &Range<u64>) -> Range<u64> {
    table.start.saturating_sub(NAMES)..table.end
}

/// The little-endian number of `size` bytes, at most eight, at `at`.
pub(super) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut buffer = [0; 8];
    buffer.get_mut(..size)?.copy_from_slice(bytes.get(at..at + size)?);
    Some(u64::from_le_bytes(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_near_the_beginning_is_kept_for_any_chunking_of_the_header() {
        let mut file = vec![0; 2 * HEADER];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, number) in [(40, 64), (58, 64), (60, 1)] {
            file[at] = number;
        }
        for cut in 1..file.len() {
            let mut sections = ElfSections::default();
            sections.push(0, &file[..cut]).unwrap();
            sections.push(cut as u64, &file[cut..]).unwrap();
            assert_eq!(sections.get(0), Some(&*file), "cut at {cut}");
        }
    }
}
