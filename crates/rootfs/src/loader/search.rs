//! The search for one name: its places and their order (glibc, `elf/dl-load.c`, `_dl_map_object`, `open_path` and
//! `open_verify`).

use std::collections::HashSet;
use std::rc::Rc;

use model::{ElfInfo, Endian, Found, Gap, ImagePath, OverLimit, escape};

use super::super::{FileAccess, NoFile, Refusal, RootFile};
use super::cache::CacheAnswer;
use super::process::Process;
use super::tokens::Tokens;
use super::{HWCAPS, Route, SearchEnd, SearchStep, elf};

/// Bytes of a name or path that count as one step of the loader. Names and paths of real libraries are shorter.
const NAME_OF_STEP: usize = 256;

/// A file that the loader would map.
pub(super) struct LibraryCandidate<'a> {
    /// The path through which it was opened; links are not followed, and `$ORIGIN` derives from it.
    pub(super) opened: Vec<u8>,
    pub(super) path: ImagePath,
    pub(super) file: RootFile<'a>,
    pub(super) elf: &'a ElfInfo,
    pub(super) route: Route,
}

/// Result of a search.
pub(super) enum Hit<'a> {
    Found(LibraryCandidate<'a>),
    Nothing,
    /// A file with this name exists but cannot be loaded; the loader stops searching.
    Refused(String),
}

/// Result of looking at one path.
enum FolderLook<'a> {
    Usable(ImagePath, RootFile<'a>, &'a ElfInfo),
    Passed(SearchEnd),
    Refused(String),
}

/// One search path, with the rule that it belongs to.
struct SearchList<'l> {
    entries: &'l [String],
    /// The object that defines the path; its tokens refer to that object.
    object: usize,
    route: &'l dyn Fn(&str) -> Route,
}

