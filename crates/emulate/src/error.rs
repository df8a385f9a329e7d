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
    /// The call touches more pages than the limit, which is this number.
    #[error("it accesses more than {0} pages of memory")]
    TooManyPages(usize),
    /// The call reads and writes more bytes than the limit, which is this number.
    #[error("it reads and writes more than {0} bytes")]
    TooManyBytes(u64),
    /// An allocation of this many bytes exceeds the limit of one allocation or of all together.
    #[error("it allocates {0} bytes of memory")]
    LargeAllocation(u64),
    /// A read of a block of memory exceeds the limit.
    #[error("it reads a block of {size} bytes at {address:#x}")]
    LargeBlock {
        /// Address of the block.
        address: u64,
        /// Size of the block in bytes.
        size: u64,
    },
    /// A `memset` of this many bytes exceeds the limit.
    #[error("it sets {0} bytes of memory")]
    LargeFill(u64),
    /// A repeated string instruction exceeds the limit.
    #[error("it moves {size} bytes {count} times")]
    LargeMove {
        /// Number of repetitions.
        count: u64,
        /// Bytes per repetition.
        size: usize,
    },
    /// A `std::string` of this many bytes exceeds the limit.
    #[error("it creates a string of {0} bytes")]
    LargeString(u64),
    /// A number in memory is wider than a register.
    #[error("a number is wider than 8 bytes")]
    WideNumber,
    /// The C string at this address is not terminated within the limit.
    #[error("the string at {0:#x} is not terminated")]
    EndlessString(u64),
    /// The end of a range of characters is before its start.
    #[error("a string ends before it begins")]
    NegativeString,
    /// A replaced part of a string extends beyond its end.
    #[error("a string is replaced beyond its end")]
    ReplacedBehindEnd,
    /// The nodes of a `std::map` form a cycle, or exceed the limit.
    #[error("a map is cyclic or too large")]
    EndlessMap,
    /// The returned map's entry count exceeds the limit.
    #[error("the returned map has {0} entries, which is too many")]
    LargeMap(u64),
    /// The tree of the returned map has more nodes than its entry count.
    #[error("the returned value is not a map: it has more nodes than its entry count")]
    MoreThanCounted,
    /// The tree has fewer nodes than the entry count.
    #[error("the returned value is not a map: it has {found} nodes, but an entry count of {counted}")]
    FewerThanCounted {
        /// The map's entry count.
        counted: u64,
        /// Number of nodes of the tree.
        found: usize,
    },
    /// A key or a value of the returned map is not UTF-8.
    #[error("the returned map has a key or value that is not UTF-8")]
    NotText,
    /// Two nodes have the same key.
    #[error("the returned value is not a map: two nodes have the same key")]
    DuplicateKey,
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
