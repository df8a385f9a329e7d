//! Types that all stages share, and how files are opened and read within bounds.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod bounded;
mod bounds;
mod config;
mod confined;
mod digest;
pub mod document;
mod elf;
mod entry;
mod environment;
mod fact;
mod found;
mod gpu;
mod io_text;
mod limits;
mod linkage;
mod owner;
mod parser_message;
mod path;
mod platform;
mod progress;
mod python;
mod regular_file;
mod sandbox_state;
mod secret;
mod severity;
mod size;
mod spelling;
mod summary;
mod table;
mod text;
mod version;
mod write_target;

pub use bounded::{bytes_within, line_within, text_within};
pub use bounds::{BoundsError, index, part, part_mut};
pub use config::{ImageConfig, StartChoice, StartCommand, StartUser, UnknownConfig};
pub use confined::set_confined;
pub use digest::{BlobRef, Digest, DigestError, Hasher, hex};
pub use elf::{DynamicSymbol, ElfInfo, Endian, VersionNeed};
pub use entry::{Entry, EntryKind, FileOwner};
pub use environment::Environment;
pub use fact::{Fact, Gap, Site, Value};
pub use found::{BuildOptions, CompatNote, Found, NcclStrings};
pub use gpu::{Arch, GpuCode, PtxVersion, Variant};
pub use io_text::{cause, without_number};
pub use limits::{LimitError, Limits, OverLimit};
pub use linkage::{
    RequiredVersion, SymbolExports, SymbolImport, SymbolImports, SymbolKeys, SymbolLinks, SymbolVersion,
};
pub use owner::Owner;
pub use parser_message::{in_words, without_content};
pub use path::ImagePath;
pub use platform::Platform;
pub use progress::{Meter, NoProgress, Progress};
pub use python::{ImportCondition, PythonImport, PythonImports, PythonLines, fixed_condition};
pub use regular_file::{keep_within_folder, open_configured, open_named, open_regular, was_opened};
pub use sandbox_state::{SandboxExtent, SandboxState};
pub use secret::{SECRET, conceal, conceal_line, conceal_words, concealed, is_secret_name, shown_value};
pub use severity::{FailOn, Severity};
pub use size::{counted, size};
pub use spelling::{distance_within, nearest, suggestion, suggestion_or_all};
pub use summary::{ImageSummary, LayerSummary};
pub use table::{ReplaceableTable, Table};
pub use text::{command_guard, escape, help_line, is_among, printable, printable_lines, printable_message, shell_word};
pub use version::Version;
pub use write_target::WriteTarget;
