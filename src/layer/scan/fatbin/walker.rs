//! From container to container through a file whose bytes go by: what is outside, what is inside, what is damaged.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::model::{Arch, BoundsError, GpuCode, PtxVersion, Variant, part};

use super::sections::number;

/// Magic, version and header size of a container.
pub(super) const MAGIC: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&MAGIC));

/// Bytes of a container's header.
pub(super) const CONTAINER_HEADER: usize = 16;

/// Bytes of an entry's header that are read; options of the compiler may follow in it.
pub(super) const ENTRY_HEADER: usize = 64;

/// Bytes that are enough for any step.
pub(super) const STEP: usize = CONTAINER_HEADER + ENTRY_HEADER;

/// Who is told of what goes by.
pub(super) trait Visit {
    /// Bytes that lie in no container, and where they are. Between two calls there may be containers, or a hole.
    fn outside(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), BoundsError> {
        Ok(())
    }

    /// A container that was sound: where it is, and what it holds.
    fn container(&mut self, place: Range<u64>, code: GpuCode);

    /// A container that was not: what it would have reached over, and where that shows.
    fn damaged(&mut self, place: Range<u64>, at: u64);
}

/// Where the walk is.
#[derive(Default)]
pub(super) struct Walker {
    /// Offset of the next byte to look at. It runs ahead of the bytes that came, over what is passed over.
    next: u64,
    /// The container that `next` lies in; outside, one is searched for.
    inside: Option<Container>,
    /// Bytes from `next` on that came and were too few for a step.
    pub(super) rest: Vec<u8>,
}

/// A container that is being walked through.
struct Container {
    start: u64,
    end: u64,
    /// What was read of it. It counts once the container is known to be sound.
    code: GpuCode,
}

impl Walker {
    /// The next bytes of the file.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8], visit: &mut impl Visit) -> Result<(), BoundsError> {
        let begin = self.next;
        if begin + (self.rest.len() as u64) < offset {
            // A hole reads as zeros, which are no header.
            self.leave(visit)?;
            self.next = offset;
        }
        if !self.rest.is_empty() {
            // With these, every step that begins in what is left of the bytes before can be taken.
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

    /// The first byte from `at` on, where the bytes that came end, that it is not indifferent to.
    pub(super) fn next(&self, at: u64) -> u64 {
        self.next.max(at)
    }

    /// The end of the file.
    pub(super) fn finish(&mut self, visit: &mut impl Visit) -> Result<(), BoundsError> {
        self.leave(visit)
    }

    /// No more bytes follow on those that came.
    fn leave(&mut self, visit: &mut impl Visit) -> Result<(), BoundsError> {
        let rest = std::mem::take(&mut self.rest);
        match self.inside.take() {
            Some(container) => visit.damaged(container.start..container.end, self.next),
            None if rest.is_empty() => {}
            None => visit.outside(self.next, &rest)?,
        }
        Ok(())
    }

    /// Takes every step that these bytes, which begin at `offset`, are enough for.
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

    /// Looks for a container; false when the bytes are too few to tell.
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
        match end.filter(|end| FatbinEntry::parse(entry, end - first).is_some()) {
            Some(end) => {
                self.next = first;
                self.inside = Some(Container { start, end, code: GpuCode::default() });
            }
            // By chance, or in a program that reads containers.
            None => self.pass(bytes, MAGIC.len(), visit)?,
        }
        Ok(true)
    }

    /// Passes over the first of these bytes, which lie outside.
    fn pass(&mut self, bytes: &[u8], count: usize, visit: &mut impl Visit) -> Result<(), BoundsError> {
        if count > 0 {
            visit.outside(self.next, part(bytes, ..count)?)?;
            self.next += count as u64;
        }
        Ok(())
    }

    /// Reads one entry, or ends the container; false when the bytes are too few.
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

/// The part of `bytes`, which begin at `offset`, from `place` on; `None` where that is not among them.
fn from(place: u64, offset: u64, bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(usize::try_from(place.checked_sub(offset)?).ok()?..)
}

/// What an entry's header says.
struct FatbinEntry {
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

impl FatbinEntry {
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
