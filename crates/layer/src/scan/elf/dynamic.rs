//! The dynamic section and the tables that it refers to.

use std::borrow::Cow;

use goblin::elf::dynamic::{self, Dyn};
use goblin::elf::program_header::ProgramHeader;
use scroll::ctx::TryFromCtx;

use model::{ElfInfo, Gap, Limits, part};

use super::headers::Headers;
use super::kept::Kept;
use super::names::NameBudgets;
use super::{default_directories, path_literal};

/// Leading bytes of the dynamic loader that are searched for its default directories. The loader takes 0.2 MiB.
const LOADER: u64 = 4 << 20;

/// Leading bytes of libibverbs that are searched for the paths of its providers. Its literals end before 0.1 MiB.
const LIBRARY: u64 = 4 << 20;

/// Maximum size of a name, in bytes.
const NAME: u64 = 64 << 10;

/// The dynamic section and the tables that it refers to.
pub(super) struct Dynamic<'a> {
    pub(super) kept: &'a Kept,
    pub(super) headers: &'a Headers,
    entries: Vec<Dyn>,
    names: NameBudgets,
    /// File offset and size of `.dynstr`.
    strings: (u64, u64),
}

impl<'a> Dynamic<'a> {
    pub(super) fn read(
        kept: &'a Kept,
        headers: &'a Headers,
        segment: &ProgramHeader,
        limits: &Limits,
    ) -> Result<Self, String> {
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
        let mut dynamic = Self { kept, headers, entries, names: NameBudgets::new(limits), strings: (0, 0) };
        if let (Some(address), Some(size)) = (dynamic.value(dynamic::DT_STRTAB), dynamic.value(dynamic::DT_STRSZ)) {
            dynamic.strings = (headers.offset("DT_STRTAB", address)?, size);
        }
        Ok(dynamic)
    }

    pub(super) fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val)
    }

    pub(super) fn string(&self, offset: u64) -> Result<String, String> {
        let name = self.text_at(offset)?;
        self.names.of_loader.charge(name.len())?;
        String::from_utf8(name.into_owned()).map_err(|_utf8| no_string(offset))
    }

    /// The name of a symbol.
    pub(super) fn symbol_name(&self, offset: u64) -> Result<Cow<'a, [u8]>, String> {
        let name = self.text_at(offset)?;
        self.names.of_symbols.charge(name.len())?;
        Ok(name)
    }

    fn text_at(&self, offset: u64) -> Result<Cow<'a, [u8]>, String> {
        let (table, size) = self.strings;
        let rest = size.checked_sub(offset).filter(|rest| *rest > 0).ok_or_else(|| no_string(offset))?;
        // Tries 256 bytes first: most names are short, and a longer range may have to be copied from several blocks.
        for most in [256, NAME] {
            let mut bytes = self.kept.up_to(".dynstr", table.saturating_add(offset), rest.min(most))?;
            if let Some(end) = memchr::memchr(0, &bytes) {
                match &mut bytes {
                    Cow::Borrowed(bytes) => *bytes = part(bytes, ..end)?,
                    // Names are kept until the file is read; the rest of the range must not be.
                    Cow::Owned(bytes) => *bytes = part(bytes, ..end)?.to_vec(),
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
        if info.soname.as_ref().is_some_and(|name| name.starts_with("libibverbs.so")) {
            // rdma-core, `libibverbs/dynamic_driver.c`: the version in the names of files is that of the private interface.
            let bytes = self.kept.up_to("libibverbs", 0, LIBRARY)?;
            info.provider_pattern = path_literal(&bytes, b"/lib%s-rdmav", b".so")?;
            info.provider_config = path_literal(&bytes, b"/libibverbs.d", b"/libibverbs.d")?;
        }
        let versions = self.versions(info)?;
        // The symbols' names are useful, but without them the rest still counts.
        match self.symbols(&versions) {
            Ok(symbols) => {
                info.links = Ok(symbols.links(&versions, self));
                info.symbols = Ok(symbols.wanted);
            }
            Err(why) => {
                let gap = Gap::new(format!("the dynamic symbols cannot be read: {why}"));
                (info.links, info.symbols) = (Err(gap.clone()), Err(gap));
            }
        }
        Ok(())
    }
}

fn no_string(offset: u64) -> String {
    format!(".dynstr has no string at {offset}")
}
