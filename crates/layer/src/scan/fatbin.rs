//! Lists the GPU code in libraries from the headers of its containers, in one pass. Nothing is decompressed.
//!
//! A container is the output of `fatbinary` of the CUDA toolkit: a header of 16 bytes, followed by entries that fill it
//! exactly, each with a header and a payload. All numbers are little-endian. The containers of the section `.nv_fatbin`
//! are contiguous; those in `__nv_relfatbin` are the input of the device linker, and code in other places is loaded by
//! the libraries themselves. NVIDIA does not publish the layout; `tests/fatbin/compare` compares this reader with
//! `cuobjdump`.
//!
//! ```text
//! container  0 u32 magic   4 u16 version, 1   6 u16 size of this header, 16   8 u64 size of the entries
//! entry      0 u16 kind    2 u16 version, 0x0101   4 u32 size of this header   8 u64 size of the payload
//!            24 u16 minor, 26 u16 major version of the code's format   28 u32 architecture   40 u64 flags
//! ```
//!
//! Section headers give the positions of containers, but lie near the end of the file. So a container is recognised by
//! its first eight bytes and a valid header of its first entry, which do not occur together by chance; its contents are
//! skipped. The section headers then decide which containers count.

mod outside;
mod walker;

use std::ops::Range;

use model::{BoundsError, Found, Gap, GpuCode};

use super::extract::{Collect, Extractor};
use super::section_names::SectionNames;
use super::sections::ElfSections;

pub(super) use outside::Outside;
pub(super) use walker::{Visit, Walker};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "GPU code",
    wants: |_, head| head.starts_with(b"\x7fELF"),
    start: |entry, _| Box::new(Walk::new(entry.path.to_string())),
};

/// Maximum number of containers in a file. PyTorch's libraries have a few hundred.
const CONTAINERS: usize = 1 << 16;

/// Maximum number of damaged containers that are recorded separately.
const NOTED: usize = 64;

/// Maximum number of different container contents.
const CODES: usize = 1 << 10;

/// Names of the sections of containers: loaded ones, and the input of the device linker.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin\0", b"__nv_relfatbin\0"];

/// Reads the containers of one file.
struct Walk {
    path: String,
    walker: Walker,
    seen: Seen,
    sections: ElfSections,
    /// The ranges of each of [`SECTIONS`], if they are known beforehand.
    held: Option<Vec<Vec<Range<u64>>>>,
}

/// Containers seen so far, and what lies outside of them.
struct Seen {
    /// Valid containers, each with the index of its content.
    containers: Vec<(Range<u64>, usize)>,
    /// The different contents: most containers of a library have the same.
    codes: Vec<GpuCode>,
    /// Ranges of damaged containers, with the damage.
    damage: Vec<(Range<u64>, String)>,
    /// Places that only look like the beginning of a container, ascending.
    suspects: Vec<u64>,
    /// True when one of the limits above was exceeded.
    too_much: bool,
    /// Places of the names of [`SECTIONS`].
    names: SectionNames,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            containers: Vec::new(),
            codes: Vec::new(),
            damage: Vec::new(),
            suspects: Vec::new(),
            too_much: false,
            names: SectionNames::new(&SECTIONS),
        }
    }
}

impl Visit for Seen {
    fn outside(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.names.push(offset, bytes)
    }

    fn container(&mut self, place: Range<u64>, code: GpuCode) {
        let known = self.codes.iter().position(|known| *known == code);
        let index = known.unwrap_or(self.codes.len());
        self.too_much |= self.containers.len() == CONTAINERS || index == CODES;
        if self.too_much {
            return;
        }
        if known.is_none() {
            self.codes.push(code);
        }
        self.containers.push((place, index));
    }

    fn damaged(&mut self, place: Range<u64>, at: u64) {
        let what = format!("the container of GPU code at {:#x} is damaged at {at:#x}", place.start);
        self.too_much |= self.damage.len() == NOTED;
        if !self.too_much {
            self.damage.push((place, what));
        }
    }

    fn suspected(&mut self, at: u64) {
        self.too_much |= self.suspects.len() == CONTAINERS;
        if !self.too_much {
            self.suspects.push(at);
        }
    }
}

impl Walk {
    fn new(path: String) -> Self {
        Self { path, walker: Walker::default(), seen: Seen::default(), sections: ElfSections::default(), held: None }
    }
}

