//! Reads ELF files in one pass. The relevant tables are small next to the machine code: the parts that may hold them
//! are kept until the dynamic section, which comes late, gives their positions. What exceeds the memory for them is kept
//! in a temporary file.

mod dynamic;
mod headers;
mod kept;
mod names;
mod overflow;
mod refusal;
mod relocations;
mod symbols;
mod versions;

use std::ops::Range;

use goblin::container::Ctx;
use goblin::elf::header::{EI_CLASS, EI_DATA, ELFCLASS32, ELFDATA2MSB, Header};
use goblin::elf::program_header::{PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use scroll::Pread;

use model::{BoundsError, ElfInfo, Endian, Entry, Found, Gap, Limits, OverLimit, index, part};

use super::extract::{Collect, Extractor};
use dynamic::Dynamic;
use headers::Headers;
use kept::Kept;
use overflow::Overflow;

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "ELF",
    wants: |_, head| head.starts_with(b"\x7fELF") && head.len() >= header_size(head),
    start: |entry, limits| Box::new(Keeper::new(entry, limits)),
};

/// Size of the header of a file that begins so. Nothing takes a shorter file for ELF.
fn header_size(head: &[u8]) -> usize {
    if head.get(EI_CLASS) == Some(&ELFCLASS32) { 52 } else { 64 }
}

/// Leading bytes that are kept in memory where tables are expected. In most libraries no table lies further: that of
/// libcusparseLt 0.7.1 is `.gnu.version_r`, after 29 MB of symbols and relocations.
const HEAD: u64 = 32 << 20;

/// Segments up to this size are kept wherever they are: the data segment with `.dynamic`, and the segment at the end
/// into which tools that repair wheels (patchelf) move `.dynstr`: 27 MB in libcusparseLt.
const SMALL_SEGMENT: u64 = 32 << 20;

/// Code up to this size is kept too: it contains the dynamic loader's literals if the linker did not separate them.
const SMALL_CODE: u64 = 1 << 20;

/// Keeps the parts of a file that may be needed.
struct Keeper {
    entry: Entry,
    limits: Limits,
    kept: Kept,
    /// The parts that do not fit into memory.
    overflow: Option<Overflow>,
    plan: Plan,
    is_planned: bool,
}

/// Ranges of a file that may hold its relevant tables, ascending.
struct Plan {
    /// Those to keep in memory.
    near: Vec<Range<u64>>,
    /// Those to keep in the temporary file.
    far: Vec<Range<u64>>,
}

impl Keeper {
    fn new(entry: &Entry, limits: &Limits) -> Self {
        // Everything is kept until the program headers are known.
        let one = |range: Range<u64>| std::iter::once(range).collect();
        let plan = Plan { near: one(0..HEAD), far: one(HEAD..u64::MAX) };
        let entry = entry.clone();
        let limits = limits.clone();
        Self { entry, limits, kept: Kept::default(), overflow: None, plan, is_planned: false }
    }

    fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if self.kept.size() + bytes.len() > self.limits.elf_kept {
            return self.spool(offset, bytes);
        }
        self.kept.push(offset, bytes);
        Ok(())
    }

    fn spool(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        let Self { entry, limits, .. } = self;
        self.overflow.get_or_insert_with(|| Overflow::new(entry, limits)).push(offset, bytes)
    }
}

impl Plan {
    fn new(headers: &Headers) -> Self {
        let parts = || headers.segments.iter().filter_map(|segment| part_of_segment(headers, segment));
        let near = merged(parts().map(|part| part.near).collect());
        let far = without(merged(parts().map(|part| part.far).collect()), &near);
        Self { near, far }
    }

    /// The planned parts of a range, ascending, and whether they are kept in memory.
    fn within(&self, range: &Range<u64>) -> Vec<(Range<u64>, bool)> {
        let planned = self.near.iter().map(|part| (part, true)).chain(self.far.iter().map(|part| (part, false)));
        let mut parts: Vec<_> =
            planned.map(|(part, is_near)| (part.start.max(range.start)..part.end.min(range.end), is_near)).collect();
        parts.retain(|(part, _)| !part.is_empty());
        parts.sort_by_key(|(part, _)| part.start);
        parts
    }
}

/// Sorts ranges, and joins those that overlap, so that no byte is kept twice.
fn merged(mut parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| part.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match merged.last_mut().filter(|last| part.start <= last.end) {
            Some(last) => last.end = last.end.max(part.end),
            None => merged.push(part),
        }
    }
    merged
}

