//! Bounds on what an image may make us do. Every one has its own error text, which names the option that moves it.

/// Bounds of one run. The defaults hold for every image that people really build, with room to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one manifest, index or configuration. Registries refuse manifests over 4 MiB (distribution-spec, "Pushing Manifests").
    pub document: u64,
    /// Layers of one image. Docker's own limit is 127.
    pub layers: usize,
    /// Entries of one layer.
    pub entries: u64,
    /// Bytes of one path or link target. Linux's `PATH_MAX` is 4096.
    pub path: usize,
    /// Bytes of the extended headers (PAX records, GNU long names) of one entry.
    pub extended_header: u64,
    /// Extents of one sparse file.
    pub sparse_extents: usize,
    /// Unpacked bytes of one layer.
    pub unpacked: u64,
    /// Unpacked bytes for each stored byte of a layer; checked once 64 MiB are unpacked. gzip cannot pass 1032.
    pub expansion: u64,
    /// Binary logarithm of the largest zstd window. 27 is what `zstd --long` uses by default.
    pub zstd_window_log: u32,
    /// Bytes of one text file that an extractor reads whole.
    pub text_file: u64,
    /// Bytes of one ELF file that are kept in memory while it goes by.
    pub elf_kept: usize,
    /// Symbolic links followed for one path. Linux follows 40.
    pub symlinks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document: 4 << 20,
            layers: 512,
            entries: 10_000_000,
            path: 4096,
            extended_header: 1 << 20,
            sparse_extents: 1 << 16,
            unpacked: 1 << 40,
            expansion: 1100,
            zstd_window_log: 27,
            text_file: 16 << 20,
            elf_kept: 48 << 20,
            symlinks: 40,
        }
    }
}
