//! Resource limits for the processing of untrusted images. Each error names the option that raises the limit.

use std::fmt;
use std::path::PathBuf;

use super::suggestion_or_all;

/// Declares the limits: name, type, default, meaning.
macro_rules! limits {
    ($($(#[doc = $about:literal])+ $field:ident: $type:ty = $default:expr;)*) => {
        /// Resource limits of one run. The defaults leave headroom for every real image.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $field: $type,)*
            /// Folder for temporary files; the system's by default.
            pub temporary: Option<PathBuf>,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* temporary: None }
            }
        }

        impl Limits {
            /// Names of all limits, for [`Self::set`].
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Sets a limit by name.
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
    /// Depth of nested image indexes. Builders create at most two.
    nesting: usize = 4;
    /// Bytes of the index of an image layout, and of all nested image indexes of one image. Each counts as often as another one names it: a few can name each
    /// other millions of times. An entry of an index takes
    /// some hundred bytes.
    indexes: u64 = 16 << 20;
    /// Images of one image index. A mirror may keep all of its images in one layout.
    images: usize = 100_000;
    /// Layers per image. Docker's limit is 127 layers.
    layers: usize = 512;
    /// Entries per layer.
    entries: u64 = 10_000_000;
    /// Bytes of one path or link target. Linux's `PATH_MAX` is 4096.
    path: usize = 4096;
    /// Bytes of all paths and link targets of a layer beyond 256 for each entry. Linux's own limit allows
    /// 4096; those of three layers measured of torch 2.9.0's image have 75 on average.
    paths: u64 = 16 << 20;
    /// Folders per layer that only the paths of their files name. Builders write each folder before its content, and three
    /// layers measured of torch 2.9.0's image have none.
    implied_folders: usize = 200_000;
    /// Bytes of the extended headers (PAX records, GNU long names) of one entry.
    extended_header: u64 = 1 << 20;
    /// Extents per sparse file.
    sparse_extents: usize = 1 << 16;
    /// Unpacked bytes per layer.
    unpacked: u64 = 1 << 40;
    /// Unpacked bytes per stored byte of a layer, enforced after 64 MiB. gzip cannot exceed 1032.
    expansion: u64 = 1100;
    /// Bytes of one list of images or layers in the store of Podman or Buildah.
    store_list: u64 = 64 << 20;
    /// Binary logarithm of the largest zstd window. 27 is the default of `zstd --long`.
    zstd_window_log: u32 = 27;
    /// Bytes of one text file.
    text_file: u64 = 16 << 20;
    /// Bytes of one file of settings or code, such as `/etc/passwd` or a `.pth` file. What is made of them takes up to 70 times as much
    /// memory. torch/__init__.py has 0.1 MB.
    settings_file: u64 = 1 << 20;
    /// Bytes of the text files that are read of one image, and of the names that its libraries list. An image with torch 2.9.0
    /// has 3 MB of texts.
    texts: u64 = 96 << 20;
    /// Bytes of one ELF file that are buffered in memory while it is streamed. What exceeds them is spooled.
    elf_kept: usize = 96 << 20;
    /// Bytes of the names of dynamic symbols in one ELF file, each as often as a symbol has it. libcusparseLt.so.0
    /// has 26 MB of them, libtorch_cuda.so 7 MB.
    elf_names: u64 = 96 << 20;
    /// Bytes of the names of libraries, search paths and versions in one ELF file, each as often as it is named.
    /// libtorch_cuda.so has 0.9 KB without versions.
    elf_strings: u64 = 1 << 20;
    /// Bytes of the notes of one ELF file up to its build ID. libcufile.so has 0.12 MB of
    /// notes, libtorch_cuda.so 3 KB.
    elf_notes: u64 = 4 << 20;
    /// Requested names and searched paths of the dynamic loader in one process. `import torch` needs several thousand.
    loader_steps: usize = 100_000;
    /// Lines, statements and lookups of the code that one Python runs before it imports torch, such as `.pth` files, which have
    /// some ten lines in real images.
    python_steps: usize = 100_000;
    /// Size of a library that is spooled to a temporary file for random access, in bytes. libtorch_cpu.so has 0.4 to 0.6
    /// GB, libtensorflow_cc.so 1.1 GB.
    spool: u64 = 4 << 30;
    /// Bytes of one answer of an engine that is not a stream. An image takes about 1 KB in a list of all images.
    engine_answer: u64 = 8 << 20;
    /// Symlinks followed per path. Linux follows 40.
    symlinks: usize = 40;
}

/// An invalid setting of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// An unknown limit.
    #[error("unknown limit '{0}'; {valid}", valid = suggestion_or_all(.0, Limits::NAMES.iter().copied()))]
    Name(String),
    /// A value that is not an integer of the limit's type.
    #[error("invalid value '{1}' for the limit {0}: expected a whole number")]
    Value(String, String),
}

/// An exceeded limit. The message has one form for all limits: the amount found, the limit, and the option that raises
/// it. As text it has one line, for facts that are unknown; [`OverLimit::advice`] is the error of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// The object that exceeds the limit, with its amount.
    pub what: String,
    /// Name of the limit.
    pub limit: &'static str,
    /// Value of the limit.
    pub value: u64,
}

impl OverLimit {
    /// Creates the error that `what` exceeds the limit of this name.
    pub fn new(what: impl Into<String>, limit: &'static str, value: u64) -> Self {
        debug_assert!(Limits::NAMES.contains(&limit), "unknown limit {limit}");
        Self { what: what.into(), limit, value }
    }

    /// The error that ends a run: the amount, the limit, and the next command below.
    pub fn advice(&self) -> String {
        let Self { what, limit, value } = self;
        format!("{what}, the limit is {value}\n  help: raise it with --limit {limit}=N")
    }
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, the limit is {} (raise it with --limit {}=N)", self.what, self.value, self.limit)
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
        let error = |name: &str| Limits::default().set(name, "5").unwrap_err().to_string();
        assert_eq!(error("entires"), "unknown limit 'entires'; did you mean entries?");
        assert!(error("").starts_with("unknown limit ''; available: document, nesting"));
        assert_eq!(
            limits.set("path", "-1").unwrap_err().to_string(),
            "invalid value '-1' for the limit path: expected a whole number"
        );
    }
}
