//! Relocations: which symbols the loader looks up, and in which order (glibc, `elf/dynamic-link.h`, `elf/do-rel.h`).

use goblin::elf::dynamic;
use scroll::Pread;

use super::dynamic::Dynamic;

/// Size of the parts in which a table is read, in bytes: a multiple of each size of an entry.
const PART: u64 = 24 * 16 * 160;

/// Symbols by index, each once, in the order of their first relocations.
pub(super) struct RelocationOrder {
    pub(super) order: Vec<u64>,
    /// Number of leading symbols that are bound despite `RTLD_LAZY`.
    pub(super) eager: usize,
}

/// A part of the relocations.
struct RelocationTable {
    address: u64,
    size: u64,
    has_addend: bool,
}

impl Dynamic<'_> {
    /// The symbols, of `count`, that relocations refer to and that are sought.
    pub(super) fn relocated(&self, count: u64, is_sought: impl Fn(u64) -> bool) -> Result<RelocationOrder, String> {
        let count = usize::try_from(count).map_err(|error| error.to_string())?;
        let mut seen = vec![false; count];
        let mut order = Vec::new();
        let mut add = |index: u64| {
            let is_seen = usize::try_from(index).ok().and_then(|index| seen.get_mut(index));
            if is_seen.is_some_and(|seen| !std::mem::replace(seen, true)) && is_sought(index) {
                order.push(index);
            }
            order.len()
        };
        let later = self.table(
            dynamic::DT_JMPREL,
            dynamic::DT_PLTRELSZ,
            self.value(dynamic::DT_PLTREL) == Some(dynamic::DT_RELA),
        );
        let mut eager = 0;
        for (start, size, relative, has_addend) in [
            (dynamic::DT_REL, dynamic::DT_RELSZ, dynamic::DT_RELCOUNT, false),
            (dynamic::DT_RELA, dynamic::DT_RELASZ, dynamic::DT_RELACOUNT, true),
        ] {
            let Some(mut table) = self.table(start, size, has_addend) else { continue };
            // The table may include the relocations of functions, at its end.
            if let Some(later) = later.as_ref().filter(|later| later.end() == table.end()) {
                table.size = table.size.saturating_sub(later.size);
            }
            let skipped = self.value(relative).unwrap_or(0).saturating_mul(self.entry_size(has_addend));
            let skipped = skipped.min(table.size);
            table.address = table.address.saturating_add(skipped);
            table.size -= skipped;
            self.each(&table, |index| eager = add(index))?;
        }
        if let Some(later) = later {
            self.each(&later, |index| {
                add(index);
            })?;
        }
        let eager = if self.is_bound_now() { order.len() } else { eager };
        Ok(RelocationOrder { order, eager })
    }

    fn table(&self, start: u64, size: u64, has_addend: bool) -> Option<RelocationTable> {
        let address = self.value(start)?;
        let size = self.value(size)?;
        (address != 0 && size != 0).then_some(RelocationTable { address, size, has_addend })
    }

    fn entry_size(&self, has_addend: bool) -> u64 {
        let words = if has_addend { 3 } else { 2 };
        words * if self.headers.ctx.is_big() { 8 } else { 4 }
    }

    /// Passes the symbol index of each relocation that has a type and a symbol.
    fn each(&self, table: &RelocationTable, mut found: impl FnMut(u64)) -> Result<(), String> {
        let place = self.headers.offset("relocations", table.address)?;
        let entry = self.entry_size(table.has_addend);
        let size = usize::try_from(entry).map_err(|error| error.to_string())?;
        let mut at = 0;
        while at < table.size {
            let length = (table.size - at).min(PART) / entry * entry;
            if length == 0 {
                break;
            }
            let bytes = self.kept.get("relocations", place.saturating_add(at), length)?;
            for entry in bytes.chunks_exact(size) {
                let (symbol, kind) = self.info(entry)?;
                if symbol != 0 && kind != 0 {
                    found(symbol);
                }
            }
            at += length;
        }
        Ok(())
    }

    /// Symbol index and type in `r_info`.
    fn info(&self, entry: &[u8]) -> Result<(u64, u64), String> {
        let error = |error: scroll::Error| format!("relocations: {error}");
        if self.headers.ctx.is_big() {
            let info: u64 = entry.pread_with(8, self.headers.ctx.le).map_err(error)?;
            Ok((info >> 32, info & 0xffff_ffff))
        } else {
            let info: u32 = entry.pread_with(4, self.headers.ctx.le).map_err(error)?;
            Ok((u64::from(info >> 8), u64::from(info & 0xff)))
        }
    }

    /// Returns true if the file asks for binding all functions when it is loaded.
    fn is_bound_now(&self) -> bool {
        let has = |tag, flag| self.value(tag).is_some_and(|flags| flags & flag != 0);
        self.value(dynamic::DT_BIND_NOW).is_some()
            || has(dynamic::DT_FLAGS, dynamic::DF_BIND_NOW)
            || has(dynamic::DT_FLAGS_1, dynamic::DF_1_NOW)
    }
}

impl RelocationTable {
    const fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}
