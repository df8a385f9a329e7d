//! The ELF header and the program headers, which map addresses to file offsets.

use goblin::container::{Container, Ctx};
use goblin::elf::header::{EI_CLASS, ELFCLASS32, Header};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use scroll::Pread;

use super::kept::Kept;

/// The ELF header and the program headers.
pub(super) struct Headers {
    pub(super) header: Header,
    pub(super) ctx: Ctx,
    pub(super) segments: Vec<ProgramHeader>,
}

/// The ELF header, with the class and the byte order of the file.
pub(super) fn header(kept: &Kept) -> Result<(Header, Ctx), String> {
    let ident = kept.get("the ELF header", 0, 64).or_else(|_| kept.get("the ELF header", 0, 52))?;
    let header: Header = ident.pread(0).map_err(|error| format!("header: {error}"))?;
    let container = if header.e_ident.get(EI_CLASS) == Some(&ELFCLASS32) { Container::Little } else { Container::Big };
    let ctx = Ctx::new(container, header.endianness().map_err(|error| format!("header: {error}"))?);
    Ok((header, ctx))
}

impl Headers {
    pub(super) fn parse(kept: &Kept) -> Result<Self, String> {
        let (header, ctx) = header(kept)?;
        let size = u64::from(header.e_phentsize) * u64::from(header.e_phnum);
        if header.e_phnum > 0 && usize::from(header.e_phentsize) != ProgramHeader::size(ctx) {
            return Err(format!("program headers of {} bytes each", header.e_phentsize));
        }
        let segments = if size == 0 {
            Vec::new()
        } else {
            let bytes = kept.get("the program header table", header.e_phoff, size)?;
            ProgramHeader::parse(&bytes, 0, usize::from(header.e_phnum), ctx)
                .map_err(|error| format!("program headers: {error}"))?
        };
        Ok(Self { header, ctx, segments })
    }

    /// Returns true if the loader would map a page that is not in a file of this size. Access to it ends the process.
    pub(super) fn ends_after(&self, size: u64) -> bool {
        /// Size of a page, in bytes. With larger ones, less of a file is missing.
        const PAGE: u64 = 4096;
        let loaded = self.segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_filesz > 0);
        let end = loaded.map(|segment| segment.p_offset.saturating_add(segment.p_filesz)).max().unwrap_or(0);
        size.checked_next_multiple_of(PAGE).is_some_and(|size| end > size)
    }

    pub(super) fn segment(&self, kind: u32) -> Option<&ProgramHeader> {
        self.segments.iter().find(|segment| segment.p_type == kind)
    }

    /// The file offset of an address (gABI chapter 5, "Program Header").
    pub(super) fn offset(&self, what: &str, address: u64) -> Result<u64, String> {
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
