//! Symbol versions: `.gnu.version_r`, `.gnu.version_d` and the indices by which symbols refer to them (glibc,
//! `elf/dl-version.c`).

use std::borrow::Cow;

use goblin::elf::dynamic;
use goblin::elf::section_header::{SHT_GNU_VERDEF, SHT_GNU_VERNEED, SectionHeader};
use goblin::elf::symver::{VerdefSection, VerneedSection};

use model::{ElfInfo, RequiredVersion, VersionNeed};

use super::dynamic::Dynamic;

/// Maximum size of a version table, in bytes. That of glibc takes 2 KiB.
const VERSIONS: u64 = 1 << 20;

/// Index of a version, without the bit that marks a hidden symbol.
const INDEX: u16 = 0x7fff;

/// Versions by the index that `.gnu.version` holds for each symbol.
#[derive(Default)]
pub(super) struct VersionTable {
    names: Vec<Option<RequiredVersion>>,
}

impl VersionTable {
    /// The version with this index; `None` for the base version, and for an index that no table defines.
    pub(super) fn get(&self, index: u16) -> Option<&RequiredVersion> {
        self.names.get(usize::from(index & INDEX))?.as_ref()
    }

    /// Returns true if the file has versions; without any, the loader does not read the indices of symbols.
    pub(super) const fn is_used(&self) -> bool {
        !self.names.is_empty()
    }

    fn set(&mut self, index: u16, name: String, is_exact: bool) {
        let index = usize::from(index & INDEX);
        if self.names.len() <= index {
            self.names.resize(index + 1, None);
        }
        if let Some(entry) = self.names.get_mut(index) {
            *entry = Some(RequiredVersion { name, is_exact });
        }
    }
}

/// A table, with the section header that goblin's parsers need.
type Section<'a> = (Cow<'a, [u8]>, SectionHeader);

impl<'a> Dynamic<'a> {
    /// Reads the required and the defined versions.
    pub(super) fn versions(&self, info: &mut ElfInfo) -> Result<VersionTable, String> {
        let mut table = VersionTable::default();
        info.version_needs = self.version_needs(&mut table)?;
        info.version_gives = self.version_gives(&mut table)?;
        Ok(table)
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

    fn version_needs(&self, table: &mut VersionTable) -> Result<Vec<VersionNeed>, String> {
        const WEAK: u16 = 2;
        let Some((bytes, header)) = self.section(dynamic::DT_VERNEED, dynamic::DT_VERNEEDNUM, SHT_GNU_VERNEED)? else {
            return Ok(Vec::new());
        };
        let section = VerneedSection::parse(&bytes, std::slice::from_ref(&header), self.headers.ctx)
            .map_err(|error| format!(".gnu.version_r: {error}"))?;
        let needs: Vec<_> = section.iter().flatten().collect();
        complete(".gnu.version_r", needs.len(), header.sh_info)?;
        let mut list = Vec::with_capacity(needs.len());
        for need in needs {
            complete(".gnu.version_r", need.iter().count(), need.vn_cnt)?;
            let file = self.string(need.vn_file as u64)?;
            let mut entry = VersionNeed { file, versions: Vec::new(), weak: Vec::new() };
            for aux in &need {
                let name = self.string(aux.vna_name as u64)?;
                table.set(aux.vna_other, name.clone(), aux.vna_other & !INDEX != 0);
                if aux.vna_flags & WEAK == 0 { entry.versions.push(name) } else { entry.weak.push(name) }
            }
            list.push(entry);
        }
        Ok(list)
    }

    fn version_gives(&self, table: &mut VersionTable) -> Result<Vec<String>, String> {
        const BASE: u16 = 1;
        let Some((bytes, header)) = self.section(dynamic::DT_VERDEF, dynamic::DT_VERDEFNUM, SHT_GNU_VERDEF)? else {
            return Ok(Vec::new());
        };
        let section = VerdefSection::parse(&bytes, std::slice::from_ref(&header), self.headers.ctx)
            .map_err(|error| format!(".gnu.version_d: {error}"))?;
        let all: Vec<_> = section.iter().flatten().collect();
        complete(".gnu.version_d", all.len(), header.sh_info)?;
        let mut names = Vec::new();
        for gives in all.iter().filter(|gives| gives.vd_flags & BASE == 0) {
            if let Some(aux) = gives.iter().next() {
                let name = self.string(aux.vda_name as u64)?;
                table.set(gives.vd_ndx, name.clone(), false);
                names.push(name);
            }
        }
        Ok(names)
    }
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
