//! The dynamic section and the tables that it refers to.

use std::borrow::Cow;

use goblin::elf::dynamic::{self, Dyn};
use goblin::elf::program_header::ProgramHeader;
use goblin::elf::section_header::{SHT_GNU_VERDEF, SHT_GNU_VERNEED, SectionHeader};
use goblin::elf::symver::{VerdefSection, VerneedSection};
use goblin::elf::{Sym, sym};
use scroll::Pread;
use scroll::ctx::{SizeWith, TryFromCtx};

use crate::model::{DynamicSymbol, ElfInfo, Gap, VersionNeed, part};

use super::default_directories;
use super::headers::Headers;
use super::kept::Kept;

/// Selects the dynamic symbols whose names are kept. A large library has a hundred thousand others.
fn is_wanted_symbol(name: &[u8]) -> bool {
    let contains = |part: &str| memchr::memmem::find(name, part.as_bytes()).is_some();
    name.starts_with(b"nccl")
        || name.starts_with(b"pnccl")
        || name.starts_with(b"ibv_")
        || contains("16ProcessGroupNCCL")
        || contains("GetBuildOptions")
        || name == b"_ZN5torch4cuda4nccl7versionEv"
}

/// Maximum size of a version table, in bytes. That of glibc takes 2 KiB.
const VERSIONS: u64 = 1 << 20;

/// Leading bytes of the dynamic loader that are searched for its default directories. The loader takes 0.2 MiB.
const LOADER: u64 = 4 << 20;

/// Maximum size of a name, in bytes.
const NAME: u64 = 64 << 10;

/// Number of symbols read at once.
const SYMBOLS: usize = 2048;

/// The dynamic section and the tables that it refers to.
pub(super) struct Dynamic<'a> {
    kept: &'a Kept,
    headers: &'a Headers,
    entries: Vec<Dyn>,
    /// File offset and size of `.dynstr`.
    strings: (u64, u64),
}

/// A table, with the section header that goblin's parsers need.
type Section<'a> = (Cow<'a, [u8]>, SectionHeader);

