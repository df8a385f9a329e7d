//! Bounds on what an image may make us do. Every one has its own error text, which names the option that moves it.

use std::fmt;
use std::path::PathBuf;

/// Declares the limits: name, type, default, meaning.
macro_rules! limits {
    ($($(#[doc = $about:literal])+ $field:ident: $type:ty = $default:expr;)*) => {
        /// Bounds of one run. The defaults hold for every image that people really build, with room to spare.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $field: $type,)*
            /// Folder for temporary files; the system's where none is given.
            pub temporary: Option<PathBuf>,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* temporary: None }
            }
        }

        impl Limits {
            /// Names of all limits, as [`Self::set`] takes them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Moves one limit by its name.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
                match name {
                    $(stringify!($field) => {
                        self.$field = value.parse().map_err(|_number| LimitError::Value(name.to_owned(), value.to_owned()))?;
                    })*
                    _ => return Err(LimitError::Name(name.to_owned())),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Bytes of one manifest, index or configuration. Registries refuse manifests over 4 MiB (distribution-spec,
    /// "Pushing Manifests").
    document: u64 = 4 << 20;
    /// Indexes inside indexes. Builders make two.
    nesting: usize = 4;
    /// Layers of one image, and images of one index. Docker's own limit of layers is 127.
    layers: usize = 512;
    /// Entries of one layer.
    entries: u64 = 10_000_000;
    /// Bytes of one path or link target. Linux's `PATH_MAX` is 4096.
    path: usize = 4096;
    /// Bytes of the extended headers (PAX records, GNU long names) of one entry.
    extended_header: u64 = 1 << 20;
    /// Extents of one sparse file.
    sparse_extents: usize = 1 << 16;
    /// Unpacked bytes of one layer.
    unpacked: u64 = 1 << 40;
    /// Unpacked bytes for each stored byte of a layer; counted once 64 MiB are unpacked. gzip cannot pass 1032.
    expansion: u64 = 1100;
    /// Bytes of the table of contents of a layer that can be read in part; over it, the layer is read whole.
    toc: u64 = 256 << 20;
    /// Binary logarithm of the largest zstd window. 27 is what `zstd --long` uses by default.
    zstd_window_log: u32 = 27;
    /// Bytes of one text file that an extractor reads whole.
    text_file: u64 = 16 << 20;
    /// Bytes of one ELF file that are kept in memory while it goes by.
    elf_kept: usize = 96 << 20;
    /// Names that are asked for and places that the dynamic loader looks at for them, in one process. `import torch` takes
    /// some thousands.
    loader_steps: usize = 100_000;
    /// Bytes of one library that are written to a temporary file, to be read in any order. libtorch_cpu.so has 0.4 to 0.6 GB.
    spool: u64 = 4 << 30;
    /// Symbolic links followed for one path. Linux follows 40.
    symlinks: usize = 40;
}

/// A limit that cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no such limit.
    #[error("there is no limit '{0}'; there are {names}", names = Limits::NAMES.join(", "))]
    Name(String),
    /// The value is no whole number that fits.
    #[error("the limit {0} takes a whole number, not '{1}'")]
    Value(String, String),
}

/// A limit was passed. One text for all: what there is, how much is allowed, how to allow more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverLimit {
    /// What there is too much of, with how much there is.
    pub what: String,
    /// The name of the limit.
    pub limit: &'static str,
    /// Its value.
    pub value: u64,
}

impl OverLimit {
    /// `what` passes the limit of this name.
    pub fn new(what: impl Into<String>, limit: &'static str, value: u64) -> Self {
        debug_assert!(Limits::NAMES.contains(&limit), "{limit} is no limit");
        Self { what: what.into(), limit, value }
    }
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, the limit is {} (--limit {}=N moves it)", self.what, self.value, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_by_name() {
        let mut limits = Limits::default();
        limits.set("entries", "5").unwrap();
        assert_eq!(limits.entries, 5);
        assert!(limits.set("entires", "5").unwrap_err().to_string().contains("there are document, nesting"));
        assert_eq!(limits.set("path", "-1").unwrap_err().to_string(), "the limit path takes a whole number, not '-1'");
    }
}
