//! A process: its mapped objects, and how each loads the next (glibc, `elf/rtld.c`, `elf/dl-deps.c`, `elf/dl-open.c`,
//! `elf/dl-version.c`).

use std::rc::Rc;

use model::{ElfInfo, Gap, ImagePath, escape};

use super::super::RootFile;
use super::search::{ElfMachine, Hit, LibraryCandidate};
use super::settings::DlopenMode;
use super::system::{self, LoaderSystem};
use super::{Bound, CpuLevel, Loader, LoaderSearch, Route, SearchEnd, SearchStep, driver, elf};

/// Mapped objects that count as one step of the loader, which compares each with a requested name. `import torch` maps some
/// 100.
const OBJECTS_OF_STEP: usize = 64;

/// A process of the image.
#[derive(Clone, Debug)]
pub struct Process<'a> {
    pub(super) loader: Rc<Loader<'a>>,
    pub(super) system: LoaderSystem,
    pub(super) level: CpuLevel,
    pub(super) machine: ElfMachine,
    /// The program is the first object.
    pub(super) objects: Vec<LoadedObject<'a>>,
    /// True when a processor of another level might get another file.
    pub(super) depends_on_level: bool,
    pub(super) steps: usize,
    /// Objects of the global scope, in lookup order.
    pub(super) global: Vec<usize>,
    /// Why it is unknown whether all symbols were found.
    pub(super) doubt: Option<Gap>,
    searches: Vec<LoaderSearch>,
    failure: Option<String>,
}

/// A mapped file.
#[derive(Clone, Debug)]
pub struct LoadedObject<'a> {
    /// Its path after symlinks.
    pub path: ImagePath,
    /// The file; `None` for an object that is considered alone (see [`Loader::find`]).
    pub file: Option<RootFile<'a>>,
    /// The ELF information that the loader reads.
    pub elf: &'a ElfInfo,
    /// Origin of the request that first loaded it.
    pub asked: Requester,
    /// The rule by which it was found.
    pub route: Route,
    /// Indices of the objects that it needs.
    pub needs: Vec<usize>,
    /// The path through which it was opened.
    pub(super) opened: Vec<u8>,
    /// Names under which it was requested.
    pub(super) names: Vec<Vec<u8>>,
    /// The object whose search first loaded it (`l_loader`).
    pub(super) brought_by: Option<usize>,
}

/// Origin of the request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// The kernel starts it as the program.
    Program,
    /// `PT_INTERP` of the program.
    Interpreter,
    /// `LD_PRELOAD`.
    Preload,
    /// `/etc/ld.so.preload`.
    PreloadFile,
    /// `DT_NEEDED` of the object at this index.
    Needed(usize),
    /// A dlopen call from the object at this index.
    Dlopen(usize),
}

/// Why an object is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Loading fails with this message of the loader.
    Fails(String),
    /// The result is unknown.
    Unknown(Gap),
}

impl From<Gap> for Stop {
    fn from(gap: Gap) -> Self {
        Self::Unknown(gap)
    }
}

impl<'a> Process<'a> {
    /// Starts a program: maps all objects that are mapped before its first instruction.
    pub fn start(loader: &Rc<Loader<'a>>, level: CpuLevel, program: &ImagePath) -> Result<Self, Gap> {
        let Ok((path, file)) = loader.rootfs.open(program) else {
            return Err(Gap::new(format!("{program} does not lead to a file")));
        };
        let Some(elf) = elf(&file) else {
            let why = file.found.iter().find_map(|found| found.as_ref().err()).cloned();
            return Err(
                why.unwrap_or_else(|| Gap::new(format!("{path} is not an ELF program, so what it runs is unknown")))
            );
        };
        let Some(interpreter) = &elf.interpreter else {
            return Err(Gap::new(format!("{path} names no dynamic loader")));
        };
        if system::is_musl(interpreter) {
            let why = format!("{path} uses musl's loader, {interpreter}, whose rules differ from glibc's");
            return Err(Gap::new(why).settled_by("PyTorch has no releases for musl"));
        }
        let system = LoaderSystem::read(loader.rootfs, interpreter.as_bytes());
        let mut process = Self::new(loader, system, level, elf);
        // The program's `$ORIGIN` is the real directory of its file, which the kernel provides (/proc/self/exe).
        let opened = [b"/", path.as_bytes()].concat();
        process.objects.push(LoadedObject::new(path, Some(file), elf, opened, Requester::Program, Route::Path, None));
        match process.add_interpreter(interpreter).and_then(|()| process.begin()) {
            Ok(()) => {}
            Err(Stop::Fails(why)) => process.failure = Some(why),
            Err(Stop::Unknown(gap)) => return Err(gap),
        }
        Ok(process)
    }