impl<'a> Process<'a> {
    /// Searches for a name that no mapped object has.
    pub(super) fn search(&mut self, name: &[u8], by: usize, steps: &mut Vec<SearchStep>) -> Result<Hit<'a>, Gap> {
        if name.contains(&b'/') {
            return self.by_path(name, by, steps);
        }
        let Some(asking) = self.objects.get(by).map(|object| object.elf) else { return Ok(Hit::Nothing) };
        for (id, elf, path) in self.rpath_chain(by) {
            let route = |entry: &str| {
                if id == by {
                    Route::Rpath(entry.to_owned())
                } else {
                    Route::InheritedRpath(entry.to_owned(), path.clone())
                }
            };
            let list = SearchList { entries: &elf.rpath, object: id, route: &route };
            if let Some(hit) = self.in_list(name, &list, steps)? {
                return Ok(hit);
            }
        }
        let loader = Rc::clone(&self.loader);
        let entries = &loader.library_path;
        let list = SearchList { entries, object: 0, route: &|entry| Route::LibraryPath(entry.to_owned()) };
        if let Some(hit) = self.in_list(name, &list, steps)? {
            return Ok(hit);
        }
        let list =
            SearchList { entries: &asking.runpath, object: by, route: &|entry| Route::Runpath(entry.to_owned()) };
        if let Some(hit) = self.in_list(name, &list, steps)? {
            return Ok(hit);
        }
        if let Some(hit) = self.in_configured(name, steps)? {
            return Ok(hit);
        }
        if let Some(hit) = self.in_cache(name, asking.no_default_libraries, steps)? {
            return Ok(hit);
        }
        if asking.no_default_libraries {
            return Ok(Hit::Nothing);
        }
        self.in_default_directories(name, steps)
    }

    /// The objects whose `DT_RPATH` counts: the requesting object, the chain of objects that loaded it, and finally the
    /// program; none if the requesting object has a `DT_RUNPATH`. In an object with both, only `DT_RUNPATH` counts.
    fn rpath_chain(&self, by: usize) -> Vec<(usize, &'a ElfInfo, ImagePath)> {
        if self.objects.get(by).is_some_and(|object| !object.elf.runpath.is_empty()) {
            return Vec::new();
        }
        let mut chain: Vec<usize> = std::iter::successors(Some(by), |&id| self.objects.get(id)?.brought_by).collect();
        if !chain.contains(&0) {
            chain.push(0);
        }
        let objects = chain.into_iter().filter_map(|id| Some((id, self.objects.get(id)?)));
        let counts = |elf: &ElfInfo| elf.runpath.is_empty() && !elf.rpath.is_empty();
        objects
            .filter(|(_, object)| counts(object.elf))
            .map(|(id, object)| (id, object.elf, object.path.clone()))
            .collect()
    }

    fn by_path(&mut self, name: &[u8], by: usize, steps: &mut Vec<SearchStep>) -> Result<Hit<'a>, Gap> {
        let path = self.expand(name, by)?;
        let path = self.absolute(path)?;
        Ok(self.look(path, &Route::Path, steps)?.unwrap_or(Hit::Nothing))
    }

    /// Searches the directories of one search path.
    fn in_list(
        &mut self,
        name: &[u8],
        list: &SearchList<'_>,
        steps: &mut Vec<SearchStep>,
    ) -> Result<Option<Hit<'a>>, Gap> {
        // An empty path is ignored; an empty element is the working directory.
        if matches!(list.entries, [only] if only.is_empty()) {
            return Ok(None);
        }
        let mut seen = HashSet::new();
        for entry in list.entries {
            let spelled: &[u8] = if entry.is_empty() { b"." } else { entry.as_bytes() };
            let directory = self.expand(spelled, list.object)?;
            let mut directory = self.absolute(directory)?;
            while directory.len() > 1 && directory.ends_with(b"/") {
                directory.pop();
            }
            if !seen.insert(directory.clone()) {
                self.count_step(0)?;
                continue;
            }
            let hit = self.in_directory(name, &directory, &(list.route)(entry), steps)?;
            if hit.is_some() {
                return Ok(hit);
            }
            if steps.last().is_some_and(|step| step.end == SearchEnd::Loop) {
                // The loader stays in the same search path only if the file is missing or access is denied.
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Searches one directory, after its subdirectories for this processor.
    fn in_directory(
        &mut self,
        name: &[u8],
        directory: &[u8],
        route: &Route,
        steps: &mut Vec<SearchStep>,
    ) -> Result<Option<Hit<'a>>, Gap> {
        const LEVELS: [&str; 3] = ["x86-64-v4", "x86-64-v3", "x86-64-v2"];
        // Directories named after features, before 2.37; glibc tried all combinations of a few words.
        const FEATURES: [&str; 5] = ["tls", "haswell", "avx512_1", "xeon_phi", "x86_64"];
        let below = |folder: &str| [directory, b"/", folder.as_bytes(), b"/", name].concat();
        let loader = Rc::clone(&self.loader);
        let exists = |path: &[u8]| !loader.lacks(path) && loader.rootfs.open_raw(path).is_ok();
        if self.machine.1 == X86_64 && self.system.has_levels() && self.loader.has_hwcaps {
            let folders = LEVELS.map(|level| format!("{HWCAPS}/{level}"));
            if folders.iter().any(|folder| exists(&below(folder))) {
                self.depends_on_level = true;
                for level in self.level.folders() {
                    let path = below(&format!("{HWCAPS}/{level}"));
                    if let Some(hit) = self.look(path, route, steps)? {
                        return Ok(Some(hit));
                    }
                }
            }
        }
        if self.machine.1 == X86_64
            && self.system.has_features()
            && let Some(folder) = FEATURES.iter().find(|folder| exists(&below(folder)))
        {
            let path = escape(&below(folder));
            let why = format!("{path} is for processors with certain features only, and this glibc looks there");
            return Err(undecided(SearchStep { route: route.clone(), path, end: SearchEnd::Undecided(why) }, steps));
        }
        let slash: &[u8] = if directory == b"/" { b"" } else { b"/" };
        self.look([directory, slash, name].concat(), route, steps)
    }

    /// The library that ldconfig puts before the cache's as the container starts. Where the cache has a file of the directory, it
    /// was written with the directory, and its order holds.
    fn in_configured(&mut self, name: &[u8], steps: &mut Vec<SearchStep>) -> Result<Option<Hit<'a>>, Gap> {
        let loader = Rc::clone(&self.loader);
        let configured = loader.configured.as_ref().map_err(Clone::clone)?;
        if configured.is_empty() {
            return Ok(None);
        }
        let cache = loader.cache.as_ref().map_err(Clone::clone)?;
        let opened = |path: &[u8]| loader.rootfs.open_raw(path).ok();
        let known: Vec<_> = cache.paths(name, self.machine.1).filter_map(opened).collect();
        let folder = |path: &ImagePath| loader.rootfs.real_directory(path).unwrap_or_else(|| path.clone());
        let first = known.first().map(|(path, _)| path.parent());
        for directory in configured {
            if first.as_ref() == Some(&folder(&directory.path)) {
                return Ok(None);
            }
            // ldconfig makes the link with the name, to the latest of several files.
            let mut names: Vec<_> = loader.rootfs.names_with(&directory.path, name).collect();
            names.sort_by_key(|own| (*own != name, std::cmp::Reverse(own.len()), std::cmp::Reverse(*own)));
            for path in names.into_iter().map(|own| directory.path.join(own)) {
                let Some((_, file)) = opened(path.as_bytes()) else { continue };
                if known.iter().any(|(_, own)| own.is_same(&file)) {
                    return Ok(None);
                }
                let soname = elf(&file).map(|elf| elf.soname.as_ref().map(String::as_bytes));
                if soname != Some(Some(name)) && (soname != Some(None) || path.file_name() != name) {
                    continue;
                }
                let route = Route::Configured(directory.file.clone());
                if let Some(hit @ Hit::Found(_)) = self.look(path.as_bytes().to_vec(), &route, steps)? {
                    return Ok(Some(hit));
                }
            }
        }
        Ok(None)
    }

    fn in_cache(
        &mut self,
        name: &[u8],
        no_default_libraries: bool,
        steps: &mut Vec<SearchStep>,
    ) -> Result<Option<Hit<'a>>, Gap> {
        let answer = self.loader.cache.as_ref().map_err(Clone::clone)?.find(name, self.machine.1, self.level);
        match answer {
            CacheAnswer::Nothing => {
                let end = SearchEnd::Missing;
                steps.push(SearchStep { route: Route::Cache, path: escape(name), end });
                Ok(None)
            }
            CacheAnswer::Bits(path) => {
                let path = escape(path);
                let why = format!("/etc/ld.so.cache has a copy for certain processors only, {path}");
                Err(undecided(SearchStep { route: Route::Cache, path, end: SearchEnd::Undecided(why) }, steps))
            }
            CacheAnswer::Path { path, depends_on_level } => {
                self.depends_on_level |= depends_on_level;
                let is_default = |directory: &String| {
                    // The path must be in a default directory or below it.
                    path.starts_with(directory.as_bytes())
                };
                if no_default_libraries && self.system.directories.iter().any(is_default) {
                    let end = SearchEnd::Foreign("DF_1_NODEFLIB forbids the default directories".to_owned());
                    steps.push(SearchStep { route: Route::Cache, path: escape(path), end });
                    return Ok(None);
                }
                self.look(path.to_vec(), &Route::Cache, steps)
            }
        }
    }

    fn in_default_directories(&mut self, name: &[u8], steps: &mut Vec<SearchStep>) -> Result<Hit<'a>, Gap> {
        for directory in self.system.directories.clone() {
            let path = directory.strip_suffix('/').unwrap_or(&directory).to_owned();
            let hit = self.in_directory(name, path.as_bytes(), &Route::Default(path.clone()), steps)?;
            if let Some(hit) = hit {
                return Ok(hit);
            }
        }
        Ok(Hit::Nothing)
    }

    /// Looks at one path; `None` continues the search.
    fn look(&mut self, path: Vec<u8>, route: &Route, steps: &mut Vec<SearchStep>) -> Result<Option<Hit<'a>>, Gap> {
        self.count_step(path.len())?;
        let mut step = |end| steps.push(SearchStep { route: route.clone(), path: escape(&path), end });
        match self.examine(&path)? {
            FolderLook::Usable(real, file, elf) => {
                let same = self.objects.iter().find(|object| object.file.is_some_and(|known| known.is_same(&file)));
                step(match same {
                    Some(object) => SearchEnd::SameFile(object.path.clone()),
                    None => SearchEnd::Taken(real.clone()),
                });
                Ok(Some(Hit::Found(LibraryCandidate { opened: path, path: real, file, elf, route: route.clone() })))
            }
            FolderLook::Passed(end) => {
                step(end);
                Ok(None)
            }
            FolderLook::Refused(why) => {
                step(SearchEnd::Refused(why.clone()));
                Ok(Some(Hit::Refused(format!("{}: {why}", escape(&path)))))
            }
        }
    }

    /// Counts one requested name or one place, which is this long. The trace keeps each, so that each
    /// [`NAME_OF_STEP`] bytes count as one more.
    pub fn count_step(&mut self, length: usize) -> Result<(), Gap> {
        self.steps += 1 + length / NAME_OF_STEP;
        let limit = self.loader.rootfs.loader_steps;
        if self.steps > limit {
            let what = format!("{} lookups were made for one process", self.steps);
            return Err(Gap::new(OverLimit::new(what, "loader_steps", limit as u64).to_string()));
        }
        Ok(())
    }

    fn examine(&self, path: &[u8]) -> Result<FolderLook<'a>, Gap> {
        if self.loader.lacks(path) {
            return Ok(FolderLook::Passed(SearchEnd::Missing));
        }
        let rootfs = self.loader.rootfs;
        let (real, file) = match rootfs.open_raw(path) {
            Ok(opened) => opened,
            Err(NoFile::Missing) if rootfs.is_link(path) => return Ok(FolderLook::Passed(SearchEnd::Dangling)),
            Err(NoFile::Missing) => return Ok(FolderLook::Passed(SearchEnd::Missing)),
            Err(NoFile::Loop) => return Ok(FolderLook::Passed(SearchEnd::Loop)),
            Err(NoFile::NotAFile) => return Ok(FolderLook::Refused("cannot read file data".to_owned())),
        };
        if let Some(who) = &self.loader.settings.credentials {
            match rootfs.access(who, path, FileAccess::Read) {
                Err(Refusal::Denied(denied)) => return Ok(FolderLook::Passed(SearchEnd::Denied(denied))),
                Err(Refusal::Unknown(gap)) => return Err(gap),
                Ok(_) | Err(Refusal::NoFile(_)) => {}
            }
        }
        let (bits, machine, endian) = self.machine;
        if file.size < if bits == 32 { 52 } else { 64 } {
            return Ok(FolderLook::Refused("file too short".to_owned()));
        }
        let Some(elf) = elf(&file) else {
            if let Some(gap) = file.found.iter().find_map(|found: &Result<Found, Gap>| found.as_ref().err()) {
                return Err(gap.clone());
            }
            return Ok(FolderLook::Refused("invalid ELF header".to_owned()));
        };
        if elf.bits != bits {
            return Ok(FolderLook::Passed(SearchEnd::OtherClass(elf.bits)));
        }
        if elf.endian != endian {
            let order = if endian == Endian::Big { "big" } else { "little" };
            return Ok(FolderLook::Refused(format!("ELF file data encoding not {order}-endian")));
        }
        if elf.machine != machine {
            return Ok(FolderLook::Passed(SearchEnd::Foreign(format!("it is for {}", machine_name(elf.machine)))));
        }
        if !matches!(elf.kind, 2 | 3) {
            return Ok(FolderLook::Refused("only ET_DYN and ET_EXEC can be loaded".to_owned()));
        }
        if let Some(why) = &elf.refusal {
            return Ok(FolderLook::Refused(why.clone()));
        }
        Ok(FolderLook::Usable(real, file, elf))
    }

    /// Expands the tokens in a string of one object. The result counts as steps, by its length.
    pub(super) fn expand(&mut self, text: &[u8], object: usize) -> Result<Vec<u8>, Gap> {
        if !text.contains(&b'$') {
            return Ok(text.to_vec());
        }
        let opened = self.objects.get(object).map_or(&b"/"[..], |object| &object.opened);
        let folder = opened.iter().rposition(|&byte| byte == b'/').and_then(|slash| opened.get(..slash));
        let origin = folder.filter(|folder| !folder.is_empty()).unwrap_or(b"/").to_vec();
        // On x86-64 it is `haswell` or `xeon_phi` for Intel's processors and `x86_64` for all others
        // (`sysdeps/x86/cpu-features.c`).
        let platform = (self.machine.1 != X86_64).then_some(&b"aarch64"[..]);
        let lib = self.system.lib().map(<[u8]>::to_vec);
        let tokens = Tokens { origin: &origin, lib: lib.as_deref(), platform };
        let parts = tokens.expand(text).map_err(|token| {
            let on = if token == "PLATFORM" { "the vendor of the host's processor" } else { "the build of the loader" };
            Gap::new(format!("{}: what ${token} stands for depends on {on}", escape(text)))
        })?;
        self.count_step(parts.iter().map(|part| part.len()).sum())?;
        Ok(parts.concat())
    }

    fn absolute(&self, path: Vec<u8>) -> Result<Vec<u8>, Gap> {
        if path.starts_with(b"/") {
            return Ok(path);
        }
        let folder = self.loader.settings.working_directory.as_ref().ok_or_else(|| {
            Gap::new(format!("'{}' is searched for in the working directory, which is unknown", escape(&path)))
        })?;
        Ok([b"/", folder.as_bytes(), b"/", path.as_slice()].concat())
    }
}

/// `e_machine` of x86-64.
const X86_64: u16 = 62;

fn machine_name(machine: u16) -> String {
    match machine {
        3 => "x86".to_owned(),
        40 => "ARM".to_owned(),
        62 => "x86-64".to_owned(),
        183 => "AArch64".to_owned(),
        other => format!("machine {other}"),
    }
}

fn undecided(step: SearchStep, steps: &mut Vec<SearchStep>) -> Gap {
    let gap = Gap::new(step.end.to_string()).settled_by("the processor decides at run time");
    steps.push(step);
    gap
}

/// Class, machine and byte order that a process can map.
pub(super) type ElfMachine = (u8, u16, Endian);
