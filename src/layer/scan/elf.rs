//! Reads ELF files in one pass. The relevant tables are small next to the machine code: the parts that may hold them
//! are kept until the dynamic section, which comes late, gives their positions.

mod dynamic;
mod headers;
mod kept;

use std::ops::Range;

use goblin::elf::header::{EI_DATA, ELFDATA2MSB};
use goblin::elf::program_header::{PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use scroll::Pread;

use crate::model::{BoundsError, ElfInfo, Endian, Found, Gap, Limits, OverLimit, index, part};

use super::extract::{Collect, Extractor};
use dynamic::Dynamic;
use headers::Headers;
use kept::Kept;

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "ELF",
    wants: |_, head| head.starts_with(b"\x7fELF") && head.len() >= 52,
    start: |entry, limits| Box::new(Keeper::new(entry.path.to_string(), limits)),
};

/// Leading bytes that may hold tables. The furthest known table is `.gnu.version_r` of libcusparseLt 0.7.1, after 29 MB
/// of symbols and relocations.
const HEAD: u64 = 32 << 20;

/// Segments up to this size are kept wherever they are: the data segment with `.dynamic`, and the segment at the end
/// into which tools that repair wheels (patchelf) move `.dynstr`: 27 MB in libcusparseLt.
const SMALL_SEGMENT: u64 = 32 << 20;

/// Code up to this size is kept too: it contains the dynamic loader's literals if the linker did not separate them.
const SMALL_CODE: u64 = 1 << 20;

/// Keeps the parts of a file that may be needed.
struct Keeper {
    path: String,
    limit: usize,
    kept: Kept,
    /// Ranges to keep, ascending. Everything is kept until the program headers are known.
    plan: Vec<Range<u64>>,
    is_planned: bool,
    /// Number of bytes not kept because of the limit.
    left_out: usize,
}

impl Keeper {
    fn new(path: String, limits: &Limits) -> Self {
        let plan = std::iter::once(0..HEAD).collect();
        Self { path, limit: limits.elf_kept, kept: Kept::default(), plan, is_planned: false, left_out: 0 }
    }
}

/// The parts of a file that may hold its relevant tables.
fn plan(headers: &Headers) -> Vec<Range<u64>> {
    let mut parts: Vec<_> = headers.segments.iter().filter_map(|segment| part_of_segment(headers, segment)).collect();
    parts.sort_by_key(|part| part.start);
    // Merges overlapping ranges, so that no byte is kept twice.
    let mut merged: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match merged.last_mut().filter(|last| part.start <= last.end) {
            Some(last) => last.end = last.end.max(part.end),
            None => merged.push(part),
        }
    }
    merged
}

/// The part of a segment that may hold relevant tables.
fn part_of_segment(headers: &Headers, segment: &ProgramHeader) -> Option<Range<u64>> {
    if !matches!(segment.p_type, PT_LOAD | PT_DYNAMIC | PT_NOTE | PT_INTERP) {
        return None;
    }
    let all = segment.p_offset..segment.p_offset.saturating_add(segment.p_filesz);
    let is_code = segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0;
    let end = if segment.p_filesz <= if is_code { SMALL_CODE } else { SMALL_SEGMENT } {
        all.end
    } else if !is_code {
        HEAD
    } else {
        // Linkers put the tables before the code, and most record where the code begins. A code segment after a
        // separate segment of tables has none.
        let entry = Some(headers.header.e_entry).filter(|entry| *entry > 0);
        let entry = entry.and_then(|entry| headers.offset("the entry", entry).ok()).filter(|entry| all.contains(entry));
        entry.unwrap_or(if all.start == 0 { HEAD } else { 0 }).min(HEAD)
    };
    let part = all.start..end.min(all.end);
    (!part.is_empty()).then(|| Kept::around(&part))
}

impl Collect for Keeper {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        let end = offset + bytes.len() as u64;
        for planned in &self.plan {
            let (from, to) = (planned.start.max(offset), planned.end.min(end));
            if from >= to {
                continue;
            }
            let bytes = part(bytes, index(from - offset)?..index(to - offset)?)?;
            if self.kept.size() + bytes.len() > self.limit {
                self.left_out += bytes.len();
            } else {
                self.kept.push(from, bytes);
            }
        }
        if !self.is_planned
            && let Ok(headers) = Headers::parse(&self.kept)
        {
            self.plan = plan(&headers);
            self.is_planned = true;
        }
        Ok(())
    }

    fn next(&self, at: u64) -> Option<u64> {
        // The program headers lie in the head; otherwise they are not found.
        self.plan.iter().find(|part| at < part.end).map(|part| part.start.max(at))
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let gap = |why: String| {
            let needed = self.kept.size() + self.left_out;
            let over =
                OverLimit::new(format!("reading it takes {needed} bytes of memory"), "elf_kept", self.limit as u64);
            let hint = if self.left_out > 0 { format!("; {over}") } else { String::new() };
            Gap::new(format!("{}: the ELF file cannot be read: {why}{hint}", self.path))
        };
        parse(&self.kept).map(|info| Some(Found::Elf(Box::new(info)))).map_err(gap)
    }
}

fn parse(kept: &Kept) -> Result<ElfInfo, String> {
    let headers = Headers::parse(kept)?;
    let header = &headers.header;
    let endian = if header.e_ident.get(EI_DATA) == Some(&ELFDATA2MSB) { Endian::Big } else { Endian::Little };
    let mut info = ElfInfo::bare(if headers.ctx.is_big() { 64 } else { 32 }, endian, header.e_machine);
    info.kind = header.e_type;
    if let Some(segment) = headers.segment(PT_INTERP) {
        let bytes = kept.get("PT_INTERP", segment.p_offset, segment.p_filesz)?;
        info.interpreter = Some(text(bytes.split(|&b| b == 0).next().unwrap_or_default()));
    }
    for segment in headers.segments.iter().filter(|segment| segment.p_type == PT_NOTE) {
        let bytes = kept.get("PT_NOTE", segment.p_offset, segment.p_filesz)?;
        info.build_id = info.build_id.take().or_else(|| build_id(&bytes, segment.p_align, &headers));
    }
    if let Some(segment) = headers.segment(PT_DYNAMIC) {
        Dynamic::read(kept, &headers, segment)?.fill(&mut info)?;
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

/// The description of the `NT_GNU_BUILD_ID` note of owner `GNU`, as hexadecimal digits.
fn build_id(mut notes: &[u8], align: u64, headers: &Headers) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let pad = |length: u32| {
        usize::try_from(length).ok().map(|length| length.next_multiple_of(if align == 8 { 8 } else { 4 }))
    };
    loop {
        let word = |at| notes.pread_with::<u32>(at, headers.ctx.le).ok();
        let (name_size, size, kind) = (word(0)?, word(4)?, word(8)?);
        // The name is padded to four bytes, and the description begins aligned.
        let description = 12_usize.checked_add(pad(name_size)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            let bytes = notes.get(description..)?.get(..usize::try_from(size).ok()?)?;
            return Some(crate::model::hex(bytes));
        }
        notes = notes.get(description.checked_add(pad(size)?)?..)?;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
