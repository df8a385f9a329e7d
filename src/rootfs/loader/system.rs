//! What one build of glibc's loader has built in, read from the loader that an image holds.

use crate::model::{ElfInfo, ImagePath};

use super::{RootFs, elf};

/// The loader of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoaderSystem {
    /// Default directories in their order, or those of the usual distributions where there is no loader to tell.
    pub(super) directories: Vec<String>,
    /// Whether the directories are this loader's own.
    pub(super) is_known: bool,
    /// Minor version of glibc 2.
    pub(super) glibc: Option<u32>,
}

/// Debian's loader has the multiarch folders first, others `lib64`.
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
    /// The loader at a path, such as `PT_INTERP` names it.
    pub(super) fn read(rootfs: &RootFs, interpreter: &[u8]) -> Self {
        let opened = rootfs.open_raw(interpreter).ok();
        let own = opened.as_ref().and_then(|(_, file)| elf(file)).map(|elf| elf.default_directories.clone());
        let own = own.filter(|directories| !directories.is_empty());
        let is_known = own.is_some();
        let directories = own.unwrap_or_else(|| USUAL.iter().map(|&directory| directory.to_owned()).collect());
        // The C library lies beside it; every release has symbols of its own.
        let beside = opened.and_then(|(path, _)| rootfs.open(&path.parent().join(b"libc.so.6")).ok());
        let glibc = beside.and_then(|(_, file)| minor(elf(&file)?));
        Self { directories, is_known, glibc }
    }

    /// The loader of images for a machine (`e_machine`), where the psABI puts it.
    pub(super) fn usual(rootfs: &RootFs, machine: u16) -> Self {
        let path: &[u8] = if machine == 183 { b"/lib/ld-linux-aarch64.so.1" } else { b"/lib64/ld-linux-x86-64.so.2" };
        Self::read(rootfs, path)
    }

    /// `$LIB`: the first default directory without its slashes (glibc's `slibdir`).
    pub(super) fn lib(&self) -> Option<&[u8]> {
        let first = self.directories.first().filter(|_| self.is_known)?;
        Some(first.trim_matches('/').as_bytes())
    }

    /// Whether libraries are taken from `glibc-hwcaps`: from 2.33 on.
    pub(super) fn has_levels(&self) -> bool {
        self.glibc.is_none_or(|minor| minor >= 33)
    }

    /// Whether libraries are taken from folders named after features: before 2.37.
    pub(super) fn has_features(&self) -> bool {
        self.glibc.is_none_or(|minor| minor < 37)
    }
}

fn minor(libc: &ElfInfo) -> Option<u32> {
    let versions = libc.version_gives.iter().filter_map(|name| name.strip_prefix("GLIBC_2."));
    versions.filter_map(|rest| rest.split('.').next()?.parse().ok()).max()
}

/// Whether an interpreter is musl's loader, whose rules are others.
pub(super) fn is_musl(interpreter: &str) -> bool {
    ImagePath::from(interpreter).file_name().starts_with(b"ld-musl")
}