/// The parts of `ranges` that lie outside of `others`; both ascend and do not overlap.
fn without(ranges: Vec<Range<u64>>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut outside = Vec::new();
    for range in ranges {
        let mut start = range.start;
        for other in others.iter().filter(|other| other.start < range.end && range.start < other.end) {
            outside.push(start..other.start);
            start = other.end;
        }
        outside.push(start..range.end);
    }
    outside.retain(|range| !range.is_empty());
    outside
}

/// The part of a segment that may hold relevant tables, either range of which may be empty.
struct SegmentPart {
    /// To be kept in memory.
    near: Range<u64>,
    /// To be kept in the temporary file.
    far: Range<u64>,
}

fn part_of_segment(headers: &Headers, segment: &ProgramHeader) -> Option<SegmentPart> {
    if !matches!(segment.p_type, PT_LOAD | PT_DYNAMIC | PT_NOTE | PT_INTERP) {
        return None;
    }
    let all = segment.p_offset..segment.p_offset.saturating_add(segment.p_filesz);
    let is_code = segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0;
    let small = if is_code { SMALL_CODE } else { SMALL_SEGMENT };
    let tables = if segment.p_filesz <= small {
        return Some(SegmentPart { near: if all.is_empty() { all } else { Kept::around(&all) }, far: 0..0 });
    } else if !is_code {
        all.clone()
    } else {
        // Linkers put the tables before the code, and most record where the code begins. A code segment after a
        // separate segment of tables has none.
        let entry = Some(headers.header.e_entry).filter(|entry| *entry > 0);
        let entry = entry.and_then(|entry| headers.offset("the entry", entry).ok()).filter(|entry| all.contains(entry));
        all.start..entry.unwrap_or(if all.start == 0 { all.end } else { all.start })
    };
    let near = tables.start..tables.end.min(HEAD);
    let near = if near.is_empty() { 0..0 } else { Kept::around(&near) };
    Some(SegmentPart { far: near.end.max(tables.start)..tables.end, near })
}

impl Collect for Keeper {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        for (planned, is_near) in self.plan.within(&(offset..offset + bytes.len() as u64)) {
            let bytes = part(bytes, index(planned.start - offset)?..index(planned.end - offset)?)?;
            if is_near {
                self.keep(planned.start, bytes)?;
            } else {
                self.spool(planned.start, bytes)?;
            }
        }
        if !self.is_planned
            && let Ok(headers) = Headers::parse(&self.kept)
        {
            self.plan = Plan::new(&headers);
            self.is_planned = true;
        }
        Ok(())
    }

    fn next(&self, at: u64) -> Option<u64> {
        // GPU code is not spooled, so it need not be read.
        let searched = self.overflow.as_ref().map_or(at, |overflow| overflow.next(at));
        let near = self.plan.near.iter().find(|part| at < part.end).map(|part| part.start.max(at));
        let far = self.plan.far.iter().find(|part| searched < part.end).map(|part| part.start.max(searched));
        near.into_iter().chain(far).min()
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Found>, Gap> {
        let lost = match self.overflow.take().map(Overflow::finish).transpose() {
            Ok(beyond) => {
                self.kept.beyond = beyond;
                None
            }
            Err(gap) => Some(gap),
        };
        let path = &self.entry.path;
        let refused = refusal::refused(&self.kept, self.entry.size);
        let parsed = match parse(&self.kept, &self.limits) {
            Ok(info) => Ok(ElfInfo {
                symbols: info.symbols.map_err(|gap| gap.about(path)),
                links: info.links.map_err(|gap| gap.about(path)),
                ..info
            }),
            Err(why) => Err(Gap::new(format!("the ELF file cannot be read: {why}")).about(path)),
        };
        let parsed = match self.kept.beyond.take() {
            Some(beyond) => beyond.file.vouch(parsed)?,
            None => parsed,
        };
        // A table that is missing may be one that the temporary file should have held.
        let info = match (parsed, lost) {
            (Err(_), Some(gap)) => return Err(gap),
            (Err(gap), None) => {
                let refused = refused.ok_or_else(|| gap.clone())?;
                ElfInfo { symbols: Err(gap.clone()), links: Err(gap), ..refused }
            }
            (Ok(info), Some(gap)) => ElfInfo {
                symbols: info.symbols.map_err(|_missing| gap.clone()),
                links: info.links.map_err(|_missing| gap),
                ..info
            },
            (Ok(info), None) => ElfInfo { refusal: refused.and_then(|refused| refused.refusal), ..info },
        };
        Ok(Some(Found::Elf(Box::new(info))))
    }
}

