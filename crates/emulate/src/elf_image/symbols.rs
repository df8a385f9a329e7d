//! Functions by name, and names of relocated symbols.

use memchr::memmem;

use super::{ElfError, ElfImage, failed, half, long, tag, word};

/// Maximum length of a compared name, in bytes. Mangled names of nested templates are long.
const LONGEST_NAME: usize = 1 << 16;

/// `STT_GNU_IFUNC`, a symbol's type.
const INDIRECT: u8 = 10;

/// `STB_WEAK`, a symbol's binding.
const WEAK: u8 = 2;

/// An entry of `.dynsym`.
pub(in super::super) struct Symbol {
    pub(in super::super) name: String,
    /// Address, if this file defines it.
    pub(in super::super) address: Option<u64>,
    /// True if the address is that of code that chooses the function.
    pub(in super::super) is_indirect: bool,
    pub(in super::super) is_weak: bool,
}

impl Symbol {
    /// Address of the function, if this file defines it.
    const fn function(&self) -> Result<Option<u64>, ElfError> {
        if self.is_indirect { Err(ElfError::IndirectFunction) } else { Ok(self.address) }
    }
}

impl ElfImage<'_> {
    /// A dynamic symbol by its index.
    pub(in super::super) fn symbol(&self, index: u32) -> Result<Symbol, ElfError> {
        let table = self.dynamic(tag::SYMTAB).ok_or(ElfError::NoDynamicSymbols)?;
        let mut entry = [0; 24];
        self.read(table.wrapping_add(u64::from(index) * 24), &mut entry)?;
        let name = self.name(word(&entry, 0))?;
        let [_, _, _, _, info, ..] = entry;
        let address = (half(&entry, 6) != 0).then(|| long(&entry, 8));
        Ok(Symbol { name, address, is_indirect: info & 0xf == INDIRECT, is_weak: info >> 4 == WEAK })
    }

    fn name(&self, offset: u32) -> Result<String, ElfError> {
        let strings = self.dynamic(tag::STRTAB).ok_or(ElfError::NoDynamicNames)?;
        let mut name = Vec::new();
        let mut chunk = [0; 256];
        while name.len() < LONGEST_NAME {
            self.read(strings.wrapping_add(u64::from(offset) + name.len() as u64), &mut chunk)?;
            name.extend(chunk.iter().take_while(|byte| **byte != 0));
            if chunk.contains(&0) {
                return Ok(String::from_utf8_lossy(&name).into_owned());
            }
        }
        Err(ElfError::EndlessName)
    }

    /// The address of a function by its (mangled) name: a dynamic symbol, or a local one if the file is not stripped. `None` if
    /// the file has no such function.
    ///
    /// # Errors
    ///
    /// The symbol tables cannot be read, or the function is an indirect one.
    pub fn function(&self, name: &str) -> Result<Option<u64>, ElfError> {
        match self.exported(name)? {
            Some(address) => Ok(Some(address)),
            None => self.local(name),
        }
    }

    /// Looks a name up as the dynamic loader does.
    fn exported(&self, name: &str) -> Result<Option<u64>, ElfError> {
        /// No chain of a valid table is longer.
        const LONGEST_CHAIN: u32 = 1 << 16;
        if let Some(table) = self.dynamic(tag::GNU_HASH) {
            let hash = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
            let buckets = self.word_at(table)?;
            let first = self.word_at(table.wrapping_add(4))?;
            let bloom = self.word_at(table.wrapping_add(8))?;
            let slots = table.wrapping_add(16).wrapping_add(u64::from(bloom) * 8);
            let Some(bucket) = hash.checked_rem(buckets) else { return Ok(None) };
            let start = self.word_at(slots.wrapping_add(u64::from(bucket) * 4))?;
            let chains = slots.wrapping_add(u64::from(buckets) * 4);
            for index in start..start.saturating_add(LONGEST_CHAIN) {
                let Some(link) = index.checked_sub(first) else { return Ok(None) };
                let found = self.word_at(chains.wrapping_add(u64::from(link) * 4))?;
                if found | 1 == hash | 1
                    && let symbol = self.symbol(index)?
                    && symbol.name == name
                {
                    return symbol.function();
                }
                if found & 1 == 1 {
                    return Ok(None);
                }
            }
        } else if let Some(table) = self.dynamic(tag::HASH) {
            let hash = name.bytes().fold(0_u32, |hash, byte| {
                let hash = (hash << 4).wrapping_add(u32::from(byte));
                (hash ^ ((hash >> 24) & 0xf0)) & 0x0fff_ffff
            });
            let slot = |index: u32| self.word_at(table.wrapping_add(8 + u64::from(index) * 4));
            let buckets = self.word_at(table)?;
            let Some(bucket) = hash.checked_rem(buckets) else { return Ok(None) };
            let mut index = slot(bucket)?;
            for _ in 0..LONGEST_CHAIN {
                if index == 0 {
                    return Ok(None);
                }
                let symbol = self.symbol(index)?;
                if symbol.name == name {
                    return symbol.function();
                }
                index = slot(buckets.wrapping_add(index))?;
            }
        }
        Ok(None)
    }

    /// Looks a name up in `.symtab`.
    fn local(&self, name: &str) -> Result<Option<u64>, ElfError> {
        const SYMTAB: u32 = 2;
        let mut headers = vec![0; usize::from(self.sections.count) * 64];
        if self.file.read_at(self.sections.offset, &mut headers).is_err() {
            // Section headers are for debuggers, so a file without them is valid.
            return Ok(None);
        }
        let headers: Vec<_> = headers.chunks_exact(64).collect();
        let Some(table) = headers.iter().find(|header| word(header, 4) == SYMTAB) else { return Ok(None) };
        let names = usize::try_from(word(table, 40)).ok().and_then(|link| headers.get(link));
        let Some(names) = names else { return Ok(None) };
        let wanted = [name.as_bytes(), b"\0"].concat();
        let Some(offset) = self.search(long(names, 24), long(names, 32), &wanted)? else { return Ok(None) };
        let mut address = None;
        self.chunks(long(table, 24), long(table, 32), 0, &mut |_, bytes| {
            let symbol =
                bytes.chunks_exact(24).find(|entry| u64::from(word(entry, 0)) == offset && half(entry, 6) != 0);
            address = symbol.map(|entry| long(entry, 8));
            address.is_some()
        })?;
        Ok(address)
    }

    /// Offset of the first occurrence of `wanted` in a part of the file, from the start of that part.
    fn search(&self, offset: u64, size: u64, wanted: &[u8]) -> Result<Option<u64>, ElfError> {
        let finder = memmem::Finder::new(wanted);
        let mut place = None;
        self.chunks(offset, size, wanted.len(), &mut |at, bytes| {
            place = finder.find(bytes).map(|within| at + within as u64);
            place.is_some()
        })?;
        Ok(place)
    }

    /// Passes a part of the file in chunks, each with `overlap` bytes of the next, until the visitor stops.
    pub(super) fn chunks(
        &self,
        offset: u64,
        size: u64,
        overlap: usize,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), ElfError> {
        /// A whole number of symbols.
        const CHUNK: usize = 24 << 15;
        let mut buffer = vec![0; CHUNK + overlap];
        let mut at = 0;
        while at < size {
            let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..length).ok_or(ElfError::OutOfBounds)?;
            self.file.read_at(offset.saturating_add(at), part).map_err(failed(format!("its bytes from {at:#x} on")))?;
            if visit(at, part) {
                return Ok(());
            }
            at += CHUNK as u64;
        }
        Ok(())
    }
}
