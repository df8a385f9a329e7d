//! ELF files, read as they go by. The tables that matter are small and lie at both ends of the file, so the head, and
//! every small segment, are kept; the gigabyte of machine code in between is not.

use goblin::container::{Container, Ctx};
use goblin::elf::dynamic::{self, Dyn};
use goblin::elf::header::{EI_CLASS, EI_DATA, ELFCLASS32, ELFDATA2MSB, Header};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{SHT_GNU_VERDEF, SHT_GNU_VERNEED, SectionHeader};
use goblin::elf::symver::{VerdefSection, VerneedSection};
use goblin::elf::{Sym, sym};

use scroll::Pread;
use scroll::ctx::{SizeWith, TryFromCtx};

use crate::model::{DynamicSymbol, ElfInfo, Endian, Entry, Found, Gap, Limits, OverLimit, VersionNeed};

use super::extract::{Collect, Extractor};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "ELF",
    wants: |_, head| head.starts_with(b"\x7fELF") && head.len() >= 52,
    start: |entry, limits| Box::new(Keeper::new(entry, limits)),
};

/// Dynamic symbols whose names are kept. A large library has a hundred thousand others.
fn is_wanted_symbol(name: &str) -> bool {
    name.starts_with("nccl")
        || name.starts_with("pnccl")
        || name.starts_with("ibv_")
        || name.contains("16ProcessGroupNCCL")
        || name.contains("GetBuildOptions")
        || name == "_ZN5torch4cuda4nccl7versionEv"
}

/// Leading bytes that are kept of every file: `.dynsym` and the version tables lie there, in whatever segment. The
/// furthest seen is `.gnu.version_r` of libcusparseLt 0.7.1, behind 29 MB of symbols and relocations.
const HEAD: usize = 32 << 20;

/// Segments up to this size are kept wherever they are: `.dynamic` in the data segment, and the segment at the end into
/// which tools that repair wheels (patchelf) move `.dynstr`: 27 MB in libcusparseLt.
const SMALL_SEGMENT: u64 = 32 << 20;

/// Keeps the parts of one file that may be needed.
struct Keeper {
    path: String,
    limit: usize,
    head: Vec<u8>,
    plan: Option<Vec<Part>>,
    kept: usize,
    over_limit: bool,
}

struct Part {
    offset: u64,
    length: u64,
    bytes: Vec<u8>,
}

impl Keeper {
    fn new(entry: &Entry, limits: &Limits) -> Self {
        // What the entry says of its size is bounded here, so it cannot ask for much.
        let head = usize::try_from(entry.size).unwrap_or(HEAD).min(HEAD);
        Self {
            path: entry.path.to_string(),
            limit: limits.elf_kept,
            head: Vec::with_capacity(head),
            plan: None,
            kept: 0,
            over_limit: false,
        }
    }

    /// Once the program headers are there: which segments beyond the head to keep.
    fn plan(&mut self) {
        let Ok(headers) = Headers::parse(&Kept { head: &self.head, parts: &[] }) else {
            return;
        };
        let mut parts: Vec<Part> = headers
            .segments
            .iter()
            .filter(|segment| matches!(segment.p_type, PT_LOAD | PT_DYNAMIC | PT_NOTE | PT_INTERP))
            .filter(|segment| (1..=SMALL_SEGMENT).contains(&segment.p_filesz))
            .filter(|segment| segment.p_offset.saturating_add(segment.p_filesz) > HEAD as u64)
            .map(|segment| Part { offset: segment.p_offset, length: segment.p_filesz, bytes: Vec::new() })
            .collect();
        parts.sort_by_key(|part| part.offset);
        self.plan = Some(parts);
    }
}

impl Collect for Keeper {
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        if offset < HEAD as u64 {
            let start = usize::try_from(offset).unwrap_or(HEAD);
            self.head.resize(start, 0);
            self.head.extend_from_slice(bytes.get(..bytes.len().min(HEAD - start)).unwrap_or_default());
        }
        if self.plan.is_none() {
            self.plan();
        }
        let end = offset + bytes.len() as u64;
        for part in self.plan.iter_mut().flatten() {
            let from = part.offset.max(offset);
            let to = (part.offset + part.length).min(end);
            if from >= to {
                continue;
            }
            self.kept += usize::try_from(to - from).unwrap_or(usize::MAX);
            if self.kept + HEAD > self.limit.max(HEAD) {
                self.over_limit = true;
                continue;
            }
            // Holes read as zeros. Both differences lie within one part, and so within usize.
            part.bytes.resize(usize::try_from(from - part.offset).unwrap_or_default(), 0);
            let range =
                usize::try_from(from - offset).unwrap_or_default()..usize::try_from(to - offset).unwrap_or_default();
            part.bytes.extend_from_slice(bytes.get(range).unwrap_or_default());
        }
    }

    fn next(&self, at: u64) -> Option<u64> {
        if at < HEAD as u64 {
            return Some(at);
        }
        // Until the program headers have come, which lie in the head, nobody knows what is needed.
        let parts = self.plan.iter().flatten();
        parts.filter(|part| at < part.offset.saturating_add(part.length)).map(|part| part.offset.max(at)).min()
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let parts = self.plan.unwrap_or_default();
        let gap = |why: String| {
            let over = OverLimit::new(
                format!("more of it would have to be kept: {} bytes", self.kept),
                "elf_kept",
                self.limit as u64,
            );
            let hint = if self.over_limit { format!("; {over}") } else { String::new() };
            Gap::new(format!("{}: the ELF file cannot be read: {why}{hint}", self.path))
        };
        parse(&Kept { head: &self.head, parts: &parts }).map(|info| Some(Found::Elf(Box::new(info)))).map_err(gap)
    }
}

