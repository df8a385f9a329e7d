//! What glibc's dynamic loader would do in the merged image (ld.so(8); glibc, `elf/rtld.c`, `elf/dl-load.c`, `elf/dl-deps.c`).
//!
//! A [`Loader`] is what an image and an environment fix for every process; a [`Process`] is one of them, with the objects that
//! it has mapped. Where the answer depends on the processor, there is a [`Process`] for each [`Level`].

mod cache;
mod level;
mod process;
mod search;
mod system;
mod tokens;
mod trace;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::model::{ElfInfo, Found, Gap, ImagePath};

use super::{NoFile, NodeId, RootFile, RootFs};

use cache::{CacheAnswer, LdSoCache};

pub use level::CpuLevel;
pub use process::{LoadedObject, Process, Requester, Stop};
pub use trace::{LoaderSearch, Route, SearchEnd, SearchStep};

/// What the environment of a process tells its loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoaderSettings {
    /// `LD_LIBRARY_PATH`.
    pub library_path: Option<String>,
    /// `LD_PRELOAD`.
    pub preload: Option<String>,
    /// What an empty element of a search path is; `None` where nobody knows.
    pub working_directory: Option<ImagePath>,
}

/// The folder, in a directory of libraries, of those for certain processors (glibc since 2.33).
const HWCAPS: &str = "glibc-hwcaps";

/// Folders that are remembered, of paths of as many bytes at most: search paths of hostile files name any number, of any length.
const REMEMBERED: usize = 4096;

/// Folders by their paths as they were spelled.
type Folders = BTreeMap<Box<[u8]>, Result<NodeId, NoFile>>;

/// The loader of one image with one environment.
#[derive(Debug)]
pub struct Loader<'a> {
    rootfs: &'a RootFs,
    settings: LoaderSettings,
    cache: Result<LdSoCache<'a>, Gap>,
    /// `/etc/ld.so.preload`.
    preload_file: Result<&'a [u8], Gap>,
    /// Whether the image has any [`HWCAPS`]. Few have, and the loader would ask in every directory, for every library.
    has_hwcaps: bool,
    /// Those that were looked in: a few, for every library again. At most [`REMEMBERED`].
    folders: RefCell<Folders>,
}

/// The path that the text of an `ld.so.cache` has for a soname on x86-64, or what is wrong with it. Here for fuzzing: otherwise
/// the cache is the image's own.
#[doc(hidden)]
pub fn look_up(cache: &[u8], soname: &[u8]) -> Result<Option<Vec<u8>>, String> {
    const X86_64: u16 = 62;
    Ok(match LdSoCache::parse(cache)?.find(soname, X86_64, CpuLevel::V3) {
        CacheAnswer::Path { path, .. } | CacheAnswer::Bits(path) => Some(path.to_vec()),
        CacheAnswer::Nothing => None,
    })
}

/// A library that would be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// Its path after symbolic links.
    pub path: ImagePath,
    /// Why this one.
    pub route: Route,
}

impl<'a> Loader<'a> {
    /// The loader of an image whose environment tells it this.
    pub fn new(rootfs: &'a RootFs, settings: LoaderSettings) -> Self {
        let cache = text(rootfs, "etc/ld.so.cache").and_then(|bytes| match bytes {
            [] => Ok(LdSoCache::default()),
            bytes => LdSoCache::parse(bytes).map_err(|why| Gap::new(format!("/etc/ld.so.cache cannot be read: {why}"))),
        });
        let preload_file = text(rootfs, "etc/ld.so.preload");
        let has_hwcaps = rootfs.has_name(HWCAPS.as_bytes());
        Self { rootfs, settings, cache, preload_file, has_hwcaps, folders: RefCell::default() }
    }

    /// Whether a path's folder is not there, or has nothing of the name at the path's end, not even a link: so it is nearly
    /// everywhere that a library is looked for. If there is something, the path may still lead nowhere.
    fn lacks(&self, path: &[u8]) -> bool {
        let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (folder, name) = path.split_at(end);
        if matches!(name, b"" | b"." | b"..") {
            return false;
        }
        let mut folders = self.folders.borrow_mut();
        let known = folders.get(folder).copied();
        let folder = known.unwrap_or_else(|| {
            let id = self.rootfs.follow(folder).map(|(_, id)| id);
            if folders.len() < REMEMBERED && folder.len() <= REMEMBERED {
                folders.insert(folder.into(), id);
            }
            id
        });
        match folder {
            Ok(folder) => self.rootfs.child(folder, name).is_none(),
            Err(why) => why == NoFile::Missing,
        }
    }

    /// The library that `soname` binds to when `object`, loaded from `origin`, asks for it: `None` when there is none.
    ///
    /// The object is looked at by itself, as if it were a program: what its own users' `DT_RPATH` adds, and what its process
    /// has already mapped, is for a [`Process`] to say.
    pub fn find(self: &Rc<Self>, soname: &str, origin: &ImagePath, object: &ElfInfo) -> Result<Option<Bound>, Gap> {
        let found = |level| Process::around(self, level, origin, object).bound(soname, 0);
        let (low, high) = (found(CpuLevel::V3)?, found(CpuLevel::V4)?);
        if low != high {
            return Err(Gap::new(format!("{soname}: which file it is depends on the processor"))
                .settled_by("libraries of glibc-hwcaps are for processors of some levels only"));
        }
        Ok(low)
    }
}

/// The text of a file at a fixed place; empty where there is none.
fn text<'a>(rootfs: &'a RootFs, path: &str) -> Result<&'a [u8], Gap> {
    let Ok((path, file)) = rootfs.open(&ImagePath::from(path)) else {
        return Ok(&[]);
    };
    match file.found {
        [Ok(Found::Text(bytes)), ..] => Ok(bytes),
        [Err(gap), ..] => Err(gap.clone()),
        _ if file.size == 0 => Ok(&[]),
        _ => Err(Gap::new(format!("{path}: its content was not read"))),
    }
}

/// What the ELF extractor found in a file.
pub fn elf<'a>(file: &RootFile<'a>) -> Option<&'a ElfInfo> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Elf(info)) => Some(&**info),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
