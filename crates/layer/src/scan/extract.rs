//! Extractors inspect files during the scan: each selects files, and reads their bytes in order, once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::ops::Range;

use model::{BoundsError, Entry, Found, Gap, Limits, index};

use super::sections::ElfSections;

/// Number of leading bytes that [`Extractor::wants`] sees; fewer in a shorter file.
pub(super) const HEAD: usize = 64;

/// An extractor.
#[derive(Debug)]
pub(super) struct Extractor {
    /// Name for messages.
    pub(super) name: &'static str,
    /// Returns true to select the file with this entry and these leading bytes. It must be cheap: it runs for every
    /// file.
    pub(super) wants: fn(&Entry, head: &[u8]) -> bool,
    /// Starts to inspect a file.
    pub(super) start: fn(&Entry, &Limits) -> Box<dyn Collect>,
}

/// Inspects one file.
pub(super) trait Collect: Send {
    /// Receives the positions of an ELF file's sections before all bytes, from a medium that reads files in any order.
    fn sections(&mut self, _sections: &ElfSections) {}

    /// Receives the next bytes. Offsets ascend; a skipped range is a hole, and reads as zeros, unless [`Self::next`]
    /// did not request it. An error is a defect of the extractor, as a panic is: the extractor gets no more bytes.
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError>;

    /// Offset of the first byte needed from `at` on, the end of the bytes received; `None` when no more are needed.
    /// Bytes before that offset may still be pushed.
    fn next(&self, at: u64) -> Option<u64> {
        Some(at)
    }

    /// The finding: `None` if the file turned out to be irrelevant, an error if it cannot be read.
    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap>;
}

/// Inspects a file whose size is limited, when all of it is there.
pub(super) struct WholeFile {
    bytes: Vec<u8>,
    read: fn(&[u8]) -> Option<Found>,
}

impl WholeFile {
    pub(super) fn start(read: fn(&[u8]) -> Option<Found>) -> Box<dyn Collect> {
        Box::new(Self { bytes: Vec::new(), read })
    }
}

impl Collect for WholeFile {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        // Holes read as zeros.
        self.bytes.resize(index(offset)?, 0);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        Ok((self.read)(&self.bytes))
    }
}

/// A file that can be read at ascending offsets.
pub(super) trait FileContent {
    /// Error of a read.
    type Error;

    /// Returns bytes that include the one at `place`, with the offset of the first; empty at the end of the file. In a
    /// hole, which reads as zeros, the bytes may begin after `place`. A medium that can only read on returns what comes next.
    fn read(&mut self, place: u64) -> Result<(u64, &[u8]), Self::Error>;

    /// Returns the bytes of a range, fewer at the end of the file, and begins again: the next read may be anywhere.
    /// `None` if the medium can only read on.
    fn peek(&mut self, _range: Range<u64>) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(None)
    }
}

/// The size from which the section headers are read first, so that what no extractor needs is left out.
const LARGE: u64 = 1 << 20;

