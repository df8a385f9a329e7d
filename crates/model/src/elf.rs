//! The parts of an ELF file that the dynamic loader reads.

use serde::{Deserialize, Serialize};

use super::{Gap, SymbolLinks};

/// The parts of one ELF file that determine what it loads and what it provides (System V gABI, chapter 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElfInfo {
    /// Class: 32 or 64 bits.
    pub bits: u8,
    /// Byte order.
    pub endian: Endian,
    /// `e_machine`: 62 is x86-64, 183 AArch64.
    pub machine: u16,
    /// `e_type`: 2 is an executable, 3 a shared object or a position-independent executable.
    pub kind: u16,
    /// `PT_INTERP`: the dynamic loader of an executable.
    pub interpreter: Option<String>,
    /// Why glibc's loader does not map the file as a library, by its headers alone; `None` if it does.
    pub refusal: Option<String>,
    /// `DT_SONAME`: the soname of a library.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, split at colons.
    pub rpath: Vec<String>,
    /// `DT_RUNPATH`, split at colons.
    pub runpath: Vec<String>,
    /// `DF_1_NODEFLIB`: dependencies are not searched for in the default directories.
    pub no_default_libraries: bool,
    /// Default directories built into a dynamic loader of glibc, in search order, each with a trailing slash. Empty for
    /// any other file.
    pub default_directories: Vec<String>,
    /// Pattern of the paths of its providers, with `%s` for their names, if the file is libibverbs.
    pub provider_pattern: Option<String>,
    /// Folder whose files name its providers, if the file is libibverbs.
    pub provider_config: Option<String>,
    /// Symbol versions that the file requires (`.gnu.version_r`).
    pub version_needs: Vec<VersionNeed>,
    /// Symbol versions that the file defines (`.gnu.version_d`), without the base version.
    pub version_gives: Vec<String>,
    /// Dynamic symbols with a requested name (see `scan::elf`), or the reason why they could not be read.
    pub symbols: Result<Vec<DynamicSymbol>, Gap>,
    /// What the loader binds, or the reason why the symbols could not be read.
    pub links: Result<SymbolLinks, Gap>,
    /// GNU build ID, lower-case hexadecimal.
    pub build_id: Option<String>,
}

impl ElfInfo {
    /// Creates a shared object without dependencies and symbols.
    pub const fn bare(bits: u8, endian: Endian, machine: u16) -> Self {
        Self {
            bits,
            endian,
            machine,
            kind: 3,
            interpreter: None,
            refusal: None,
            soname: None,
            needed: Vec::new(),
            rpath: Vec::new(),
            runpath: Vec::new(),
            no_default_libraries: false,
            default_directories: Vec::new(),
            provider_pattern: None,
            provider_config: None,
            version_needs: Vec::new(),
            version_gives: Vec::new(),
            symbols: Ok(Vec::new()),
            links: Ok(SymbolLinks::none()),
            build_id: None,
        }
    }
}

/// Byte order of an ELF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// Symbol versions required from one library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionNeed {
    /// Name of the library that must define them (`vn_file`).
    pub file: String,
    /// Required versions, such as `GLIBC_2.34`.
    pub versions: Vec<String>,
    /// Versions with weak references only (`VER_FLG_WEAK`): the loader accepts a library without them.
    pub weak: Vec<String>,
}

/// One entry of `.dynsym`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicSymbol {
    /// Linker name, mangled for C++ symbols.
    pub name: String,
    /// True if the file defines the symbol; otherwise the file imports it.
    pub defined: bool,
    /// File offset of the symbol's content, if the file contains it.
    pub offset: Option<u64>,
}
