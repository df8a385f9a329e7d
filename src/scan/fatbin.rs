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

mod sections;

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::model::{Arch, Found, Gap, GpuCode, PtxVersion, Variant};

use super::extract::{Collect, Extractor};
use sections::{Sections, number};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "GPU code",
    wants: |_, head| head.starts_with(b"\x7fELF"),
    start: |entry, _| Box::new(Walk::new(entry.path.to_string())),
};

/// Magic, version and header size of a container.
const MAGIC: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&MAGIC));

/// Bytes of a container's header.
const CONTAINER_HEADER: usize = 16;

/// Bytes of an entry's header that are read; options of the compiler may follow in it.
const ENTRY_HEADER: usize = 64;

/// Bytes that are enough for any step.
const STEP: usize = CONTAINER_HEADER + ENTRY_HEADER;

/// Most containers that a file may have. PyTorch's libraries have some hundred.
const CONTAINERS: usize = 1 << 16;

/// Most damaged containers that are told apart.
const NOTED: usize = 64;

/// Most differing contents of containers.
const CODES: usize = 1 << 10;

/// Sections of containers: those that are loaded, and those that are linked on the device to make them.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// Walks from container to container through one file.
struct Walk {
    path: String,
    /// Offset of the next byte to look at. It runs ahead of the bytes that came, over what is passed over.
    next: u64,
    /// The container that `next` lies in; outside, one is searched for.
    inside: Option<Container>,
    /// Bytes from `next` on that came and were too few for a step.
    rest: Vec<u8>,
    /// Containers that were sound, each with the index of what it holds.
    containers: Vec<(Range<u64>, usize)>,
    /// What containers hold: most of a library's hold the same.
    codes: Vec<GpuCode>,
    sections: Sections,
    /// What is wrong with containers, and what they would have reached over.
    damage: Vec<(Range<u64>, String)>,
    /// Whether one of the bounds above was passed.
    too_much: bool,
}

/// A container that is being walked through.
struct Container {
    start: u64,
    end: u64,
    /// What was read of it. It counts once the container is known to be sound.
    code: GpuCode,
}

impl Walk {
    fn new(path: String) -> Self {
        let sections = Sections::default();
        let (rest, containers, codes) = (Vec::new(), Vec::new(), Vec::new());
        Self { path, next: 0, inside: None, rest, containers, codes, sections, damage: Vec::new(), too_much: false }
    }

    /// Takes every step that these bytes, which begin at `offset`, are enough for.
    fn walk(&mut self, offset: u64, bytes: &[u8]) {
        while let Some(bytes) = from(self.next, offset, bytes) {
            let went_on = match self.inside.take() {
                Some(container) => self.entry(container, bytes),
                None => self.search(bytes),
            };
            if !went_on {
                return;
            }
        }
    }

    /// Looks for a container; false when the bytes are too few to tell.
    fn search(&mut self, bytes: &[u8]) -> bool {
        let Some(at) = FINDER.find(bytes) else {
            self.next += bytes.len().saturating_sub(MAGIC.len() - 1) as u64;
            return false;
        };
        self.next += at as u64;
        let Some((header, entry)) = bytes
            .get(at..)
            .and_then(|bytes| bytes.split_first_chunk::<CONTAINER_HEADER>())
            .and_then(|(header, rest)| Some((header, rest.first_chunk::<ENTRY_HEADER>()?)))
        else {
            return false;
        };
        let start = self.next;
        let first = start + CONTAINER_HEADER as u64;
        let end = number(header, 8, 8).and_then(|size| first.checked_add(size));
        match end.filter(|end| Entry::parse(entry, end - first).is_some()) {
            Some(end) => {
                self.next = first;
                self.inside = Some(Container { start, end, code: GpuCode::default() });
            }
            // By chance, or in a program that reads containers.
            None => self.next = start + MAGIC.len() as u64,
        }
        true
    }

    /// Reads one entry, or ends the container; false when the bytes are too few.
    fn entry(&mut self, mut container: Container, bytes: &[u8]) -> bool {
        if self.next == container.end {
            self.add(container);
            return true;
        }
        let Some(header) = bytes.first_chunk() else {
            self.inside = Some(container);
            return false;
        };
        if let Some(entry) = Entry::parse(header, container.end - self.next) {
            entry.code.note(&mut container.code);
            self.next += entry.length;
            self.inside = Some(container);
        } else {
            self.damaged(&container);
        }
        true
    }

    /// Adds a container that was sound.
    fn add(&mut self, container: Container) {
        let known = self.codes.iter().position(|code| *code == container.code);
        let code = known.unwrap_or(self.codes.len());
        self.too_much |= self.containers.len() == CONTAINERS || code == CODES;
        if self.too_much {
            return;
        }
        if known.is_none() {
            self.codes.push(container.code);
        }
        self.containers.push((container.start..container.end, code));
    }

