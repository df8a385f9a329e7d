//! Errors of the file, and of the emulated code with the returned map.

use std::io;
use std::num::TryFromIntError;

/// An ELF file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// Reading a part of the file failed, or the file ends before it.
    #[error("{part}: {error}")]
    Read {
        /// The part of the file.
        part: String,
        /// The error of the reader.
        error: io::Error,
    },
    /// The file is not a little-endian 64-bit ELF file.
    #[error("it is not a little-endian 64-bit ELF file")]
    NotElf64,
    /// The code is for a machine other than x86-64 and AArch64: the value of `e_machine`.
    #[error("code of machine {0} is not supported")]
    UnknownMachine(u16),
    /// An address does not fit into 64 bits.
    #[error("an address overflows")]
    AddressOverflow,
    /// An offset in the file does not fit into 64 bits.
    #[error("an offset overflows")]
    OffsetOverflow,
    /// The file has more relocations than the limit, which is this number.
    #[error("more than {0} relocations")]
    TooManyRelocations(usize),
    /// A relocation table exceeds the limit: its size in bytes.
    #[error("a relocation table of {0} bytes")]
    LargeRelocationTable(u64),
    /// A relocation refers to a symbol, but there is no `DT_SYMTAB`.
    #[error("there is no dynamic symbol table")]
    NoDynamicSymbols,
    /// A symbol has a name, but there is no `DT_STRTAB`.
    #[error("there is no dynamic string table")]
    NoDynamicNames,
    /// A symbol's name is not terminated.
    #[error("a symbol's name is not terminated")]
    EndlessName,
    /// The symbol is an indirect function (`STT_GNU_IFUNC`): code that chooses the function when the process starts.
    #[error("the function is indirect: the process chooses it at its start")]
    IndirectFunction,
    /// A defect of this crate: it accessed a buffer out of bounds.
    #[error("the emulator accessed a buffer out of bounds")]
    OutOfBounds,
}

/// The emulation of a call stopped early.
#[derive(Debug, thiserror::Error)]
#[error("at {address:#x}: {cause}")]
pub struct EmulationError {
    /// Address of the instruction at which the emulation stopped; for an imported function, the address of the call.
    pub address: u64,
    /// The cause.
    pub cause: ExecutionError,
}

/// An instruction, an imported function or an access to memory that cannot be emulated, or a returned value that is not
/// the map that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The emulator does not implement the instruction: its mnemonic (x86-64) or its encoding (AArch64).
    #[error("the instruction {0} is not supported")]
    UnknownInstruction(String),
    /// The bytes are not an instruction.
    #[error("the bytes are not an instruction")]
    NoInstruction,
    /// The emulator does not implement the imported function with this mangled name.
    #[error("it calls {0}, which is not implemented")]
    UnknownImport(String),
    /// The code uses an imported variable with this name, whose value exists only in the process.
    #[error("it uses {0}, whose value is unknown")]
    UnknownVariable(String),
    /// The call takes more instructions than the limit, which is this number.
    #[error("it does not return within {0} instructions")]
    TooManySteps(u32),
    /// Nothing is mapped at this address.
    #[error("it accesses {0:#x}, which is not mapped")]
    Unmapped(u64),
    /// A number in memory is wider than a register.
    #[error("a number is wider than 8 bytes")]
    WideNumber,
    /// The call exceeds a limit on its memory, or on the size of one value: what it does.
    #[error("{0}")]
    Excess(String),
    /// The returned value is not a map of texts: the reason.
    #[error("{0}")]
    NotMap(String),
    /// The end of a range of characters is before its start.
    #[error("a string ends before it begins")]
    NegativeString,
    /// A replaced part of a string extends beyond its end.
    #[error("a string is replaced beyond its end")]
    ReplacedBehindEnd,
    /// The file cannot be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A defect of this crate: it accessed a buffer out of bounds.
    #[error("the emulator accessed a buffer out of bounds")]
    OutOfBounds,
}

impl From<TryFromIntError> for ElfError {
    fn from(_: TryFromIntError) -> Self {
        Self::OutOfBounds
    }
}

impl From<TryFromIntError> for ExecutionError {
    fn from(_: TryFromIntError) -> Self {
        Self::OutOfBounds
    }
}