/// The kept bytes of a file, by their offsets in it.
struct Kept<'a> {
    head: &'a [u8],
    parts: &'a [Part],
}

impl<'a> Kept<'a> {
    /// Exactly `length` bytes at `offset`.
    fn get(&self, what: &str, offset: u64, length: u64) -> Result<&'a [u8], String> {
        let rest = self.rest(what, offset)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        rest.get(..length)
            .ok_or_else(|| format!("{what} at offset {offset} has {length} bytes, {} are at hand", rest.len()))
    }

    /// Whatever is at hand from `offset` on.
    fn rest(&self, what: &str, offset: u64) -> Result<&'a [u8], String> {
        let head = usize::try_from(offset).ok().and_then(|at| self.head.get(at..)).filter(|rest| !rest.is_empty());
        let part = || {
            let part = self
                .parts
                .iter()
                .find(|part| (part.offset..part.offset + part.bytes.len() as u64).contains(&offset))?;
            usize::try_from(offset - part.offset).ok().and_then(|at| part.bytes.get(at..))
        };
        // A part goes on where the head breaks off.
        let longest = [head, part()].into_iter().flatten().max_by_key(|rest| rest.len());
        longest.ok_or_else(|| format!("{what} at offset {offset} is not at hand"))
    }
}

/// The ELF header and the program headers.
struct Headers {
    header: Header,
    ctx: Ctx,
    segments: Vec<ProgramHeader>,
}

impl Headers {
    fn parse(kept: &Kept<'_>) -> Result<Self, String> {
        let ident = kept.get("the ELF header", 0, 64).or_else(|_| kept.get("the ELF header", 0, 52))?;
        let header: Header = ident.pread(0).map_err(|error| format!("header: {error}"))?;
        let container =
            if header.e_ident.get(EI_CLASS) == Some(&ELFCLASS32) { Container::Little } else { Container::Big };
        let ctx = Ctx::new(container, header.endianness().map_err(|error| format!("header: {error}"))?);
        let size = u64::from(header.e_phentsize) * u64::from(header.e_phnum);
        if header.e_phnum > 0 && usize::from(header.e_phentsize) != ProgramHeader::size(ctx) {
            return Err(format!("program headers of {} bytes each", header.e_phentsize));
        }
        let segments = if size == 0 {
            Vec::new()
        } else {
            let bytes = kept.get("the program header table", header.e_phoff, size)?;
            ProgramHeader::parse(bytes, 0, usize::from(header.e_phnum), ctx)
                .map_err(|error| format!("program headers: {error}"))?
        };
        Ok(Self { header, ctx, segments })
    }

    fn segment(&self, kind: u32) -> Option<&ProgramHeader> {
        self.segments.iter().find(|segment| segment.p_type == kind)
    }

    /// The file offset of an address (gABI chapter 5, "Program Header").
    fn offset(&self, what: &str, address: u64) -> Result<u64, String> {
        let holds = |segment: &&ProgramHeader| {
            segment.p_type == PT_LOAD
                && address.checked_sub(segment.p_vaddr).is_some_and(|within| within < segment.p_filesz)
        };
        let segment = self
            .segments
            .iter()
            .find(holds)
            .ok_or_else(|| format!("{what}: address {address:#x} lies in no segment"))?;
        segment.p_offset.checked_add(address - segment.p_vaddr).ok_or_else(|| format!("{what}: offset overflows"))
    }
}

fn parse(kept: &Kept<'_>) -> Result<ElfInfo, String> {
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
        info.build_id = info.build_id.take().or_else(|| build_id(bytes, segment.p_align, &headers));
    }
    if let Some(segment) = headers.segment(PT_DYNAMIC) {
        Dynamic::read(kept, &headers, segment)?.fill(&mut info)?;
    }
    Ok(info)
}