    /// What a driver would load, as `cuobjdump` lists it too: what lies in `.nv_fatbin`; in an object that was not linked
    /// on the device, what is there for that. Elsewhere, libraries keep code that they load by themselves.
    fn loadable(self) -> Result<GpuCode, String> {
        if self.too_much {
            return Err(format!("it has more than {CONTAINERS} containers of GPU code, or {CODES} kinds of them"));
        }
        let named = SECTIONS.iter().map(|name| self.sections.named(name)).collect::<Option<Vec<_>>>();
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

    fn damaged(&mut self, container: &Container) {
        let what = format!("the container of GPU code at {:#x} is damaged at {:#x}", container.start, self.next);
        self.too_much |= self.damage.len() == NOTED;
        if !self.too_much {
            self.damage.push((container.start..container.end, what));
        }
    }
}

/// The GPU code of a library whose bytes come in pieces, or what is wrong with it. Here for fuzzing: otherwise the bytes come
/// from a layer.
pub fn gpu_code<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<GpuCode>, Gap> {
    let mut walk = Box::new(Walk::new("library".to_owned()));
    let mut offset = 0;
    for piece in pieces {
        walk.push(offset, piece);
        offset += piece.len() as u64;
    }
    match walk.finish()? {
        Some(Found::GpuCode(code)) => code.map(Some),
        _ => Ok(None),
    }
}

/// The part of `bytes`, which begin at `offset`, from `place` on; `None` where that is not among them.
fn from(place: u64, offset: u64, bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(usize::try_from(place.checked_sub(offset)?).ok()?..)
}

impl Collect for Walk {
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        self.sections.push(offset, bytes);
        let begin = self.next;
        if begin + (self.rest.len() as u64) < offset {
            // A hole reads as zeros, which are no header.
            self.rest.clear();
            if let Some(container) = self.inside.take() {
                self.damaged(&container);
            }
            self.next = offset;
        }
        if !self.rest.is_empty() {
            // With these, every step that begins in what is left of the bytes before can be taken.
            let mut seam = std::mem::take(&mut self.rest);
            seam.extend_from_slice(bytes.get(..STEP).unwrap_or(bytes));
            self.walk(begin, &seam);
            if bytes.len() <= STEP {
                from(self.next, begin, &seam).unwrap_or_default().clone_into(&mut self.rest);
                return;
            }
        }
        self.walk(offset, bytes);
        from(self.next, offset, bytes).unwrap_or_default().clone_into(&mut self.rest);
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Found>, Gap> {
        if let Some(container) = self.inside.take() {
            self.damaged(&container);
        }
        let path = std::mem::take(&mut self.path);
        Ok(match self.loadable() {
            Ok(code) if code == GpuCode::default() => None,
            Ok(code) => Some(Found::GpuCode(Ok(code))),
            Err(damage) => Some(Found::GpuCode(Err(Gap::new(format!("{path}: {damage}"))))),
        })
    }
}

/// What an entry's header says.
struct Entry {
    code: Code,
    /// Bytes of the entry, its header among them.
    length: u64,
}

enum Code {
    Ptx(Arch, PtxVersion),
    Cubin(Arch),
    /// Code that only a linker reads, such as LTO-IR.
    Other,
}

impl Entry {
    /// Reads a header; `None` when it is none, or the entry is larger than the `room` that is left for it.
    fn parse(header: &[u8; ENTRY_HEADER], room: u64) -> Option<Self> {
        let number = |at, size| number(header, at, size);
        let (kind, version, size) = (number(0, 2)?, number(2, 2)?, number(4, 4)?);
        let length = size.checked_add(number(8, 8)?)?;
        if version != 0x0101 || size < ENTRY_HEADER as u64 || length > room {
            return None;
        }
        let arch = || Arch::new(u32::try_from(number(28, 4)?).ok()?, variant(number(40, 8)?));
        let code = match kind {
            1 => Code::Ptx(arch()?, (u16::try_from(number(26, 2)?).ok()?, u16::try_from(number(24, 2)?).ok()?)),
            2 => Code::Cubin(arch()?),
            _ => Code::Other,
        };
        Some(Self { code, length })
    }
}

impl Code {
    fn note(self, code: &mut GpuCode) {
        match self {
            Self::Ptx(arch, version) => code.add_ptx(arch, version),
            Self::Cubin(arch) => _ = code.cubin.insert(arch),
            Self::Other => {}
        }
    }
}

/// The suffix of the architecture.
const fn variant(flags: u64) -> Variant {
    match flags & 0x30_0000 {
        0x10_0000 => Variant::Specific,
        0x20_0000 => Variant::Family,
        _ => Variant::Plain,
    }
}

#[cfg(test)]
mod tests;
