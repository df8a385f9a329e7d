//! Files that glibc's loader refuses for their headers, whatever else they hold (`elf/dl-load.c`, `open_verify` and
//! `_dl_map_object_from_fd`).

use goblin::container::Ctx;
use goblin::elf::header::{
    EI_ABIVERSION, EI_CLASS, EI_DATA, EI_OSABI, EI_VERSION, ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ET_DYN,
    EV_CURRENT, Header, SIZEOF_IDENT,
};
use goblin::elf::program_header::{PT_DYNAMIC, PT_LOAD, ProgramHeader};

use model::{ElfInfo, Endian};

use super::bare;
use super::headers::{Headers, header};
use super::kept::Kept;

/// First byte of the padding in `e_ident`.
const EI_PAD: usize = 9;

/// `ELFOSABI_SYSV` and `ELFOSABI_GNU`.
const SYSV: u8 = 0;
const GNU: u8 = 3;

/// The header of a file that the loader refuses, with the reason; `None` if it maps the file.
pub(super) fn refused(kept: &Kept, size: u64) -> Option<ElfInfo> {
    let ident = kept.get("the identification", 0, SIZEOF_IDENT as u64).ok()?;
    let byte = |at: usize| ident.get(at).copied().unwrap_or_default();
    // The loader takes an invalid value for that of another machine.
    if !matches!(byte(EI_CLASS), ELFCLASS32 | ELFCLASS64) {
        return Some(ElfInfo::bare(32, Endian::Little, 0));
    }
    if !matches!(byte(EI_DATA), ELFDATA2LSB | ELFDATA2MSB) {
        return Some(ElfInfo::bare(if byte(EI_CLASS) == ELFCLASS32 { 32 } else { 64 }, Endian::Big, 0));
    }
    let (header, ctx) = header(kept).ok()?;
    let of_segments = || of_segments(&Headers::parse(kept).ok()?, size);
    let why = of_identification(&ident).or_else(|| of_header(&header, ctx, size)).or_else(of_segments)?;
    Some(ElfInfo { refusal: Some(why.to_owned()), ..bare(&header, ctx) })
}

fn of_identification(ident: &[u8]) -> Option<&'static str> {
    let byte = |at: usize| ident.get(at).copied().unwrap_or_default();
    if byte(EI_VERSION) != EV_CURRENT {
        Some("ELF file version ident does not match current one")
    } else if !matches!(byte(EI_OSABI), SYSV | GNU) {
        Some("ELF file OS ABI invalid")
    } else if byte(EI_OSABI) == SYSV && byte(EI_ABIVERSION) != 0 {
        Some("ELF file ABI version invalid")
    } else if (EI_PAD..SIZEOF_IDENT).any(|at| byte(at) != 0) {
        Some("nonzero padding in e_ident")
    } else {
        None
    }
}

fn of_header(header: &Header, ctx: Ctx, size: u64) -> Option<&'static str> {
    let table = u64::from(header.e_phentsize) * u64::from(header.e_phnum);
    if header.e_version != u32::from(EV_CURRENT) {
        Some("ELF file version does not match current one")
    } else if usize::from(header.e_phentsize) != ProgramHeader::size(ctx) {
        Some("ELF file's phentsize not the expected size")
    } else if header.e_phoff.saturating_add(table) > size {
        Some("cannot read file data")
    } else {
        None
    }
}

fn of_segments(headers: &Headers, size: u64) -> Option<&'static str> {
    if headers.segment(PT_LOAD).is_none() {
        Some("object file has no loadable segments")
    } else if headers.segment(PT_DYNAMIC).is_none() && headers.header.e_type == ET_DYN {
        Some("object file has no dynamic section")
    } else if headers.ends_after(size) {
        Some("it ends before its segments, so that the process that maps it gets a bus error")
    } else {
        None
    }
}