impl<'a> Dynamic<'a> {
    pub(super) fn read(kept: &'a Kept, headers: &'a Headers, segment: &ProgramHeader) -> Result<Self, String> {
        let bytes = kept.get("the dynamic section", segment.p_offset, segment.p_filesz)?;
        let mut entries = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (entry, size) = Dyn::try_from_ctx(part(&bytes, at..)?, headers.ctx)
                .map_err(|error| format!("dynamic section: {error}"))?;
            if entry.d_tag == dynamic::DT_NULL {
                break;
            }
            at += size;
            entries.push(entry);
        }
        let mut dynamic = Self { kept, headers, entries, strings: (0, 0) };
        if let (Some(address), Some(size)) = (dynamic.value(dynamic::DT_STRTAB), dynamic.value(dynamic::DT_STRSZ)) {
            dynamic.strings = (headers.offset("DT_STRTAB", address)?, size);
        }
        Ok(dynamic)
    }

    fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val)
    }

    fn string(&self, offset: u64) -> Result<String, String> {
        String::from_utf8(self.name(offset)?.into_owned()).map_err(|_utf8| no_string(offset))
    }

    fn name(&self, offset: u64) -> Result<Cow<'a, [u8]>, String> {
        let (table, size) = self.strings;
        let rest = size.checked_sub(offset).filter(|rest| *rest > 0).ok_or_else(|| no_string(offset))?;
        // Tries 256 bytes first: most names are short, and a longer range may have to be copied from several blocks.
        for most in [256, NAME] {
            let mut bytes = self.kept.up_to(".dynstr", table.saturating_add(offset), rest.min(most))?;
            if let Some(end) = memchr::memchr(0, &bytes) {
                match &mut bytes {
                    Cow::Borrowed(bytes) => *bytes = part(bytes, ..end)?,
                    Cow::Owned(bytes) => bytes.truncate(end),
                }
                return Ok(bytes);
            }
        }
        Err(no_string(offset))
    }

    fn strings(&self, tag: u64) -> Result<Vec<String>, String> {
        self.entries.iter().filter(|entry| entry.d_tag == tag).map(|entry| self.string(entry.d_val)).collect()
    }

    pub(super) fn fill(&self, info: &mut ElfInfo) -> Result<(), String> {
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
            info.default_directories = default_directories(&self.kept.up_to("the loader", 0, LOADER)?)?;
        }
        info.version_needs = self.version_needs()?;
        info.version_gives = self.version_gives()?;
        // The symbols' names are useful, but without them the rest still counts.
        info.symbols = self.symbols().map_err(|why| Gap::new(format!("the dynamic symbols cannot be read: {why}")));
        Ok(())
    }

    /// The bytes at the address in one entry, and a section header that describes them to goblin's parsers.
    fn section(&self, tag: u64, count: u64, kind: u32) -> Result<Option<Section<'a>>, String> {
        let (Some(address), Some(count)) = (self.value(tag), self.value(count)) else {
            return Ok(None);
        };
        let place = self.headers.offset("version table", address)?;
        let bytes = self.kept.up_to("version table", place, VERSIONS)?;
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
        let section = VerneedSection::parse(&bytes, std::slice::from_ref(&header), self.headers.ctx)
            .map_err(|error| format!(".gnu.version_r: {error}"))?;
        let needs: Vec<_> = section.iter().flatten().collect();
        complete(".gnu.version_r", needs.len(), header.sh_info)?;
        needs
            .iter()
            .map(|need| {
                complete(".gnu.version_r", need.iter().count(), need.vn_cnt)?;
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
        let section = VerdefSection::parse(&bytes, std::slice::from_ref(&header), self.headers.ctx)
            .map_err(|error| format!(".gnu.version_d: {error}"))?;
        let all: Vec<_> = section.iter().flatten().collect();
        complete(".gnu.version_d", all.len(), header.sh_info)?;
        all.iter()
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
        let place = self.headers.offset("DT_SYMTAB", address)?;
        let mut symbols = Vec::new();
        for first in (0..count).step_by(SYMBOLS) {
            let length = (count - first).min(SYMBOLS as u64) * size as u64;
            let bytes = self.kept.get(".dynsym", place.saturating_add(first * size as u64), length)?;
            for entry in bytes.chunks_exact(size) {
                let (symbol, _) =
                    Sym::try_from_ctx(entry, self.headers.ctx).map_err(|error| format!(".dynsym: {error}"))?;
                symbols.extend(self.symbol(&symbol)?);
            }
        }
        Ok(symbols)
    }

    /// Reads a symbol if it is selected.
    fn symbol(&self, symbol: &Sym) -> Result<Option<DynamicSymbol>, String> {
        if symbol.st_name == 0
            || symbol.st_bind() == sym::STB_LOCAL
            || !is_wanted_symbol(&self.name(symbol.st_name as u64)?)
        {
            return Ok(None);
        }
        let defined = symbol.st_shndx != 0;
        let offset = if defined { self.headers.offset("a symbol", symbol.st_value).ok() } else { None };
        Ok(Some(DynamicSymbol { name: self.string(symbol.st_name as u64)?, defined, offset }))
    }

    /// Number of dynamic symbols. No entry holds it: `DT_HASH` has a chain slot for each (gABI chapter 5, "Hash
    /// Table"), and the longest chain of `DT_GNU_HASH` ends at the last one.
    fn symbol_count(&self) -> Result<u64, String> {
        let table = |what, tag| self.value(tag).map(|address| self.headers.offset(what, address)).transpose();
        let word = |place: u64, index: u64| -> Result<u32, String> {
            let bytes = self.kept.get("the hash table", place.saturating_add(4 * index), 4)?;
            bytes.pread_with(0, self.headers.ctx.le).map_err(|error| format!("hash table: {error}"))
        };
        if let Some(place) = table("DT_HASH", dynamic::DT_HASH)? {
            return word(place, 1).map(u64::from);
        }
        let place = table("DT_GNU_HASH", dynamic::DT_GNU_HASH)?.ok_or("there is no symbol hash table")?;
        let (buckets, first, bloom) = (word(place, 0)?, word(place, 1)?, word(place, 2)?);
        let words_of_bloom = u64::from(bloom) * if self.headers.ctx.is_big() { 2 } else { 1 };
        let start = 4 + words_of_bloom;
        let mut last = 0;
        for bucket in 0..u64::from(buckets) {
            last = last.max(word(place, start + bucket)?);
        }
        if last < first {
            return Ok(u64::from(first));
        }
        // The lowest bit marks the end of a chain.
        let chains = start + u64::from(buckets);
        let mut index = u64::from(last);
        while word(place, chains + index - u64::from(first))? & 1 == 0 {
            index += 1;
        }
        Ok(index + 1)
    }
}

fn no_string(offset: u64) -> String {
    format!(".dynstr has no string at {offset}")
}

/// Checks that a table is complete, since goblin's parsers stop silently at a truncation.
fn complete(table: &str, have: usize, said: impl Into<u32>) -> Result<(), String> {
    let said = said.into();
    if u32::try_from(have) == Ok(said) {
        Ok(())
    } else {
        Err(format!("{table} has {said} entries, {have} can be read"))
    }
}