    fn add_interpreter(&mut self, name: &str) -> Result<(), Stop> {
        let opened = name.as_bytes().to_vec();
        let Ok((path, file)) = self.loader.rootfs.open_raw(&opened) else {
            return Err(Stop::Fails(format!("{name}: no such dynamic loader")));
        };
        let Some(elf) = elf(&file) else {
            return Err(Gap::new(format!("{path}: this dynamic loader could not be read")).into());
        };
        let interpreter = LoadedObject::new(path, Some(file), elf, opened, Requester::Interpreter, Route::Path, None);
        self.objects.push(interpreter);
        Ok(())
    }

    /// A process around a single object, as if it were the program.
    pub(super) fn around(loader: &Rc<Loader<'a>>, level: CpuLevel, path: &ImagePath, elf: &'a ElfInfo) -> Self {
        let mut process = Self::new(loader, LoaderSystem::usual(loader.rootfs, elf.machine), level, elf);
        let opened = [b"/", path.as_bytes()].concat();
        process.objects.push(LoadedObject::new(path.clone(), None, elf, opened, Requester::Program, Route::Path, None));
        process
    }

    /// A process of an unknown program, for the machine of `like`, without any library yet.
    pub fn of_unknown_program(loader: &Rc<Loader<'a>>, level: CpuLevel, like: &ElfInfo) -> Self {
        Self::new(loader, LoaderSystem::usual(loader.rootfs, like.machine), level, like)
    }

    fn new(loader: &Rc<Loader<'a>>, system: LoaderSystem, level: CpuLevel, elf: &ElfInfo) -> Self {
        Self {
            loader: Rc::clone(loader),
            system,
            level,
            machine: (elf.bits, elf.machine, elf.endian),
            objects: Vec::new(),
            depends_on_level: false,
            steps: 0,
            global: Vec::new(),
            doubt: None,
            searches: Vec::new(),
            failure: None,
        }
    }

    /// The mapped objects in mapping order, the program first.
    pub fn objects(&self) -> &[LoadedObject<'a>] {
        &self.objects
    }

    /// Returns true when a processor of another level might get another file.
    pub fn depends_on_level(&self) -> bool {
        self.depends_on_level
    }

    /// The CPU level.
    pub fn level(&self) -> CpuLevel {
        self.level
    }

    /// The loader's message if the program does not start.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// All searches so far, in order.
    pub fn searches(&self) -> &[LoaderSearch] {
        &self.searches
    }

