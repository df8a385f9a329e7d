//! An ELF file as its process would see it: relocated bytes by address, and the symbols that calls refer to (System V gABI,
//! chapters 4 and 5, with the supplements for x86-64 and AArch64). Only the needed ranges of the file are read into memory.

mod references;
mod symbols;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::error::ElfError;

/// A file that can be read at any offset.
pub trait ReadAt {
    /// Fills the buffer with the bytes from this offset on.
    ///
    /// # Errors
    ///
    /// The file ends before the buffer is full ([`io::ErrorKind::UnexpectedEof`]), or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl ReadAt for &[u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(offset).ok().and_then(|at| self.get(at..)?.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Machines whose code can be emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    X86,
    Arm,
}

/// An ELF file as a process would map it: relocated bytes by address.
pub struct ElfImage<'a> {
    file: &'a dyn ReadAt,
    pub(crate) machine: Machine,
    segments: Vec<Segment>,
    dynamic: Vec<(u64, u64)>,
    relocations: Vec<Relocation>,
    sections: Sections,
    /// Address of the table of functions for unwinding, `PT_GNU_EH_FRAME`.
    frame_table: Option<u64>,
}

/// One `PT_LOAD` segment.
struct Segment {
    address: u64,
    offset: u64,
    in_file: u64,
    in_memory: u64,
    executable: bool,
}

/// Location of the section header table.
struct Sections {
    offset: u64,
    count: u16,
}

/// A value to write at an address.
pub(super) struct Relocation {
    pub(super) address: u64,
    pub(super) value: RelocationTarget,
}

/// Value of a relocation.
#[derive(Clone, Copy)]
pub(super) enum RelocationTarget {
    /// An address in this file.
    Here(u64),
    /// A dynamic symbol, and its addend.
    Symbol { index: u32, addend: u64 },
    /// An unsupported relocation, such as one of thread-local storage.
    Other,
}

mod tag {
    pub(super) const PLTRELSZ: u64 = 2;
    pub(super) const HASH: u64 = 4;
    pub(super) const STRTAB: u64 = 5;
    pub(super) const SYMTAB: u64 = 6;
    pub(super) const RELA: u64 = 7;
    pub(super) const RELASZ: u64 = 8;
    pub(super) const JMPREL: u64 = 23;
    pub(super) const RELRSZ: u64 = 35;
    pub(super) const RELR: u64 = 36;
    pub(super) const GNU_HASH: u64 = 0x6fff_fef5;
}

/// Maximum number of relocations, of 32 bytes each. libtorch_cpu.so 2.9.0 has 326,000.
const MOST_RELOCATIONS: usize = 1 << 21;

impl fmt::Debug for ElfImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElfImage").field("machine", &self.machine).finish_non_exhaustive()
    }
}

