//! What the dynamic loader reads of an ELF file.

use serde::{Deserialize, Serialize};

use super::Gap;

/// The parts of one ELF file that decide what it loads and what it offers (System V gABI, chapter 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElfInfo {
    /// 32 or 64 bits.
    pub bits: u8,
    /// Byte order.
    pub endian: Endian,
    /// `e_machine`: 62 is x86-64, 183 AArch64.
    pub machine: u16,
    /// `e_type`: 2 an executable, 3 a shared object (or a position-independent executable).
    pub kind: u16,
    /// `PT_INTERP`: the dynamic loader that an executable asks for.
    pub interpreter: Option<String>,
    /// `DT_SONAME`: the name that the library gives itself.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, split at colons.
    pub rpath: Vec<String>,
    /// `DT_RUNPATH`, split at colons.
    pub runpath: Vec<String>,
    /// `DF_1_NODEFLIB`: what it needs is not looked for in the default directories.
    pub no_default_libraries: bool,
    /// Of a dynamic loader of glibc: the default directories that were built into it, in its order, each with a slash at
    /// its end. Empty for every other file.
    pub default_directories: Vec<String>,
    /// Symbol versions that it requires of other libraries (`.gnu.version_r`).
    pub version_needs: Vec<VersionNeed>,
    /// Symbol versions that it gives (`.gnu.version_d`), without the base version.
    pub version_gives: Vec<String>,
    /// Dynamic symbols whose names were asked for (see `scan::elf`), or why they could not be read.
    pub symbols: Result<Vec<DynamicSymbol>, Gap>,
    /// GNU build ID, lower-case hexadecimal.
    pub build_id: Option<String>,
}

impl ElfInfo {
    /// A shared object that asks for nothing and gives nothing.
    pub const fn bare(bits: u8, endian: Endian, machine: u16) -> Self {
        Self {
            bits,
            endian,
            machine,
            kind: 3,
            interpreter: None,
            soname: None,
            needed: Vec::new(),
            rpath: Vec::new(),
            runpath: Vec::new(),
            no_default_libraries: false,
            default_directories: Vec::new(),
            version_needs: Vec::new(),
            version_gives: Vec::new(),
            symbols: Ok(Vec::new()),
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

/// The versions that one library is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VersionNeed {
    /// The file that must give them, by the name of `vn_file`.
    pub file: String,
    /// Names such as `GLIBC_2.34`.
    pub versions: Vec<String>,
    /// Further names, which only weak references ask for (`VER_FLG_WEAK`): the loader lets them be missing.
    pub weak: Vec<String>,
}

/// One entry of `.dynsym`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DynamicSymbol {
    /// The name as linked, mangled where C++ made it.
    pub name: String,
    /// Whether this file defines it; otherwise it imports it.
    pub defined: bool,
    /// Where in the file that which it names begins, if it is there.
    pub offset: Option<u64>,
}
