//! The dynamic symbol table: symbols that facts ask for by name, and what the loader binds.

use std::borrow::Cow;

use goblin::elf::{Sym, dynamic, sym};
use scroll::Pread;
use scroll::ctx::{SizeWith, TryFromCtx};

use model::{DynamicSymbol, SymbolExports, SymbolImport, SymbolImports, SymbolLinks, SymbolVersion};

use super::dynamic::Dynamic;
use super::relocations::RelocationOrder;
use super::versions::VersionTable;

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

/// Number of symbols read at once.
const SYMBOLS: usize = 2048;

/// A symbol with a name, as the loader sees it.
struct NamedSymbol<'a> {
    name: Cow<'a, [u8]>,
    /// NamedSymbol of `.gnu.version`; zero without one.
    version: u16,
}

/// The symbol table, sorted by use.
#[derive(Default)]
pub(super) struct SymbolLists<'a> {
    /// SymbolLists whose names are kept.
    pub(super) wanted: Vec<DynamicSymbol>,
    definitions: Vec<NamedSymbol<'a>>,
    /// References by index in the table, ascending.
    references: Vec<(u64, NamedSymbol<'a>)>,
    count: u64,
}

impl<'a> Dynamic<'a> {
    /// Reads the symbol table.
    pub(super) fn symbols(&self, versions: &VersionTable) -> Result<SymbolLists<'a>, String> {
        let mut symbols = SymbolLists::default();
        let Some(address) = self.value(dynamic::DT_SYMTAB) else {
            return Ok(symbols);
        };
        let size = Sym::size_with(&self.headers.ctx);
        symbols.count = self.symbol_count()?;
        let place = self.headers.offset("DT_SYMTAB", address)?;
        let indices = self.value(dynamic::DT_VERSYM).filter(|_| versions.is_used());
        let indices = indices.map(|address| self.headers.offset("DT_VERSYM", address)).transpose()?;
        for first in (0..symbols.count).step_by(SYMBOLS) {
            let length = (symbols.count - first).min(SYMBOLS as u64);
            let bytes = self.kept.get(".dynsym", place.saturating_add(first * size as u64), length * size as u64)?;
            let of_versions = indices
                .map(|place| self.kept.get(".gnu.version", place.saturating_add(2 * first), 2 * length))
                .transpose()?;
            for (index, entry) in bytes.chunks_exact(size).enumerate() {
                let (symbol, _) =
                    Sym::try_from_ctx(entry, self.headers.ctx).map_err(|error| format!(".dynsym: {error}"))?;
                let version =
                    of_versions.as_ref().and_then(|bytes| bytes.pread_with(2 * index, self.headers.ctx.le).ok());
                self.sort(first + index as u64, &symbol, version.unwrap_or_default(), &mut symbols)?;
            }
        }
        Ok(symbols)
    }

    /// Adds one symbol to the lists that it belongs to.
    fn sort(&self, index: u64, symbol: &Sym, version: u16, symbols: &mut SymbolLists<'a>) -> Result<(), String> {
        if symbol.st_name == 0 || symbol.st_bind() == sym::STB_LOCAL {
            return Ok(());
        }
        let name = self.symbol_name(symbol.st_name as u64)?;
        let is_defined = symbol.st_shndx != 0;
        if is_wanted_symbol(&name) {
            let offset = if is_defined { self.headers.offset("a symbol", symbol.st_value).ok() } else { None };
            let name = String::from_utf8(name.to_vec()).map_err(|error| format!(".dynstr: {error}"))?;
            symbols.wanted.push(DynamicSymbol { name, defined: is_defined, offset });
        }
        // Neither a hidden reference nor a hidden definition is looked up by name.
        if matches!(symbol.st_visibility(), sym::STV_HIDDEN | sym::STV_INTERNAL) {
            return Ok(());
        }
        let entry = NamedSymbol { name, version };
        if is_definition(symbol) {
            symbols.definitions.push(entry);
        } else if !is_defined && symbol.st_bind() != sym::STB_WEAK {
            symbols.references.push((index, entry));
        }
        Ok(())
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
        let buckets = word(place, 0)?;
        let first = word(place, 1)?;
        let bloom = word(place, 2)?;
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

/// Returns true for a symbol that satisfies references (glibc, `check_match`): it has a place in the file, and a type
/// that code or data has.
fn is_definition(symbol: &Sym) -> bool {
    const ABSOLUTE: usize = 0xfff1;
    let kind = symbol.st_type();
    let has_type = matches!(
        kind,
        sym::STT_NOTYPE | sym::STT_OBJECT | sym::STT_FUNC | sym::STT_COMMON | sym::STT_TLS | sym::STT_GNU_IFUNC
    );
    let has_value = symbol.st_value != 0 || symbol.st_shndx == ABSOLUTE || kind == sym::STT_TLS;
    symbol.st_shndx != 0 && has_type && has_value
}

impl SymbolLists<'_> {
    /// Definitions, and references in the order of relocation.
    pub(super) fn links(&self, versions: &VersionTable, dynamic: &Dynamic<'_>) -> SymbolLinks {
        let definitions = self.definitions.iter().map(|entry| (&*entry.name, entry.definition(versions)));
        SymbolLinks { imports: self.imports(versions, dynamic), exports: SymbolExports::new(definitions) }
    }

    fn imports(&self, versions: &VersionTable, dynamic: &Dynamic<'_>) -> SymbolImports {
        let is_sought = |index: u64| self.reference(index).is_some();
        // The relocations are useful, but without them the names still count.
        let relocated = dynamic.relocated(self.count, is_sought).ok();
        let is_relocated = relocated.is_some();
        let RelocationOrder { order, eager } = relocated.unwrap_or_else(|| RelocationOrder {
            order: self.references.iter().map(|(index, _)| *index).collect(),
            eager: self.references.len(),
        });
        let list = order.iter().filter_map(|index| {
            let entry = self.reference(*index)?;
            Some(SymbolImport { name: &entry.name, version: versions.get(entry.version) })
        });
        SymbolImports::new(list, eager, is_relocated)
    }

    fn reference(&self, index: u64) -> Option<&NamedSymbol<'_>> {
        let at = self.references.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.references.get(at).map(|(_, entry)| entry)
    }
}

impl NamedSymbol<'_> {
    /// The references that this definition satisfies.
    fn definition<'v>(&self, versions: &'v VersionTable) -> SymbolVersion<'v> {
        /// The file's first version beside the base version.
        const FIRST: u16 = 2;
        const HIDDEN: u16 = 0x8000;
        let index = self.version & !HIDDEN;
        let is_hidden = self.version & HIDDEN != 0;
        match versions.get(index).map(|version| version.name.as_bytes()) {
            // glibc accepts a symbol of an index below 3 for a reference without version.
            Some(name) if !is_hidden || index <= FIRST => SymbolVersion::Default(name),
            Some(name) => SymbolVersion::Hidden(name),
            None if is_hidden => SymbolVersion::HiddenBase,
            None => SymbolVersion::Base,
        }
    }
}