/// The properties in the header.
fn bare(header: &Header, ctx: Ctx) -> ElfInfo {
    let endian = if header.e_ident.get(EI_DATA) == Some(&ELFDATA2MSB) { Endian::Big } else { Endian::Little };
    let bits = if ctx.is_big() { 64 } else { 32 };
    ElfInfo { kind: header.e_type, ..ElfInfo::bare(bits, endian, header.e_machine) }
}

fn parse(kept: &Kept, limits: &Limits) -> Result<ElfInfo, String> {
    let headers = Headers::parse(kept)?;
    let mut info = bare(&headers.header, headers.ctx);
    if let Some(segment) = headers.segment(PT_INTERP) {
        let bytes = kept.get("PT_INTERP", segment.p_offset, segment.p_filesz)?;
        info.interpreter = Some(text(bytes.split(|&b| b == 0).next().unwrap_or_default()));
    }
    let mut notes = 0_u64;
    for segment in headers.segments.iter().filter(|segment| segment.p_type == PT_NOTE) {
        notes = notes.saturating_add(segment.p_filesz);
        if notes > limits.elf_notes {
            return Err(OverLimit::new(format!("notes of {notes} bytes"), "elf_notes", limits.elf_notes).to_string());
        }
        let bytes = kept.get("PT_NOTE", segment.p_offset, segment.p_filesz)?;
        info.build_id = build_id(&bytes, segment.p_align, &headers);
        if info.build_id.is_some() {
            break;
        }
    }
    if let Some(segment) = headers.segment(PT_DYNAMIC) {
        Dynamic::read(kept, &headers, segment, limits)?.fill(&mut info)?;
    }
    Ok(info)
}

/// The default directories in the code of a loader: one literal, a sequence of NUL-terminated directories that end in a
/// slash (glibc, `elf/dl-load.c`, `system_dirs`).
fn default_directories(bytes: &[u8]) -> Result<Vec<String>, BoundsError> {
    let is_directory = |name: &[u8]| {
        name.len() > 1 && name.starts_with(b"/") && name.ends_with(b"/") && name.iter().all(u8::is_ascii_graphic)
    };
    for border in memchr::memmem::find_iter(bytes, b"/\0/") {
        let begin = memchr::memrchr(0, part(bytes, ..border)?).map_or(0, |zero| zero + 1);
        let names = part(bytes, begin..)?.split(|&byte| byte == 0);
        let list: Vec<String> = names.take_while(|name| is_directory(name)).map(text).collect();
        if list.len() > 1 {
            return Ok(list);
        }
    }
    Ok(Vec::new())
}

/// The first literal of an absolute path that has a part and this end.
fn path_literal(bytes: &[u8], inner: &[u8], end: &[u8]) -> Result<Option<String>, BoundsError> {
    for place in memchr::memmem::find_iter(bytes, inner) {
        let begin = memchr::memrchr(0, part(bytes, ..place)?).map_or(0, |zero| zero + 1);
        let literal = part(bytes, begin..)?.split(|&byte| byte == 0).next().unwrap_or_default();
        if literal.starts_with(b"/") && literal.ends_with(end) && literal.iter().all(u8::is_ascii_graphic) {
            return Ok(Some(text(literal)));
        }
    }
    Ok(None)
}

/// The description of the `NT_GNU_BUILD_ID` note of owner `GNU`, as hexadecimal digits.
fn build_id(mut notes: &[u8], align: u64, headers: &Headers) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let pad = |length: u32| {
        usize::try_from(length).ok().map(|length| length.next_multiple_of(if align == 8 { 8 } else { 4 }))
    };
    loop {
        let word = |at| notes.pread_with::<u32>(at, headers.ctx.le).ok();
        let name_size = word(0)?;
        let size = word(4)?;
        let kind = word(8)?;
        // The name is padded to four bytes, and the description begins aligned.
        let description = 12_usize.checked_add(pad(name_size)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            let bytes = notes.get(description..)?.get(..usize::try_from(size).ok()?)?;
            return Some(model::hex(bytes));
        }
        notes = notes.get(description.checked_add(pad(size)?)?..)?;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
