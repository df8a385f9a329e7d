//! Walks from container to container through a file in one pass, and distinguishes outside, inside and damage.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use model::{Arch, BoundsError, GpuCode, PtxVersion, Variant, part};

use super::super::sections::number;

/// Magic, version and header size of a container.
pub(super) const MAGIC: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&MAGIC));

/// Size of a container's header, in bytes.
pub(super) const CONTAINER_HEADER: usize = 16;

/// Bytes read of an entry's header. Compiler options may follow in it.
pub(super) const ENTRY_HEADER: usize = 64;

/// Number of bytes that suffices for any step.
pub(super) const STEP: usize = CONTAINER_HEADER + ENTRY_HEADER;

/// Receives the events of a walk.
pub(in super::super) trait Visit {
    /// Bytes outside of containers, with their offset. Between two calls there may be containers or a hole.
    fn outside(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), BoundsError> {
        Ok(())
    }

    /// A valid container: its range and content.
    fn container(&mut self, place: Range<u64>, code: GpuCode);

    /// A damaged container: the range it claims, and the position of the damage.
    fn damaged(&mut self, place: Range<u64>, at: u64);

    /// The first bytes of a container without a valid entry behind them. They may occur by chance, also in the code of a
    /// program that reads containers, and are passed to [`Self::outside`] too.
    fn suspected(&mut self, _at: u64) {}
}

/// State of the walk.
#[derive(Default)]
pub(in super::super) struct Walker {
    /// Offset of the next byte to inspect. Skipped ranges put it ahead of the bytes received.
    next: u64,
    /// The container that includes `next`; `None` while searching for one.
    inside: Option<Container>,
    /// Bytes received from `next` on, too few for a step.
    pub(super) rest: Vec<u8>,
}

/// The container being read.
struct Container {
    start: u64,
    end: u64,
    /// Content read so far. It counts once the container proves valid.
    code: GpuCode,
}

impl Walker {
    /// Receives the next bytes of the file.
    pub(in super::super) fn push(
        &mut self,
        offset: u64,
        bytes: &[u8],
        visit: &mut impl Visit,
    ) -> Result<(), BoundsError> {
        let begin = self.next;
        if begin + (self.rest.len() as u64) < offset {
            // A hole reads as zeros, which are not a valid header.
            self.leave(visit)?;
            self.next = offset;
        }
        if !self.rest.is_empty() {
            // With these bytes, every step that begins in the rest of the previous chunk is possible.
            let mut seam = std::mem::take(&mut self.rest);
            seam.extend_from_slice(bytes.get(..STEP).unwrap_or(bytes));
            self.walk(begin, &seam, visit)?;
            if bytes.len() <= STEP {
                from(self.next, begin, &seam).unwrap_or_default().clone_into(&mut self.rest);
                return Ok(());
            }
        }
        self.walk(offset, bytes, visit)?;
        from(self.next, offset, bytes).unwrap_or_default().clone_into(&mut self.rest);
        Ok(())
    }

    /// Offset of the first relevant byte from `at` on, the end of the bytes received.
    pub(in super::super) fn next(&self, at: u64) -> u64 {
        self.next.max(at)
    }

    /// Ends the walk at the end of the file.
    pub(in super::super) fn finish(&mut self, visit: &mut impl Visit) -> Result<(), BoundsError> {
        self.leave(visit)
    }

    /// Ends a run of contiguous bytes, which damages an open container.
    fn leave(&mut self, visit: &mut impl Visit) -> Result<(), BoundsError> {
        let rest = std::mem::take(&mut self.rest);
        match self.inside.take() {
            Some(container) => visit.damaged(container.start..container.end, self.next),
            None if rest.is_empty() => {}
            None => visit.outside(self.next, &rest)?,
        }
        Ok(())
    }

    /// Takes every step possible with these bytes, which begin at `offset`.
    fn walk(&mut self, offset: u64, bytes: &[u8], visit: &mut impl Visit) -> Result<(), BoundsError> {
        while let Some(bytes) = from(self.next, offset, bytes) {
            let went_on = match self.inside.take() {
                Some(container) => self.entry(container, bytes, visit),
                None => self.search(bytes, visit)?,
            };
            if !went_on {
                break;
            }
        }
        Ok(())
    }

    /// Searches for a container; false if there are too few bytes.
    fn search(&mut self, bytes: &[u8], visit: &mut impl Visit) -> Result<bool, BoundsError> {
        let Some(at) = FINDER.find(bytes) else {
            self.pass(bytes, bytes.len().saturating_sub(MAGIC.len() - 1), visit)?;
            return Ok(false);
        };
        self.pass(bytes, at, visit)?;
        let bytes = part(bytes, at..)?;
        let Some((header, entry)) = bytes
            .split_first_chunk::<CONTAINER_HEADER>()
            .and_then(|(header, rest)| Some((header, rest.first_chunk::<ENTRY_HEADER>()?)))
        else {
            return Ok(false);
        };
        let start = self.next;
        let first = start + CONTAINER_HEADER as u64;
        let end = number(header, 8, 8).and_then(|size| first.checked_add(size));
        if let Some(end) = end.filter(|end| FatbinEntry::parse(entry, end - first).is_some()) {
            self.next = first;
            self.inside = Some(Container { start, end, code: GpuCode::default() });
        } else {
            visit.suspected(start);
            self.pass(bytes, MAGIC.len(), visit)?;
        }
        Ok(true)
    }

    /// Skips `count` bytes, which lie outside.
    fn pass(&mut self, bytes: &[u8], count: usize, visit: &mut impl Visit) -> Result<(), BoundsError> {
        if count > 0 {
            visit.outside(self.next, part(bytes, ..count)?)?;
            self.next += count as u64;
        }
        Ok(())
    }

    /// Reads one entry, or ends the container; false if there are too few bytes.
    fn entry(&mut self, mut container: Container, bytes: &[u8], visit: &mut impl Visit) -> bool {
        let place = container.start..container.end;
        if self.next == container.end {
            visit.container(place, container.code);
            return true;
        }
        let Some(header) = bytes.first_chunk() else {
            self.inside = Some(container);
            return false;
        };
        if let Some(entry) = FatbinEntry::parse(header, container.end - self.next) {
            entry.code.note(&mut container.code);
            self.next += entry.length;
            self.inside = Some(container);
        } else {
            visit.damaged(place, self.next);
        }
        true
    }
}

/// The part of `bytes`, which begin at `offset`, from `place` on; `None` if it lies beyond them.
fn from(place: u64, offset: u64, bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(usize::try_from(place.checked_sub(offset)?).ok()?..)
}

/// The relevant fields of an entry's header.
struct FatbinEntry {
    code: Code,
    /// Size of the entry with its header, in bytes.
    length: u64,
}

enum Code {
    Ptx(Arch, PtxVersion),
    Cubin(Arch),
    /// Input of a linker, such as LTO-IR.
    Other,
}

impl FatbinEntry {
    /// Reads a header; `None` if it is invalid, or if the entry exceeds the `room` left for it.
    fn parse(header: &[u8; ENTRY_HEADER], room: u64) -> Option<Self> {
        let number = |at, size| number(header, at, size);
        let kind = number(0, 2)?;
        let version = number(2, 2)?;
        let size = number(4, 4)?;
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

/// The suffix of the architecture's name.
const fn variant(flags: u64) -> Variant {
    match flags & 0x30_0000 {
        0x10_0000 => Variant::Specific,
        0x20_0000 => Variant::Family,
        _ => Variant::Plain,
    }
}
