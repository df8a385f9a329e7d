//! Positions of a library's sections, from its section header table (System V gABI, chapter 4).

use std::ops::Range;

use model::{BoundsError, index, part};

use super::section_names::SectionNames;

/// Size of an ELF64 header, and of a section header, in bytes.
const HEADER: usize = 64;

/// Type of a section without bytes in the file, such as each section with code in a file of debugging information.
const SHT_NOBITS: u64 = 8;

/// Gathers the section headers of one file: at most 4 MiB, since their number has 16 bits.
#[derive(Clone, Debug, Default)]
pub(super) struct ElfSections {
    header: Vec<u8>,
    /// Range of the table.
    wanted: Range<u64>,
    /// The bytes received from that range.
    bytes: Vec<u8>,
    /// The section names and their offset, if they were read beforehand.
    texts: Option<(u64, Vec<u8>)>,
}

/// Maximum size of the section names that are read beforehand. They take a few hundred bytes, but LLD puts them into one
/// section with the names of symbols.
const TEXTS: u64 = 1 << 20;

impl ElfSections {
    /// The range of the section headers, which the first bytes of a file name; `None` if they cannot be read.
    pub(super) fn wanted_by(head: &[u8]) -> Option<Range<u64>> {
        let header = head.get(..HEADER)?.to_vec();
        Self { header, ..Self::default() }.table()
    }

    /// The section headers of a file with these first bytes, and these bytes in the range that [`Self::wanted_by`] gave.
    pub(super) fn of(head: &[u8], wanted: Range<u64>, bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() as u64 == wanted.end - wanted.start;
        let header = head.get(..HEADER)?.to_vec();
        is_whole.then_some(Self { header, wanted, bytes: bytes.to_vec(), texts: None })
    }

    /// The range of the section names, if it is small enough to be read beforehand.
    pub(super) fn names(&self) -> Option<Range<u64>> {
        self.section(number(&self.header, 62, 2)?).filter(|range| range.end - range.start <= TEXTS)
    }

    /// Receives the bytes of the range that [`Self::names`] gave.
    pub(super) fn set_names(&mut self, range: &Range<u64>, bytes: Vec<u8>) {
        self.texts = (bytes.len() as u64 == range.end - range.start).then_some((range.start, bytes));
    }

    /// The ranges of the sections with this name, which ends in NUL; `None` if the names were not read beforehand.
    pub(super) fn of_name(&self, name: &[u8]) -> Option<Vec<Range<u64>>> {
        let (_, texts) = self.texts.as_ref()?;
        let mut found = Vec::new();
        for index in 0..number(&self.header, 60, 2)? {
            let place = usize::try_from(number(self.get(index)?, 0, 4)?).ok()?;
            if texts.get(place..)?.starts_with(name) {
                found.push(self.section(index)?);
            }
        }
        Some(found)
    }

    /// The ranges of machine code, ascending; `None` if the section headers cannot be read.
    pub(super) fn code(&self) -> Option<Vec<Range<u64>>> {
        const SHF_EXECINSTR: u64 = 4;
        let mut code = Vec::new();
        for index in 0..number(&self.header, 60, 2)? {
            let header = self.get(index)?;
            if number(header, 8, 8)? & SHF_EXECINSTR != 0 {
                code.push(self.section(index)?);
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
            self.wanted = self.table().unwrap_or(0..0);
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

    /// The ranges of the sections with the name of this index; `None` if the section headers cannot be read.
    pub(super) fn named(&self, names: &SectionNames, name: usize) -> Option<Vec<Range<u64>>> {
        let texts = self.section(number(&self.header, 62, 2)?)?;
        let mut found = Vec::new();
        for index in 0..number(&self.header, 60, 2)? {
            let place = texts.start.checked_add(number(self.get(index)?, 0, 4)?)?;
            if place < texts.end && names.is_at(name, place)? {
                found.push(self.section(index)?);
            }
        }
        Some(found)
    }

    /// The range of the table; `None` unless the file is a little-endian 64-bit one.
    fn table(&self) -> Option<Range<u64>> {
        let number = |at, size| number(&self.header, at, size);
        let is_read = self.header.starts_with(b"\x7fELF\x02\x01") && number(58, 2)? == HEADER as u64;
        let start = number(40, 8)?;
        let count = number(60, 2)?;
        let end = start.checked_add(count * HEADER as u64)?;
        (is_read && start > 0 && count > 0).then_some(start..end)
    }

    /// The range of a section by its index in the table; an empty one if the section takes no bytes of the file.
    fn section(&self, index: u64) -> Option<Range<u64>> {
        let header = self.get(index)?;
        let start = number(header, 24, 8)?;
        let size = if number(header, 4, 4)? == SHT_NOBITS { 0 } else { number(header, 32, 8)? };
        Some(start..start.checked_add(size)?)
    }

    /// A header by its index in the table.
    fn get(&self, index: u64) -> Option<&[u8]> {
        let at = usize::try_from(index).ok()?.checked_mul(HEADER)?;
        self.bytes.get(at..)?.get(..HEADER)
    }
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
        let mut file = [0; 2 * HEADER];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, number) in [(40, 64), (58, 64), (60, 1)] {
            file[at] = number;
        }
        for cut in 1..file.len() {
            let mut sections = ElfSections::default();
            sections.push(0, &file[..cut]).unwrap();
            sections.push(cut as u64, &file[cut..]).unwrap();
            assert_eq!(sections.get(0), Some(&file[HEADER..]), "cut at {cut}");
        }
    }
}
