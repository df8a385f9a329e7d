//! Finds the names of sections before the section headers are known.
//!
//! A section header gives the offset of its name (System V gABI, chapter 4, "String Table"), but linkers put the names
//! anywhere: GNU ld right before the headers, LLD before the symbols' names, which take 188 MB in TensorFlow, and
//! patchelf leaves them where they were when it moves the headers. So the place of every such text is noted, and a
//! header at the end of the file identifies its section by one of these places.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use model::{BoundsError, part};

/// The last characters that all names share, with the terminator.
const ENDING: &[u8] = b"fatbin\0";

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(ENDING));

/// Maximum number of places of one name. Libraries have a few: the name itself, and texts of programs that read it.
const PLACES: usize = 1 << 12;

/// Places of one name, with its terminator, in a file that is read in order.
#[derive(Debug)]
pub(super) struct NamePlaces {
    name: &'static [u8],
    places: BTreeSet<u64>,
    /// True when the limit was exceeded.
    too_many: bool,
}

/// Places of several names.
#[derive(Debug)]
pub(super) struct SectionNames {
    names: Vec<NamePlaces>,
    /// The last bytes received, in which a name may begin.
    tail: Vec<u8>,
    /// Offset after the last byte received.
    end: u64,
}

impl SectionNames {
    /// Searches for these names, each of which ends in [`ENDING`].
    pub(super) fn new(names: &[&'static [u8]]) -> Self {
        debug_assert!(names.iter().all(|name| name.ends_with(ENDING)), "{names:?}");
        let names = names.iter().map(|name| NamePlaces { name, places: BTreeSet::new(), too_many: false });
        Self { names: names.collect(), tail: Vec::new(), end: 0 }
    }

    /// Receives the next bytes; a name never extends over a range that was left out.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        let longest = self.names.iter().map(|place| place.name.len()).max().unwrap_or_default();
        let mut tail = std::mem::take(&mut self.tail);
        if self.end != offset {
            tail.clear();
        }
        let begin = offset - tail.len() as u64;
        if !tail.is_empty() {
            tail.extend_from_slice(bytes.get(..longest).unwrap_or(bytes));
            self.search(begin, &tail)?;
        }
        self.search(offset, bytes)?;
        // The bytes that a later name may begin in.
        let rest = if bytes.len() < longest && !tail.is_empty() { &tail } else { bytes };
        self.tail = part(rest, (rest.len() + 1).saturating_sub(longest)..)?.to_vec();
        self.end = offset + bytes.len() as u64;
        Ok(())
    }

    fn search(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        for at in FINDER.find_iter(bytes) {
            let before = part(bytes, ..at + ENDING.len())?;
            for place in self.names.iter_mut().filter(|place| before.ends_with(place.name)) {
                place.note(offset + (before.len() - place.name.len()) as u64);
            }
        }
        Ok(())
    }

    /// Returns true if the name with this index is at `place`; `None` if it is at too many places.
    pub(super) fn is_at(&self, name: usize, place: u64) -> Option<bool> {
        let places = self.names.get(name).filter(|places| !places.too_many)?;
        Some(places.places.contains(&place))
    }
}

impl NamePlaces {
    fn note(&mut self, place: u64) {
        self.too_many |= self.places.len() == PLACES && !self.places.contains(&place);
        if !self.too_many {
            self.places.insert(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&[u8]; 2] = [b".nv_fatbin\0", b"__nv_relfatbin\0"];

    fn places(pieces: &[(u64, &[u8])]) -> [Vec<u64>; 2] {
        let mut names = SectionNames::new(&NAMES);
        for (offset, piece) in pieces {
            names.push(*offset, piece).unwrap();
        }
        [0, 1].map(|name| (0..400).filter(|place| names.is_at(name, *place).unwrap()).collect())
    }

    #[test]
    fn names_are_found_for_any_chunking() {
        let text = b"\0.text\0.rela.nv_fatbin\0fatbin\0.nv_fatbin.x\0__nv_relfatbin\0.nv_fatbin\0";
        let whole = places(&[(0, text)]);
        assert_eq!(whole, [vec![12, 58], vec![43]]);
        for size in 1..text.len() {
            let pieces: Vec<_> =
                text.chunks(size).enumerate().map(|(index, piece)| ((index * size) as u64, piece)).collect();
            assert_eq!(places(&pieces), whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_name_does_not_extend_over_a_hole() {
        assert_eq!(places(&[(0, b".nv_"), (300, b"fatbin\0.nv_fatbin\0")]), [vec![307], vec![]]);
    }

    #[test]
    fn too_many_places_are_not_an_answer() {
        let mut names = SectionNames::new(&NAMES);
        names.push(0, &NAMES[0].repeat(PLACES + 1)).unwrap();
        assert_eq!((names.is_at(0, 0), names.is_at(1, 0)), (None, Some(false)));
    }
}
