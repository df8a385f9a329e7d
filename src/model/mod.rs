//! Words that every stage shares. Nothing here does any I/O.

mod config;
mod digest;
mod elf;
mod entry;
mod fact;
mod found;
mod gpu;
mod host;
mod limits;
mod owner;
mod path;
mod platform;
mod progress;
mod severity;
mod summary;
mod text;
mod version;

pub use config::ImageConfig;
pub(crate) use digest::hex;
pub use digest::{Digest, DigestError, Hasher};
pub use elf::{DynamicSymbol, ElfInfo, Endian, VersionNeed};
pub use entry::{Entry, Kind};
pub use fact::{Fact, Gap, Site, Value};
pub use found::{BuildOptions, CompatNote, Found, NcclStrings};
pub use gpu::{Arch, ArchError, GpuCode, PtxVersion, Variant};
pub use host::{Class, Fabric, Gpu, Host, HostError, Nic};
pub use limits::{LimitError, Limits, OverLimit};
pub use owner::Owner;
pub use path::ImagePath;
pub use platform::{Platform, PlatformError};
pub use progress::{Meter, NoProgress, Progress};
pub use severity::Severity;
pub use summary::{ImageSummary, LayerSummary};
pub use text::{escape, printable};
pub use version::Version;