    /// The index of the object with this name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| object.is_named(name.as_bytes()))
    }

    /// The given objects and all objects that they need, directly or indirectly, breadth first.
    pub fn closure(&self, roots: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut list: Vec<usize> = Vec::new();
        let add = |list: &mut Vec<usize>, ids: &mut dyn Iterator<Item = usize>| {
            for id in ids {
                if !list.contains(&id) {
                    list.push(id);
                }
            }
        };
        add(&mut list, &mut roots.into_iter());
        let mut at = 0;
        while let Some(&id) = list.get(at) {
            at += 1;
            if let Some(object) = self.objects.get(id) {
                add(&mut list, &mut object.needs.iter().copied());
            }
        }
        list
    }

    /// Opens a name as dlopen does when the object at `caller` calls it. Returns the index of the object, or the
    /// message of dlerror. A failed call leaves no objects behind.
    pub fn dlopen(&mut self, name: &str, caller: usize, mode: DlopenMode) -> Result<usize, Stop> {
        let before = self.objects.len();
        let loaded = self.map(name.as_bytes(), caller, Requester::Dlopen(caller)).and_then(|id| {
            if id >= before {
                let search_list = self.bring_needed(vec![id])?;
                self.check_versions(before)?;
                self.relocate(before, &search_list, mode.is_lazy)?;
            }
            Ok(id)
        });
        match loaded {
            Ok(id) if mode.is_global => {
                let list = self.closure([id]);
                let new: Vec<_> = list.into_iter().filter(|id| !self.global.contains(id)).collect();
                self.global.extend(new);
            }
            Ok(_) => {}
            Err(_) => self.objects.truncate(before),
        }
        loaded
    }

    /// Why it is unknown whether all symbols of the mapped objects were found.
    pub fn doubt(&self) -> Option<&Gap> {
        self.doubt.as_ref()
    }

    /// Resolves a name that the object at `by` requests, without mapping anything.
    pub fn bound(&self, name: &str, by: usize) -> Result<Option<Bound>, Gap> {
        let mut process = self.fork();
        match process.map(name.as_bytes(), by, Requester::Dlopen(by)) {
            Err(Stop::Unknown(gap)) => Err(gap),
            Err(Stop::Fails(_)) => Ok(None),
            Ok(id) => Ok(process.objects.get(id).map(|object| {
                let route = if id < self.objects.len() { Route::Loaded } else { object.route.clone() };
                Bound { path: object.path.clone(), route }
            })),
        }
    }

    /// The search for a library that the first object needs, and what it finds.
    pub(super) fn need(mut self, name: &str) -> Result<(Vec<LoaderSearch>, Option<Bound>), Gap> {
        let found = match self.map(name.as_bytes(), 0, Requester::Needed(0)) {
            Ok(id) => {
                self.objects.get(id).map(|object| Bound { path: object.path.clone(), route: object.route.clone() })
            }
            Err(Stop::Fails(_)) => None,
            Err(Stop::Unknown(gap)) => return Err(gap),
        };
        Ok((self.searches, found))
    }

    /// A copy of the process without its past searches; changes to the copy do not affect this one.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            loader: Rc::clone(&self.loader),
            system: self.system.clone(),
            objects: self.objects.clone(),
            global: self.global.clone(),
            doubt: self.doubt.clone(),
            failure: self.failure.clone(),
            searches: Vec::new(),
            steps: 0,
            ..*self
        }
    }

    /// Maps the preloads, then all dependencies.
    fn begin(&mut self) -> Result<(), Stop> {
        let preload = self.loader.settings.preload.clone().unwrap_or_default();
        let names = preload.split([' ', ':']).map(|name| (name.as_bytes().to_vec(), Requester::Preload));
        let file = self.loader.preload_file.clone()?;
        let lines =
            file.split(|&byte| byte == b'\n').map(|line| line.split(|&byte| byte == b'#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(|byte| matches!(byte, b' ' | b'\t' | b':')));
        let words = words.map(|name| (name.to_vec(), Requester::PreloadFile));
        let preloads: Vec<_> = names.chain(words).filter(|(name, _)| !name.is_empty()).collect();
        let mut list = vec![0];
        for (name, asked) in preloads {
            // The loader reports a preload that fails on standard error, and starts the program without it.
            match self.map(&name, 0, asked) {
                Ok(id) if !list.contains(&id) => list.push(id),
                Ok(_) | Err(Stop::Fails(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        self.global = self.bring_needed(list)?;
        self.check_versions(0)?;
        let search_list = self.global.clone();
        self.relocate(0, &search_list, true)
    }

    /// Maps the dependencies of the listed objects, and their dependencies, breadth first. Returns the search list: the
    /// listed objects and all dependencies.
    fn bring_needed(&mut self, mut list: Vec<usize>) -> Result<Vec<usize>, Stop> {
        let mut at = 0;
        while let Some(&id) = list.get(at) {
            at += 1;
            let needed = self.objects.get(id).map_or(&[][..], |object| &object.elf.needed);
            let mut needs = Vec::new();
            for name in needed {
                let name = self.expand(name.as_bytes(), id)?;
                match self.map(&name, id, Requester::Needed(id)) {
                    Ok(other) => {
                        needs.push(other);
                        if !list.contains(&other) {
                            list.push(other);
                        }
                    }
                    Err(Stop::Fails(_)) if driver::owns(&name) => {}
                    Err(stop) => return Err(stop),
                }
            }
            if let Some(object) = self.objects.get_mut(id) {
                object.needs = needs;
            }
        }
        Ok(list)
    }

    /// Finds a name among the mapped objects, or maps the file that the search finds.
    fn map(&mut self, name: &[u8], by: usize, asked: Requester) -> Result<usize, Stop> {
        self.count_step(name.len())?;
        self.steps += self.objects.len() / OBJECTS_OF_STEP;
        if let Some(id) = self.objects.iter().position(|object| object.is_named(name)) {
            self.note(name, asked, Vec::new(), Some(id));
            return Ok(id);
        }
        let mut steps = Vec::new();
        let mapped = match self.search(name, by, &mut steps) {
            Ok(Hit::Found(candidate)) => Ok(self.add(candidate, name, asked, by)),
            Ok(Hit::Refused(message)) => Err(Stop::Fails(message)),
            Ok(Hit::Nothing) => {
                let other_class = steps.iter().rev().find_map(|step| match step.end {
                    SearchEnd::OtherClass(bits) => Some(format!("wrong ELF class: ELFCLASS{bits}")),
                    _ => None,
                });
                let is_denied = steps.last().is_some_and(|step| matches!(step.end, SearchEnd::Denied(_)));
                let cause = if is_denied { "Permission denied" } else { "No such file or directory" };
                let why = other_class.unwrap_or_else(|| format!("cannot open shared object file: {cause}"));
                Err(Stop::Fails(format!("{}: {why}", escape(name))))
            }
            Err(gap) => Err(Stop::Unknown(gap)),
        };
        self.note(name, asked, steps, mapped.as_ref().ok().copied());
        mapped
    }

    /// Returns the object of a file, which is added if it is new.
    fn add(&mut self, candidate: LibraryCandidate<'a>, name: &[u8], asked: Requester, by: usize) -> usize {
        let same = |object: &LoadedObject<'_>| object.file.is_some_and(|file| file.is_same(&candidate.file));
        let id = self.objects.iter().position(same).unwrap_or(self.objects.len());
        if id == self.objects.len() {
            self.objects.push(LoadedObject::of(candidate, asked, by));
        }
        if let Some(object) = self.objects.get_mut(id) {
            object.names.push(name.to_vec());
        }
        id
    }

    /// Checks that each symbol version that the objects from `first` on require is defined by the object that it must
    /// come from.
    fn check_versions(&self, first: usize) -> Result<(), Stop> {
        for object in self.objects.iter().skip(first) {
            for need in &object.elf.version_needs {
                let Some(giver) = self.objects.iter().find(|other| other.is_named(need.file.as_bytes())) else {
                    continue;
                };
                // A library without versions passes with a warning.
                let gives = &giver.elf.version_gives;
                let missing = need.versions.iter().find(|version| !gives.is_empty() && !gives.contains(version));
                if let Some(version) = missing {
                    let giver = escape(&giver.opened);
                    let object = escape(&object.opened);
                    let why = format!("{giver}: version `{version}' not found (required by {object})");
                    return Err(Stop::Fails(why));
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, name: &[u8], asked: Requester, mut steps: Vec<SearchStep>, id: Option<usize>) {
        let object = id.and_then(|id| self.objects.get(id));
        if let (Some(object), true) = (object, steps.is_empty()) {
            let end = SearchEnd::SameFile(object.path.clone());
            steps.push(SearchStep { route: Route::Loaded, path: escape(&object.opened), end });
        }
        let found = object.map(|object| object.path.clone());
        self.searches.push(LoaderSearch { name: escape(name), by: self.asker(asked), steps, found });
    }

    /// Describes the origin of a request.
    fn asker(&self, asked: Requester) -> String {
        let path = |id: usize| self.objects.get(id).map(|object| object.path.to_string()).unwrap_or_default();
        match asked {
            Requester::Program | Requester::Interpreter => "the kernel".to_owned(),
            Requester::Preload => "LD_PRELOAD".to_owned(),
            Requester::PreloadFile => "/etc/ld.so.preload".to_owned(),
            Requester::Needed(by) => format!("needed by {}", path(by)),
            Requester::Dlopen(by) => format!("dlopen from {}", path(by)),
        }
    }
}

impl<'a> LoadedObject<'a> {
    fn new(
        path: ImagePath,
        file: Option<RootFile<'a>>,
        elf: &'a ElfInfo,
        opened: Vec<u8>,
        asked: Requester,
        route: Route,
        brought_by: Option<usize>,
    ) -> Self {
        Self { path, file, elf, asked, route, needs: Vec::new(), opened, names: Vec::new(), brought_by }
    }

    fn of(candidate: LibraryCandidate<'a>, asked: Requester, by: usize) -> Self {
        let LibraryCandidate { opened, path, file, elf, route } = candidate;
        // The loader forgets which object called dlopen once the file is found.
        let brought_by = if matches!(asked, Requester::Dlopen(_)) { None } else { Some(by) };
        Self::new(path, Some(file), elf, opened, asked, route, brought_by)
    }

    /// Returns true when a name stands for this object: a name under which it was requested, the path through which it
    /// was opened, or its soname.
    fn is_named(&self, name: &[u8]) -> bool {
        let is_program = self.asked == Requester::Program;
        self.names.iter().any(|known| known == name)
            || (!is_program && self.opened == name)
            || self.elf.soname.as_ref().is_some_and(|soname| soname.as_bytes() == name)
    }
}
