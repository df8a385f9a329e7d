//! Where glibc's dynamic loader would find a library in the merged image (ld.so(8); glibc, `elf/dl-load.c`).

use crate::model::{ElfInfo, Found, Gap, ImagePath};

use super::{File, RootFs, ld_cache};

/// The loader of one image with one environment.
#[derive(Debug)]
pub struct Loader<'a> {
    rootfs: &'a RootFs,
    library_path: Vec<String>,
    cache: Result<Vec<ld_cache::CacheEntry>, Gap>,
}

/// A library that would be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its path after symbolic links.
    pub path: ImagePath,
    /// Why this one.
    pub route: Route,
}

/// The rule of the loader by which a library was found, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `DT_RPATH` of the library that needs it.
    Rpath(String),
    /// The variable `LD_LIBRARY_PATH`.
    LibraryPath(String),
    /// `DT_RUNPATH` of the library that needs it.
    Runpath(String),
    /// `/etc/ld.so.cache`.
    Cache,
    /// A default directory.
    Default(String),
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rpath(entry) => write!(f, "DT_RPATH {entry}"),
            Self::LibraryPath(entry) => write!(f, "LD_LIBRARY_PATH {entry}"),
            Self::Runpath(entry) => write!(f, "DT_RUNPATH {entry}"),
            Self::Cache => f.write_str("/etc/ld.so.cache"),
            Self::Default(directory) => write!(f, "default directory {directory}"),
        }
    }
}

/// Directories, and the rule that they stand for.
type SearchList<'l> = (&'l [String], fn(String) -> Route);

/// Built into the loader: Debian's has the multiarch folders first, others `lib64`.
const DEFAULT: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

impl<'a> Loader<'a> {
    /// The loader of an image whose environment sets `LD_LIBRARY_PATH` so.
    pub fn new(rootfs: &'a RootFs, library_path: Option<&str>) -> Self {
        // Both separators end an element (ld.so(8)). An empty one is the working directory, which nobody knows here.
        let split =
            |list: &str| list.split([':', ';']).filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect();
        let path = ImagePath::from("etc/ld.so.cache");
        let cache = match rootfs.open(&path) {
            Err(_) => Ok(Vec::new()),
            Ok((path, file)) => match file.found {
                [Ok(Found::Text(bytes))] => {
                    ld_cache::parse(bytes).map_err(|why| Gap::new(format!("{path} cannot be read: {why}")))
                }
                [Err(gap), ..] => Err(gap.clone()),
                _ => Ok(Vec::new()),
            },
        };
        Self { rootfs, library_path: library_path.map(split).unwrap_or_default(), cache }
    }

    /// The library that `soname` binds to when `object`, loaded from `origin`, needs it: `None` when there is none.
    ///
    /// One object is looked at by itself: what its own users' `DT_RPATH` adds, and what the process has already loaded
    /// under the same soname, is for who knows the whole chain.
    pub fn find(&self, soname: &str, origin: &ImagePath, object: &ElfInfo) -> Result<Option<Bound>, Gap> {
        if soname.contains('/') {
            return Ok(self
                .usable(&ImagePath::from(soname), object)
                .map(|path| Bound { path, route: Route::Default(soname.to_owned()) }));
        }
        // DT_RPATH is ignored where DT_RUNPATH is there.
        let rpath: &[String] = if object.runpath.is_empty() { &object.rpath } else { &[] };
        let lists: [SearchList<'_>; 3] =
            [(rpath, Route::Rpath), (&self.library_path, Route::LibraryPath), (&object.runpath, Route::Runpath)];
        for (list, route) in lists {
            for entry in list {
                let directory = expand(entry, origin)?;
                if let Some(path) = self.usable(&directory.join(soname.as_bytes()), object) {
                    return Ok(Some(Bound { path, route: route(entry.clone()) }));
                }
            }
        }
        for entry in self.cache.as_ref().map_err(Clone::clone)?.iter().filter(|entry| entry.soname == soname.as_bytes())
        {
            if entry.hwcap != 0 {
                let why = format!("{soname}: /etc/ld.so.cache has a copy for certain processors only, {}", entry.path);
                return Err(Gap::new(why).settled_by("the processor decides at run time"));
            }
            if let Some(path) = self.usable(&entry.path, object) {
                return Ok(Some(Bound { path, route: Route::Cache }));
            }
        }
        let found = DEFAULT.iter().find_map(|directory| {
            let path = self.usable(&ImagePath::from(*directory).join(soname.as_bytes()), object)?;
            Some(Bound { path, route: Route::Default((*directory).to_owned()) })
        });
        Ok(found)
    }

    /// The file behind a path, if the loader would take it: a library of another class or machine is passed over.
    fn usable(&self, path: &ImagePath, object: &ElfInfo) -> Option<ImagePath> {
        let (real, file) = self.rootfs.open(path).ok()?;
        let elf = elf(&file)?;
        (elf.bits == object.bits && elf.machine == object.machine).then_some(real)
    }
}

/// What the ELF extractor found in a file.
pub fn elf<'a>(file: &File<'a>) -> Option<&'a ElfInfo> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Elf(info)) => Some(&**info),
        _ => None,
    })
}

/// Dynamic string tokens (ld.so(8), "Dynamic string tokens").
fn expand(entry: &str, origin: &ImagePath) -> Result<ImagePath, Gap> {
    let directory = origin.parent();
    let directory = String::from_utf8_lossy(directory.as_bytes()).into_owned();
    let expanded = entry.replace("${ORIGIN}", &format!("/{directory}")).replace("$ORIGIN", &format!("/{directory}"));
    if expanded.contains('$') {
        return Err(Gap::new(format!(
            "{origin}: the search path {entry} depends on the loader's build or on the processor"
        )));
    }
    Ok(ImagePath::from(expanded.as_str()))
}

#[cfg(test)]
mod tests;