/// Passes a file to every extractor that selects it, and skips the ranges that none of them needs.
pub(super) fn look<C: FileContent>(
    content: &mut C,
    extractors: &[Extractor],
    entry: &Entry,
    limits: &Limits,
) -> Result<Vec<Result<Found, Gap>>, C::Error> {
    let mut head = Vec::new();
    // Bytes behind a hole at the beginning of the file.
    let mut behind = None;
    while head.len() < HEAD {
        let (offset, bytes) = content.read(head.len() as u64)?;
        if bytes.is_empty() {
            break;
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        head.resize(start.min(HEAD), 0);
        if start < HEAD {
            head.extend_from_slice(bytes);
        } else {
            behind = Some((offset, bytes.to_vec()));
        }
    }
    let mut running = Running::start(extractors, entry, &head, limits);
    if entry.size >= LARGE
        && let Some(range) = ElfSections::wanted_by(&head).filter(|range| range.end <= entry.size)
        && let Some(table) = content.peek(range.clone())?
        && let Some(mut sections) = ElfSections::of(&head, range, &table)
    {
        if let Some(names) = sections.names()
            && let Some(bytes) = content.peek(names.clone())?
        {
            sections.set_names(&names, bytes);
        }
        running.sections(&sections);
    }
    running.push(0, &head);
    let mut at = head.len() as u64;
    if let Some((offset, bytes)) = behind {
        running.push(offset, &bytes);
        at = offset + bytes.len() as u64;
    }
    while let Some(place) = running.next(at) {
        let (offset, bytes) = content.read(place)?;
        if bytes.is_empty() {
            break;
        }
        running.push(offset, bytes);
        at = offset + bytes.len() as u64;
    }
    Ok(running.finish())
}

/// The extractors that inspect one file.
struct Running {
    path: String,
    collectors: Vec<(&'static str, Box<dyn Collect>)>,
    failed: Vec<Gap>,
}

impl Running {
    /// Starts every extractor that selects the file.
    fn start(extractors: &[Extractor], entry: &Entry, head: &[u8], limits: &Limits) -> Self {
        let collectors = extractors
            .iter()
            .filter(|extractor| (extractor.wants)(entry, head))
            .map(|extractor| (extractor.name, (extractor.start)(entry, limits)))
            .collect();
        Self { path: entry.path.to_string(), collectors, failed: Vec::new() }
    }

    /// Offset of the first byte from `at` on that an extractor needs.
    fn next(&self, at: u64) -> Option<u64> {
        // An extractor that panics here panics again when it gets bytes, and is reported then.
        let next = |collector: &dyn Collect| catch_unwind(AssertUnwindSafe(|| collector.next(at))).unwrap_or(Some(at));
        self.collectors.iter().filter_map(|(_, collector)| next(&**collector)).min()
    }

    /// Passes on the positions of an ELF file's sections.
    fn sections(&mut self, sections: &ElfSections) {
        for (_, collector) in &mut self.collectors {
            collector.sections(sections);
        }
    }

    /// Passes on bytes. A failing extractor only loses its own finding.
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        let path = &self.path;
        let failed = &mut self.failed;
        self.collectors.retain_mut(|(name, collector)| {
            let pushed = catch_unwind(AssertUnwindSafe(|| collector.push(offset, bytes)));
            let survived = matches!(pushed, Ok(Ok(())));
            if !survived {
                failed.push(defect(name, path));
            }
            survived
        });
    }

    fn finish(self) -> Vec<Result<Found, Gap>> {
        let path = &self.path;
        let answers = self.collectors.into_iter().filter_map(|(name, collector)| {
            let answer = catch_unwind(AssertUnwindSafe(|| collector.finish()));
            answer.unwrap_or_else(|_| Err(defect(name, path))).transpose()
        });
        answers.chain(self.failed.into_iter().map(Err)).collect()
    }
}

fn defect(name: &str, path: &str) -> Gap {
    Gap::new(format!("{path}: the {name} extractor failed")).settled_by("report this defect of ncclcheck").of_this_run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EntryKind, index, part};

    struct Gather(Vec<u8>);

    impl Collect for Gather {
        fn push(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
            Ok(Some(Found::Text(self.0.into())))
        }
    }

    struct LeaveBounds;

    impl Collect for LeaveBounds {
        fn push(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
            part(bytes, bytes.len() + 1..).map(|_| ())
        }

        fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
            Ok(Some(Found::Text(Vec::new().into())))
        }
    }

    #[test]
    fn a_failing_extractor_only_loses_its_own_finding() {
        let extractors = [
            Extractor { name: "bounds", wants: |_, _| true, start: |_, _| Box::new(LeaveBounds) },
            Extractor { name: "text", wants: |_, _| true, start: |_, _| Box::new(Gather(Vec::new())) },
        ];
        let entry = Entry { path: "a".into(), kind: EntryKind::File, mode: 0, owner: None, size: 6 };
        let mut running = Running::start(&extractors, &entry, b"abc", &Limits::default());
        running.push(0, b"abc");
        running.push(3, b"def");
        let [Ok(Found::Text(text)), Err(gap)] = &*running.finish() else { panic!("two answers") };
        assert!(text.starts_with(b"abcdef"));
        assert!(gap.is_transient && gap.why.ends_with("a: the bounds extractor failed"), "{gap}");
    }

    /// A library in blocks, whose headers can be read first or not, with the places of the blocks that were read.
    struct InBlocks<'a> {
        bytes: &'a [u8],
        can_peek: bool,
        places: Vec<u64>,
    }

    const BLOCK: u64 = 4096;

    impl FileContent for InBlocks<'_> {
        type Error = BoundsError;

        fn read(&mut self, place: u64) -> Result<(u64, &[u8]), BoundsError> {
            self.places.push(place);
            let end = (place / BLOCK + 1) * BLOCK;
            let end = end.min(self.bytes.len() as u64);
            Ok((place, part(self.bytes, index(place.min(end))?..index(end)?)?))
        }

        fn peek(&mut self, range: Range<u64>) -> Result<Option<Vec<u8>>, BoundsError> {
            let peeked = part(self.bytes, index(range.start)?..index(range.end)?)?;
            Ok(self.can_peek.then(|| peeked.to_vec()))
        }
    }

    /// A library of two MiB of code and these literals, with section headers.
    fn library(literals: &[u8]) -> Vec<u8> {
        const CODE: Range<usize> = 4096..4096 + (2 << 20);
        let mut bytes = vec![0; CODE.end];
        bytes.extend(literals);
        let names = bytes.len();
        bytes.extend(b"\0.text\0.rodata\0.shstrtab\0");
        let table = bytes.len();
        // Name, type, flags, range.
        for (name, kind, flags, range) in
            [(0, 0_u32, 0_u64, 0..0), (1, 1, 6, CODE), (7, 1, 2, CODE.end..names), (15, 3, 0, names..table)]
        {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&u32::to_le_bytes(name));
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&flags.to_le_bytes());
            header[24..32].copy_from_slice(&(range.start as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(range.len() as u64).to_le_bytes());
            bytes.extend(header);
        }
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        bytes[58..64].copy_from_slice(&[64, 0, 4, 0, 3, 0]);
        bytes
    }

    #[test]
    fn code_is_left_out_where_section_headers_can_be_read_first() {
        let literals = b"\0NCCL version 2.27.5+cuda12.9\0NCCL_IB_DISABLE\0";
        let bytes = library(literals);
        let entry =
            Entry { path: "lib.so".into(), kind: EntryKind::File, mode: 0, owner: None, size: bytes.len() as u64 };
        let extractors = [super::super::nccl::EXTRACTOR, super::super::fatbin::EXTRACTOR];
        let looked = |can_peek| {
            let mut content = InBlocks { bytes: &bytes, can_peek, places: Vec::new() };
            let found = look(&mut content, &extractors, &entry, &Limits::default()).unwrap();
            (found, content.places.len())
        };
        let (whole, reads) = looked(false);
        assert!(matches!(&*whole, [Ok(Found::Nccl(found))] if found.version == "2.27.5"), "{whole:?}");
        assert!(reads > 500, "{reads}");
        let (parts, reads) = looked(true);
        assert_eq!(parts, whole);
        assert!(reads < 5, "{reads}");
    }
}
