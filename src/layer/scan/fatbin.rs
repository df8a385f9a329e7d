//! GPU code in libraries, listed from the headers of its containers as they go by. Nothing is unpacked.
//!
//! A container is what `fatbinary` of the CUDA toolkit writes: a header of 16 bytes, and entries that fill it exactly, each
//! a header and its payload. All numbers are little-endian. Containers lie one behind the other in the section `.nv_fatbin`;
//! those in `__nv_relfatbin` are what it was linked from, and elsewhere is code that libraries load by themselves. NVIDIA does not publish the layout;
//! `tests/fatbin/compare` holds what is read here against `cuobjdump`.
//!
//! ```text
//! container  0 u32 magic   4 u16 version, 1   6 u16 size of this header, 16   8 u64 size of the entries
//! entry      0 u16 kind    2 u16 version, 0x0101   4 u32 size of this header   8 u64 size of the payload
//!            24 u16 minor, 26 u16 major version of the code's form   28 u32 architecture   40 u64 flags
//! ```
//!
//! Section headers say where containers are, and lie near the end of the file. So a container is known by its first eight
//! bytes and a sound header of its first entry, which together do not occur by chance; what lies inside one is passed over.
//! Which of them count is settled in the end.

mod outside;
mod sections;
mod walker;

use std::ops::Range;

use crate::model::{BoundsError, Found, Gap, GpuCode};

use super::extract::{Collect, Extractor};
use sections::FatbinSections;
use walker::{Visit, Walker};

pub(super) use outside::Outside;

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "GPU code",
    wants: |_, head| head.starts_with(b"\x7fELF"),
    start: |entry, _| Box::new(Walk::new(entry.path.to_string())),
};

/// Most containers that a file may have. PyTorch's libraries have some hundred.
const CONTAINERS: usize = 1 << 16;

/// Most damaged containers that are told apart.
const NOTED: usize = 64;

/// Most differing contents of containers.
const CODES: usize = 1 << 10;

/// Sections of containers: those that are loaded, and those that are linked on the device to make them.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// What the containers of one file hold.
struct Walk {
    path: String,
    walker: Walker,
    seen: Seen,
    sections: FatbinSections,
}

/// What the walker came by.
#[derive(Default)]
struct Seen {
    /// Containers that were sound, each with the index of what it holds.
    containers: Vec<(Range<u64>, usize)>,
    /// What containers hold: most of a library's hold the same.
    codes: Vec<GpuCode>,
    /// What is wrong with containers, and what they would have reached over.
    damage: Vec<(Range<u64>, String)>,
    /// Whether one of the bounds above was passed.
    too_much: bool,
}

impl Visit for Seen {
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
}

impl Walk {
    fn new(path: String) -> Self {
        Self { path, walker: Walker::default(), seen: Seen::default(), sections: FatbinSections::default() }
    }
}

impl Seen {
    /// What a driver would load, as `cuobjdump` lists it too: what lies in `.nv_fatbin`; in an object that was not linked
    /// on the device, what is there for that. Elsewhere, libraries keep code that they load by themselves.
    fn loadable(self, sections: &FatbinSections) -> Result<GpuCode, String> {
        if self.too_much {
            return Err(format!("it has more than {CONTAINERS} containers of GPU code, or {CODES} kinds of them"));
        }
        let named = SECTIONS.iter().map(|name| sections.named(name)).collect::<Option<Vec<_>>>();
        let sections = match named {
            Some(sections) => sections,
            None if self.is_one_place() => vec![vec![0..u64::MAX]],
            None => return Err("GPU code lies in several places, and nothing says in which sections".to_owned()),
        };
        for section in sections {
            let within = |place: u64| section.iter().any(|range: &Range<u64>| range.contains(&place));
            let overlaps = |damaged: &Range<u64>| {
                section.iter().any(|range| range.start < damaged.end && damaged.start < range.end)
            };
            if let Some((_, damage)) = self.damage.iter().find(|(range, _)| overlaps(range)) {
                return Err(damage.clone());
            }
            let mut code = GpuCode::default();
            let containers = self.containers.iter().filter(|(range, _)| within(range.start));
            containers.filter_map(|(_, held)| self.codes.get(*held)).for_each(|held| code.add(held));
            if code != GpuCode::default() {
                return Ok(code);
            }
        }
        Ok(GpuCode::default())
    }

    /// Whether all containers lie one behind the other.
    fn is_one_place(&self) -> bool {
        let ends = self.containers.iter().map(|(range, _)| range.end);
        ends.zip(self.containers.iter().skip(1)).all(|(end, (next, _))| end == next.start)
    }
}

/// The GPU code of a library whose bytes come in pieces, or what is wrong with it. Here for fuzzing: otherwise the bytes come
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
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.sections.push(offset, bytes)?;
        self.walker.push(offset, bytes, &mut self.seen)
    }

    fn next(&self, at: u64) -> Option<u64> {
        let searched = self.walker.next(at);
        Some(self.sections.next(at).map_or(searched, |wanted| wanted.min(searched)))
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Found>, Gap> {
        self.walker.finish(&mut self.seen).map_err(|error| Gap::new(format!("{}: {error}", self.path)))?;
        Ok(match self.seen.loadable(&self.sections) {
            Ok(code) if code == GpuCode::default() => None,
            Ok(code) => Some(Found::GpuCode(Ok(code))),
            Err(damage) => Some(Found::GpuCode(Err(Gap::new(format!("{}: {damage}", self.path))))),
        })
    }
}

#[cfg(test)]
mod tests;
