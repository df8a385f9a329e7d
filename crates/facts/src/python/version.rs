//! The version of an interpreter.

use std::fmt;

use model::ImagePath;
use rootfs::RootFs;
use rootfs::loader::elf;

use super::super::pattern;

pattern!(VERSIONED, r"^(?:lib)?python3\.(\d+)(t?)(?:\.so.*)?$");

/// A release series of Python 3. Printed as the name of its directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PythonVersion {
    pub(super) minor: u32,
    /// True for a build without the global interpreter lock.
    pub(super) is_free_threaded: bool,
}

impl PythonVersion {
    /// The version in a name such as `python3.11` or `libpython3.11.so.1.0`.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let captures = VERSIONED.captures(name)?;
        let minor = std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?.parse().ok()?;
        Some(Self { minor, is_free_threaded: captures.get(2).is_some_and(|mark| !mark.is_empty()) })
    }

    /// The version of the interpreter in this file: of its name, of the library that it needs, else of the only standard
    /// library above `programs`.
    pub(super) fn of(rootfs: &RootFs, real: &ImagePath, programs: &ImagePath) -> Option<Self> {
        let needed = || {
            let (_, file) = rootfs.open(real).ok()?;
            elf(&file)?.needed.iter().find_map(|name| Self::named(name.as_bytes()))
        };
        Self::named(real.file_name()).or_else(needed).or_else(|| Self::above(rootfs, programs))
    }

    /// File name of an archive of its standard library.
    pub(super) fn archive(self) -> Vec<u8> {
        format!("python3{}{}.zip", self.minor, self.mark()).into_bytes()
    }

    /// The mark of a free-threaded build in names.
    pub(super) const fn mark(self) -> &'static str {
        if self.is_free_threaded { "t" } else { "" }
    }

    fn above(rootfs: &RootFs, programs: &ImagePath) -> Option<Self> {
        let programs = rootfs.real_directory(programs).unwrap_or_else(|| programs.clone());
        let mut found: Vec<_> = ancestors(&programs)
            .map(|folder| Self::below(rootfs, &folder))
            .find(|versions| !versions.is_empty())
            .unwrap_or_default();
        found.pop().filter(|_| found.is_empty())
    }

    /// The standard libraries of a prefix.
    fn below(rootfs: &RootFs, prefix: &ImagePath) -> Vec<Self> {
        let libraries = [prefix.join(b"lib"), prefix.join(b"lib64")];
        let has_library = |lib: &ImagePath, name: &[u8]| rootfs.open(&lib.join(name).join(b"os.py")).is_ok();
        let mut versions: Vec<_> = libraries
            .iter()
            .flat_map(|lib| rootfs.names(lib).filter(move |name| has_library(lib, name)))
            .filter_map(Self::named)
            .collect();
        versions.sort_unstable();
        versions.dedup();
        versions
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "python3.{}{}", self.minor, self.mark())
    }
}

/// A directory and those above it, without the root, where Python does not search.
pub(super) fn ancestors(folder: &ImagePath) -> impl Iterator<Item = ImagePath> {
    std::iter::successors(Some(folder.clone()), |folder| Some(folder.parent())).take_while(|folder| !folder.is_root())
}
