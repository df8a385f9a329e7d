//! Types that all stages share. Nothing here performs I/O.

mod ambiguity;
mod blob;
mod bounds;
mod config;
mod digest;
mod elf;
mod entry;
mod environment;
mod fact;
mod found;
mod gpu;
mod host;
mod io_text;
mod limits;
mod linkage;
mod owner;
mod path;
mod platform;
mod progress;
mod severity;
mod size;
mod spelling;
mod summary;
mod text;
mod version;

pub use ambiguity::{Ambiguities, Ambiguity, AmbiguousForm};
pub use blob::BlobRef;
pub use bounds::BoundsError;
pub(crate) use bounds::{index, part, part_mut};
pub use config::{ImageConfig, StartChoice, UnknownConfig};
pub(crate) use digest::hex;
pub use digest::{Digest, DigestError, Hasher};
pub use elf::{DynamicSymbol, ElfInfo, Endian, VersionNeed};
pub use entry::{Entry, EntryKind, FileOwner};
pub use environment::Environment;
pub use fact::{Fact, Gap, Site, Value};
pub use found::{BuildOptions, CompatNote, Found, NcclStrings};
pub use gpu::{Arch, ArchError, GpuCode, PtxVersion, Variant};
pub use host::{Class, Fabric, Gpu, Host, Nic};
pub use io_text::cause;
pub(crate) use io_text::without_number;
pub use limits::{LimitError, Limits, OverLimit};
pub use linkage::{
    RequiredVersion, SymbolExports, SymbolImport, SymbolImports, SymbolKeys, SymbolLinks, SymbolVersion,
};
pub use owner::Owner;
pub use path::ImagePath;
pub use platform::{Platform, PlatformError};
pub use progress::{Meter, NoProgress, Progress};
pub use severity::{FailOn, Severity};
pub(crate) use size::size;
pub(crate) use spelling::{distance_within, nearest, suggestion, suggestion_or_all};
pub use summary::{ImageSummary, LayerSummary};
pub(crate) use text::help_line;
pub use text::{escape, printable};
pub use version::Version;
