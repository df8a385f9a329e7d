//! Simulates glibc's dynamic loader in the merged image (ld.so(8); glibc, `elf/rtld.c`, `elf/dl-load.c`,
//! `elf/dl-deps.c`).
//!
//! A [`Loader`] has what an image and an environment fix for every process; a [`Process`] is one of them, with its
//! mapped objects. If the result depends on the processor, there is one [`Process`] for each [`CpuLevel`].

mod binding;
mod cache;
mod configuration;
mod driver;
mod order;
mod process;
mod search;
mod settings;
mod system;
mod tokens;
mod trace;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::{ElfInfo, Found, Gap, ImagePath};

use super::{NoFile, NodeId, RootFile, RootFs};

use cache::{CacheAnswer, LdSoCache};

pub use configuration::{ConfiguredDirectory, configured_directories};
pub use process::{LoadedObject, Process, Requester, Stop};
pub use settings::{CpuLevel, DlopenMode, LoaderSettings};
pub use system::is_musl;
pub use trace::{LoaderSearch, Route, SearchEnd, SearchStep};

/// The subdirectory of a library directory with libraries for certain processors (glibc since 2.33).
const HWCAPS: &str = "glibc-hwcaps";

/// Maximum number of cached directories, and of bytes in the path of each: search paths of hostile files can have any
/// number and length.
const REMEMBERED: usize = 4096;

/// Directories by path, as spelled.
type Folders = BTreeMap<Box<[u8]>, Result<NodeId, NoFile>>;

/// The loader of one image with one environment.
#[derive(Debug)]
pub struct Loader<'a> {
    rootfs: &'a RootFs,
    settings: LoaderSettings,
    /// The directories of [`LoaderSettings::library_path`].
    library_path: Vec<String>,
    cache: Result<LdSoCache<'a>, Gap>,
    /// The directories that ldconfig searches as the container starts.
    configured: Result<Vec<ConfiguredDirectory>, Gap>,
    /// `/etc/ld.so.preload`.
    preload_file: Result<&'a [u8], Gap>,
    /// True when the image has any [`HWCAPS`] directory. Few images do, and the loader would check every directory for
    /// every library.
    has_hwcaps: bool,
    /// Directories looked up so far: few, but used for every library. At most [`REMEMBERED`].
    folders: RefCell<Folders>,
}

/// The path that an `ld.so.cache` has for a soname on x86-64, or why the cache is invalid. Public only for fuzzing;
/// otherwise the cache comes from the image.
#[doc(hidden)]
pub fn look_up(cache: &[u8], soname: &[u8]) -> Result<Option<Vec<u8>>, String> {
    const X86_64: u16 = 62;
    Ok(match LdSoCache::parse(cache)?.find(soname, X86_64, CpuLevel::V3) {
        CacheAnswer::Path { path, .. } | CacheAnswer::Bits(path) => Some(path.to_vec()),
        CacheAnswer::Nothing => None,
    })
}

/// The library that a name is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its path after symlinks.
    pub path: ImagePath,
    /// The rule that selected it.
    pub route: Route,
}

impl<'a> Loader<'a> {
    /// Creates the loader of an image with these settings.
    pub fn new(rootfs: &'a RootFs, settings: LoaderSettings) -> Self {
        let cache = text(rootfs, "etc/ld.so.cache").and_then(|bytes| match bytes {
            [] => Ok(LdSoCache::default()),
            bytes => LdSoCache::parse(bytes).map_err(|why| Gap::new(format!("/etc/ld.so.cache cannot be read: {why}"))),
        });
        let configured = if settings.runs_ldconfig { configured_directories(rootfs) } else { Ok(Vec::new()) };
        let preload_file = text(rootfs, "etc/ld.so.preload");
        let has_hwcaps = rootfs.has_name(HWCAPS.as_bytes());
        let library_path = settings.library_path.as_deref().unwrap_or_default();
        let library_path = library_path.split([':', ';']).map(ToOwned::to_owned).collect();
        Self {
            rootfs,
            settings,
            library_path,
            cache,
            configured,
            preload_file,
            has_hwcaps,
            folders: RefCell::default(),
        }
    }

    /// Returns true when the directory of a path is missing, or has no entry for the last component, not even a link.
    /// This is the common case in a library search. False does not mean that the path leads to a file.
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

    /// The search for a library that `object`, loaded from `origin`, needs, and what it finds. The object is considered
    /// alone, as in [`Self::find`].
    pub fn search(
        self: &Rc<Self>,
        soname: &str,
        origin: &ImagePath,
        object: &'a ElfInfo,
    ) -> Result<(Vec<LoaderSearch>, Option<Bound>), Gap> {
        let process = Process::around(self, CpuLevel::V3, origin, object);
        process.need(soname)
    }

    /// The library that `soname` is bound to when `object`, loaded from `origin`, requests it; `None` if there is none.
    ///
    /// The object is considered alone, as if it were a program. Only a [`Process`] knows the `DT_RPATH` of the objects
    /// that loaded it, and the objects that are already mapped.
    pub fn find(self: &Rc<Self>, soname: &str, origin: &ImagePath, object: &ElfInfo) -> Result<Option<Bound>, Gap> {
        let found = |level| Process::around(self, level, origin, object).bound(soname, 0);
        let low = found(CpuLevel::V3)?;
        let high = found(CpuLevel::V4)?;
        if low != high {
            return Err(Gap::new(format!("{soname}: the file depends on the CPU level"))
                .settled_by("libraries in glibc-hwcaps directories are for some CPU levels only"));
        }
        Ok(low)
    }
}

/// The content of a file at a fixed place; empty if it does not exist.
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

/// The ELF information that the extractor found in a file.
pub fn elf<'a>(file: &RootFile<'a>) -> Option<&'a ElfInfo> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Elf(info)) => Some(&**info),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