/// The dynamic section, and what it points to.
struct Dynamic<'a> {
    kept: &'a Kept<'a>,
    headers: &'a Headers,
    entries: Vec<Dyn>,
    /// `.dynstr`.
    strings: &'a [u8],
}

impl<'a> Dynamic<'a> {
    fn read(kept: &'a Kept<'a>, headers: &'a Headers, segment: &ProgramHeader) -> Result<Self, String> {
        let bytes = kept.get("the dynamic section", segment.p_offset, segment.p_filesz)?;
        let mut entries = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (entry, size) = Dyn::try_from_ctx(bytes.get(at..).unwrap_or_default(), headers.ctx)
                .map_err(|error| format!("dynamic section: {error}"))?;
            if entry.d_tag == dynamic::DT_NULL {
                break;
            }
            at += size;
            entries.push(entry);
        }
        let value = |tag| entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val);
        let strings = match (value(dynamic::DT_STRTAB), value(dynamic::DT_STRSZ)) {
            (Some(address), Some(size)) => kept.get(".dynstr", headers.offset("DT_STRTAB", address)?, size)?,
            _ => &[],
        };
        Ok(Self { kept, headers, entries, strings })
    }

    fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val)
    }

    fn string(&self, offset: u64) -> Result<String, String> {
        self.name(offset).map(ToOwned::to_owned)
    }

    fn name(&self, offset: u64) -> Result<&'a str, String> {
        let error = || format!(".dynstr has no string at {offset}");
        let rest = usize::try_from(offset).ok().and_then(|at| self.strings.get(at..)).ok_or_else(error)?;
        let end = memchr::memchr(0, rest).ok_or_else(error)?;
        std::str::from_utf8(rest.get(..end).unwrap_or_default()).map_err(|_utf8| error())
    }

    fn strings(&self, tag: u64) -> Result<Vec<String>, String> {
        self.entries.iter().filter(|entry| entry.d_tag == tag).map(|entry| self.string(entry.d_val)).collect()
    }

    fn fill(&self, info: &mut ElfInfo) -> Result<(), String> {
        let paths = |tag| -> Result<Vec<String>, String> {
            Ok(self.strings(tag)?.iter().flat_map(|list| list.split(':')).map(ToOwned::to_owned).collect())
        };
        info.soname = self.strings(dynamic::DT_SONAME)?.pop();
        info.needed = self.strings(dynamic::DT_NEEDED)?;
        info.rpath = paths(dynamic::DT_RPATH)?;
        info.runpath = paths(dynamic::DT_RUNPATH)?;
        info.no_default_libraries =
            self.value(dynamic::DT_FLAGS_1).is_some_and(|flags| flags & dynamic::DF_1_NODEFLIB != 0);
        if info.soname.as_ref().is_some_and(|name| name.starts_with("ld-linux")) {
            info.default_directories = default_directories(self.kept.head);
        }
        info.version_needs = self.version_needs()?;
        info.version_gives = self.version_gives()?;
        // Names of symbols are worth having, but their absence must not cost the rest.
        info.symbols = self.symbols().map_err(|why| Gap::new(format!("the dynamic symbols cannot be read: {why}")));
        Ok(())
    }

    /// The bytes at the address of one entry, and a section header that describes them to goblin's parsers.
    fn section(&self, tag: u64, count: u64, kind: u32) -> Result<Option<(&'a [u8], SectionHeader)>, String> {
        let (Some(address), Some(count)) = (self.value(tag), self.value(count)) else {
            return Ok(None);
        };
        let bytes = self.kept.rest("version table", self.headers.offset("version table", address)?)?;
        let header = SectionHeader {
            sh_type: kind,
            sh_size: bytes.len() as u64,
            sh_info: u32::try_from(count).map_err(|error| format!("version table: {error}"))?,
            ..SectionHeader::default()
        };
        Ok(Some((bytes, header)))
    }

    fn version_needs(&self) -> Result<Vec<VersionNeed>, String> {
        const WEAK: u16 = 2;
        let Some((bytes, header)) = self.section(dynamic::DT_VERNEED, dynamic::DT_VERNEEDNUM, SHT_GNU_VERNEED)? else {
            return Ok(Vec::new());
        };
        let section = VerneedSection::parse(bytes, &[header], self.headers.ctx)
            .map_err(|error| format!(".gnu.version_r: {error}"))?;
        section
            .iter()
            .flat_map(IntoIterator::into_iter)
            .map(|need| {
                let names = |is_weak: bool| {
                    let wanted = need.iter().filter(|aux| (aux.vna_flags & WEAK != 0) == is_weak);
                    wanted.map(|aux| self.string(aux.vna_name as u64)).collect::<Result<_, _>>()
                };
                Ok(VersionNeed { file: self.string(need.vn_file as u64)?, versions: names(false)?, weak: names(true)? })
            })
            .collect()
    }

    fn version_gives(&self) -> Result<Vec<String>, String> {
        const BASE: u16 = 1;
        let Some((bytes, header)) = self.section(dynamic::DT_VERDEF, dynamic::DT_VERDEFNUM, SHT_GNU_VERDEF)? else {
            return Ok(Vec::new());
        };
        let section = VerdefSection::parse(bytes, &[header], self.headers.ctx)
            .map_err(|error| format!(".gnu.version_d: {error}"))?;
        section
            .iter()
            .flat_map(IntoIterator::into_iter)
            .filter(|gives| gives.vd_flags & BASE == 0)
            .filter_map(|gives| gives.iter().next())
            .map(|aux| self.string(aux.vda_name as u64))
            .collect()
    }

    fn symbols(&self) -> Result<Vec<DynamicSymbol>, String> {
        let Some(address) = self.value(dynamic::DT_SYMTAB) else {
            return Ok(Vec::new());
        };
        let size = Sym::size_with(&self.headers.ctx);
        let count = self.symbol_count()?;
        let bytes = self.kept.get(".dynsym", self.headers.offset("DT_SYMTAB", address)?, count * size as u64)?;
        let mut symbols = Vec::new();
        for entry in bytes.chunks_exact(size) {
            let (symbol, _) =
                Sym::try_from_ctx(entry, self.headers.ctx).map_err(|error| format!(".dynsym: {error}"))?;
            if symbol.st_name == 0 || symbol.st_bind() == sym::STB_LOCAL {
                continue;
            }
            let name = self.name(symbol.st_name as u64)?;
            if is_wanted_symbol(name) {
                let defined = symbol.st_shndx != 0;
                let offset = if defined { self.headers.offset("a symbol", symbol.st_value).ok() } else { None };
                symbols.push(DynamicSymbol { name: name.to_owned(), defined, offset });
            }
        }
        Ok(symbols)
    }

    /// Number of dynamic symbols. No entry holds it: `DT_HASH` has a chain slot for each (gABI chapter 5, "Hash Table"),
    /// and the longest chain of `DT_GNU_HASH` ends at the last one.
    fn symbol_count(&self) -> Result<u64, String> {
        let word = |bytes: &[u8], index: u64| -> Result<u32, String> {
            let at = usize::try_from(index * 4).unwrap_or(usize::MAX);
            bytes.pread_with(at, self.headers.ctx.le).map_err(|error| format!("hash table: {error}"))
        };
        if let Some(address) = self.value(dynamic::DT_HASH) {
            let bytes = self.kept.get("DT_HASH", self.headers.offset("DT_HASH", address)?, 8)?;
            return word(bytes, 1).map(u64::from);
        }
        let address = self.value(dynamic::DT_GNU_HASH).ok_or("there is no symbol hash table")?;
        let bytes = self.kept.rest("DT_GNU_HASH", self.headers.offset("DT_GNU_HASH", address)?)?;
        let (buckets, first, bloom) = (word(bytes, 0)?, word(bytes, 1)?, word(bytes, 2)?);
        let words_of_bloom = u64::from(bloom) * if self.headers.ctx.is_big() { 2 } else { 1 };
        let start = 4 + words_of_bloom;
        let mut last = 0;
        for bucket in 0..u64::from(buckets) {
            last = last.max(word(bytes, start + bucket)?);
        }
        if last < first {
            return Ok(u64::from(first));
        }
        // The lowest bit marks the end of a chain.
        let chains = start + u64::from(buckets);
        let mut index = u64::from(last);
        while word(bytes, chains + index - u64::from(first))? & 1 == 0 {
            index += 1;
        }
        Ok(index + 1)
    }
}

/// The default directories in the code of a loader: one literal, in which directories with a slash at their ends follow each
/// other, each with a zero behind it (glibc, `elf/dl-load.c`, `system_dirs`).
fn default_directories(bytes: &[u8]) -> Vec<String> {
    let is_directory = |name: &[u8]| {
        name.len() > 1 && name.starts_with(b"/") && name.ends_with(b"/") && name.iter().all(u8::is_ascii_graphic)
    };
    for border in memchr::memmem::find_iter(bytes, b"/\0/") {
        let begin = memchr::memrchr(0, bytes.get(..border).unwrap_or_default()).map_or(0, |zero| zero + 1);
        let names = bytes.get(begin..).unwrap_or_default().split(|&byte| byte == 0);
        let list: Vec<String> = names.take_while(|name| is_directory(name)).map(text).collect();
        if list.len() > 1 {
            return list;
        }
    }
    Vec::new()
}

/// The description of the note `NT_GNU_BUILD_ID` of owner `GNU`, as hexadecimal digits.
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