impl<'a> ElfImage<'a> {
    /// Opens a file, and reads its headers and relocations. Everything else is read on demand.
    ///
    /// # Errors
    ///
    /// The file is not an ELF file for x86-64 or AArch64, or cannot be read.
    pub fn open(file: &'a dyn ReadAt) -> Result<Self, ElfError> {
        let mut header = [0; 64];
        file.read_at(0, &mut header).map_err(failed("the ELF header"))?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(ElfError::NotElf64);
        }
        let machine = match half(&header, 18) {
            62 => Machine::X86,
            183 => Machine::Arm,
            other => return Err(ElfError::UnknownMachine(other)),
        };
        let sections = Sections { offset: long(&header, 40), count: half(&header, 60) };
        let mut image = Self {
            file,
            machine,
            segments: Vec::new(),
            dynamic: Vec::new(),
            relocations: Vec::new(),
            sections,
            frame_table: None,
        };
        let mut table = vec![0; usize::from(half(&header, 56)) * 56];
        file.read_at(long(&header, 32), &mut table).map_err(failed("the program headers"))?;
        for header in table.chunks_exact(56) {
            let offset = long(header, 8);
            let address = long(header, 16);
            let in_file = long(header, 32);
            let in_memory = long(header, 40);
            match word(header, 0) {
                1 => {
                    let executable = word(header, 4) & 1 == 1;
                    image.segments.push(Segment { address, offset, in_file, in_memory, executable });
                }
                2 => image.dynamic = image.dynamic_section(offset, in_file)?,
                0x6474_e550 => image.frame_table = Some(address),
                _ => {}
            }
        }
        image.relocations = image.read_relocations()?;
        Ok(image)
    }

    fn dynamic_section(&self, offset: u64, size: u64) -> Result<Vec<(u64, u64)>, ElfError> {
        const LARGEST: u64 = 1 << 16;
        let mut bytes = vec![0; usize::try_from(size.min(LARGEST))?];
        self.file.read_at(offset, &mut bytes).map_err(failed("the dynamic section"))?;
        let entries = bytes.chunks_exact(16).map(|entry| (long(entry, 0), long(entry, 8)));
        Ok(entries.take_while(|(tag, _)| *tag != 0).collect())
    }

    fn dynamic(&self, wanted: u64) -> Option<u64> {
        self.dynamic.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value)
    }

    /// Returns true if the address is inside the mapped file.
    pub(super) fn holds(&self, address: u64) -> bool {
        self.segment(address).is_some()
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| {
            address.checked_sub(segment.address).is_some_and(|within| within < segment.in_memory.max(segment.in_file))
        })
    }

    /// Fills the buffer with the mapped bytes before relocation. Gaps between segments read as zeros.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), ElfError> {
        buffer.fill(0);
        let end = address.checked_add(buffer.len() as u64).ok_or(ElfError::AddressOverflow)?;
        for segment in &self.segments {
            let from = segment.address.max(address);
            let to = segment.address.saturating_add(segment.in_file).min(end);
            if from >= to {
                continue;
            }
            let range = usize::try_from(from - address)?..usize::try_from(to - address)?;
            let part = buffer.get_mut(range).ok_or(ElfError::OutOfBounds)?;
            let offset = segment.offset.checked_add(from - segment.address).ok_or(ElfError::OffsetOverflow)?;
            self.file.read_at(offset, part).map_err(failed(format!("reading {from:#x}")))?;
        }
        Ok(())
    }

    fn word_at(&self, address: u64) -> Result<u32, ElfError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The relocations inside a range of addresses.
    pub(super) fn relocations(&self, from: u64, to: u64) -> &[Relocation] {
        let at = |limit| self.relocations.partition_point(|relocation| relocation.address < limit);
        self.relocations.get(at(from)..at(to)).unwrap_or_default()
    }

    fn read_relocations(&self) -> Result<Vec<Relocation>, ElfError> {
        let mut relocations = Vec::new();
        for (table, size) in [(tag::RELA, tag::RELASZ), (tag::JMPREL, tag::PLTRELSZ)] {
            for entry in self.table(table, size)?.chunks_exact(24) {
                let info = long(entry, 8);
                let addend = long(entry, 16);
                let value = target(self.machine, info, addend);
                relocations.push(Relocation { address: long(entry, 0), value });
            }
        }
        self.relative(&self.table(tag::RELR, tag::RELRSZ)?, &mut relocations)?;
        relocations.sort_by_key(|relocation| relocation.address);
        Ok(relocations)
    }

    /// `DT_RELR`: an even entry is an address, an odd one a bitmap of the next 63 words.
    fn relative(&self, table: &[u8], relocations: &mut Vec<Relocation>) -> Result<(), ElfError> {
        let mut next = 0_u64;
        for entry in table.chunks_exact(8).map(|entry| long(entry, 0)) {
            let (first, bits) = if entry & 1 == 0 { (entry, 1) } else { (next, entry >> 1) };
            for bit in (0..63).filter(|bit| bits >> bit & 1 == 1) {
                let address = first.wrapping_add(bit * 8);
                let mut place = [0; 8];
                self.read(address, &mut place)?;
                if relocations.len() >= MOST_RELOCATIONS {
                    return Err(ElfError::TooManyRelocations(MOST_RELOCATIONS));
                }
                relocations.push(Relocation { address, value: RelocationTarget::Here(u64::from_le_bytes(place)) });
            }
            next = first.wrapping_add(if entry & 1 == 0 { 8 } else { 63 * 8 });
        }
        Ok(())
    }

    fn table(&self, table: u64, size: u64) -> Result<Vec<u8>, ElfError> {
        let (Some(address), Some(size)) = (self.dynamic(table), self.dynamic(size)) else { return Ok(Vec::new()) };
        if size / 24 > MOST_RELOCATIONS as u64 {
            return Err(ElfError::LargeRelocationTable(size));
        }
        let mut bytes = vec![0; usize::try_from(size)?];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }
}

/// Relocation types of the psABI supplements, "Relocation Types".
fn target(machine: Machine, info: u64, addend: u64) -> RelocationTarget {
    let kind = info & 0xffff_ffff;
    let Ok(index) = u32::try_from(info >> 32) else { return RelocationTarget::Other };
    match (machine, kind) {
        // R_X86_64_RELATIVE, R_AARCH64_RELATIVE
        (Machine::X86, 8) | (Machine::Arm, 1027) => RelocationTarget::Here(addend),
        // R_X86_64_64, R_AARCH64_ABS64
        (Machine::X86, 1) | (Machine::Arm, 257) => RelocationTarget::Symbol { index, addend },
        // R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT; R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT
        (Machine::X86, 6 | 7) | (Machine::Arm, 1025 | 1026) => RelocationTarget::Symbol { index, addend: 0 },
        _ => RelocationTarget::Other,
    }
}

/// Adds the part of the file to an error.
fn failed(part: impl Into<String>) -> impl FnOnce(io::Error) -> ElfError {
    move |error| ElfError::Read { part: part.into(), error }
}

fn bytes<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn half(from: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(from, at))
}

fn word(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(from, at))
}

fn long(from: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(from, at))
}