impl Seen {
    /// The code that a driver would load, which is also what `cuobjdump` lists: that in `.nv_fatbin`, or, in an object
    /// before device linking, the input of the linker. In other sections libraries keep code that they load themselves.
    fn loadable(self, named: Option<Vec<Vec<Range<u64>>>>) -> Result<GpuCode, String> {
        if self.too_much {
            return Err(format!("it has more than {CONTAINERS} containers of GPU code, or {CODES} kinds of them"));
        }
        let Some(sections) = named else {
            // Whichever of them a driver would load, the code is the same.
            return match self.codes.len() {
                0 | 1 => self.within(&(0..u64::MAX)),
                _ => Err("no section headers show which of its GPU code a driver would load".to_owned()),
            };
        };
        for section in sections {
            let mut code = GpuCode::default();
            for range in disjoint(section) {
                code.add(&self.within(&range)?);
                self.begins_as_expected(&range)?;
            }
            if code != GpuCode::default() {
                return Ok(code);
            }
        }
        Ok(GpuCode::default())
    }

    /// The code of the containers that begin in this range, unless one that reaches into it is damaged.
    fn within(&self, range: &Range<u64>) -> Result<GpuCode, String> {
        let overlaps = |damaged: &Range<u64>| range.start < damaged.end && damaged.start < range.end;
        if let Some((_, damage)) = self.damage.iter().find(|(damaged, _)| overlaps(damaged)) {
            return Err(damage.clone());
        }
        let mut code = GpuCode::default();
        let containers = self.containers.get(self.first_from(range.start)..self.first_from(range.end));
        let held = containers.unwrap_or_default().iter().filter_map(|(_, held)| self.codes.get(*held));
        held.for_each(|held| code.add(held));
        Ok(code)
    }

    /// A section of GPU code holds containers, and nothing else begins like one: otherwise it is damaged, or of a form
    /// that is not known here.
    fn begins_as_expected(&self, section: &Range<u64>) -> Result<(), String> {
        if let Some(at) = self.suspects.iter().find(|at| section.contains(at)) {
            return Err(format!("the container of GPU code at {at:#x} does not begin with a valid entry"));
        }
        if self.first_from(section.start) == self.first_from(section.end) {
            return Err(format!("the section of GPU code at {:#x} holds none of a known form", section.start));
        }
        Ok(())
    }

    /// Index of the first container that begins at this offset or later.
    fn first_from(&self, offset: u64) -> usize {
        self.containers.partition_point(|(place, _)| place.start < offset)
    }
}

/// The ranges without empty ones, those that overlap as one, so that hostile section headers cost no more than others.
fn disjoint(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let overlaps = next.start < kept.end;
        if overlaps {
            kept.end = kept.end.max(next.end);
        }
        overlaps
    });
    ranges
}

/// The GPU code of a library that is read in pieces, or the damage to it. Public for fuzzing: otherwise the bytes come
/// from a layer.
pub fn gpu_code<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<GpuCode>, Gap> {
    let mut walk = Box::new(Walk::new("library".to_owned()));
    let mut offset = 0;
    for piece in pieces {
        walk.push(offset, piece).map_err(|error| Gap::new(error.to_string()))?;
        offset += piece.len() as u64;
    }
    match walk.finish()? {
        Some(Found::GpuCode(code)) => code.map(Some),
        _ => Ok(None),
    }
}

impl Collect for Walk {
    fn sections(&mut self, sections: &ElfSections) {
        self.held = SECTIONS.iter().map(|name| sections.of_name(name)).collect();
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if self.held.is_none() {
            self.sections.push(offset, bytes)?;
        }
        self.walker.push(offset, bytes, &mut self.seen)
    }

    fn next(&self, at: u64) -> Option<u64> {
        let searched = self.walker.next(at);
        if let Some(held) = &self.held {
            let wanted = held.iter().flatten().filter(|range| searched < range.end);
            return wanted.map(|range| range.start.max(searched)).min();
        }
        Some(self.sections.next(at).map_or(searched, |wanted| wanted.min(searched)))
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Found>, Gap> {
        self.walker.finish(&mut self.seen).map_err(|error| Gap::new(format!("{}: {error}", self.path)))?;
        let find = |name| self.sections.named(&self.seen.names, name);
        let named = self.held.take().or_else(|| (0..SECTIONS.len()).map(find).collect());
        Ok(match self.seen.loadable(named) {
            Ok(code) if code == GpuCode::default() => None,
            Ok(code) => Some(Found::GpuCode(Ok(code))),
            Err(damage) => Some(Found::GpuCode(Err(Gap::new(format!("{}: {damage}", self.path))))),
        })
    }
}

#[cfg(test)]
mod tests;
