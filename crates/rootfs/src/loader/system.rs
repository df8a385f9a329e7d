//! Built-in settings of a glibc loader, read from the loader in the image.

use model::{ElfInfo, ImagePath};

use super::{RootFs, elf};

/// The loader of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoaderSystem {
    /// Default directories in order; those of common distributions if the image has no loader.
    pub(super) directories: Vec<String>,
    /// True when the directories come from this loader.
    pub(super) is_known: bool,
    /// Minor version of glibc 2.
    pub(super) glibc: Option<u32>,
}

/// Debian's loader has the multiarch directories first, others have `lib64`.
const USUAL: &[&str] = &[
    "/lib/x86_64-linux-gnu/",
    "/usr/lib/x86_64-linux-gnu/",
    "/lib/aarch64-linux-gnu/",
    "/usr/lib/aarch64-linux-gnu/",
    "/lib64/",
    "/usr/lib64/",
    "/lib/",
    "/usr/lib/",
];

impl LoaderSystem {
    /// Reads the loader at a path, such as that of `PT_INTERP`.
    pub(super) fn read(rootfs: &RootFs, interpreter: &[u8]) -> Self {
        let opened = rootfs.open_raw(interpreter).ok();
        let own = opened.as_ref().and_then(|(_, file)| elf(file)).map(|elf| elf.default_directories.clone());
        let own = own.filter(|directories| !directories.is_empty());
        let is_known = own.is_some();
        let directories = own.unwrap_or_else(|| USUAL.iter().map(|&directory| directory.to_owned()).collect());
        // The C library is next to the loader; each release defines its own symbol version.
        let beside = opened.and_then(|(path, _)| rootfs.open(&path.parent().join(b"libc.so.6")).ok());
        let glibc = beside.and_then(|(_, file)| minor(elf(&file)?));
        Self { directories, is_known, glibc }
    }

    /// The loader for a machine (`e_machine`), at the path that the psABI defines.
    pub(super) fn usual(rootfs: &RootFs, machine: u16) -> Self {
        let path: &[u8] = if machine == 183 { b"/lib/ld-linux-aarch64.so.1" } else { b"/lib64/ld-linux-x86-64.so.2" };
        Self::read(rootfs, path)
    }

    /// `$LIB`: the first default directory without its slashes (glibc's `slibdir`).
    pub(super) fn lib(&self) -> Option<&[u8]> {
        let first = self.directories.first().filter(|_| self.is_known)?;
        Some(first.trim_matches('/').as_bytes())
    }

    /// Returns true when the loader uses `glibc-hwcaps`: from 2.33 on.
    pub(super) fn has_levels(&self) -> bool {
        self.glibc.is_none_or(|minor| minor >= 33)
    }

    /// Returns true when the loader sorts objects by a depth-first search: from 2.35 on.
    pub(super) fn sorts_depth_first(&self) -> bool {
        self.glibc.is_none_or(|minor| minor >= 35)
    }

    /// Returns true when the loader uses directories named after CPU features: before 2.37.
    pub(super) fn has_features(&self) -> bool {
        self.glibc.is_none_or(|minor| minor < 37)
    }
}

fn minor(libc: &ElfInfo) -> Option<u32> {
    let versions = libc.version_gives.iter().filter_map(|name| name.strip_prefix("GLIBC_2."));
    versions.filter_map(|rest| rest.split('.').next()?.parse().ok()).max()
}

/// Returns true for musl's loader, which has different rules.
pub fn is_musl(interpreter: &str) -> bool {
    ImagePath::from(interpreter).file_name().starts_with(b"ld-musl")
}
