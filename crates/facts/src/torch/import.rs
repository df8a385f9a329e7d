//! `import torch` in the simulated loader: the interpreter, then each library in the order in which `torch/__init__.py`
//! loads it.

use std::ops::Range;
use std::rc::Rc;

use model::{Fact, Gap, ImageConfig, ImagePath, escape};
use rootfs::RootFs;
use rootfs::loader::{Bound, CpuLevel, DlopenMode, LoadedObject, Loader, Process, Requester, Stop};

use super::super::extension::ImportWalk;
use super::super::python::Python;
use super::super::text;
use super::Installation;
use super::installation::EMPTY_MODULE;
use super::interpreter::with_python;
use super::preload::{Preload, Recipe, matches, recipe};
use super::{extension, own_modules, requirements};

/// The process after `import torch`.
#[derive(Clone, Debug)]
pub(crate) struct Import<'a> {
    pub(crate) process: Process<'a>,
    /// Objects that torch opened, in order.
    asked_for: Vec<usize>,
    /// The objects that the program opened before it imports torch.
    before: Range<usize>,
    /// The message of the loader or of Python if the import fails.
    pub(crate) failure: Option<String>,
    /// What in the image makes it fail, where the message does not name that.
    pub(crate) cause: Option<String>,
}

/// Inputs of the import.
struct Importer<'w, 'a> {
    rootfs: &'a RootFs,
    python: &'w Python,
    /// The package, by the path through which Python finds it.
    package: &'w ImagePath,
    /// Major version of the CUDA release that torch was built with.
    cuda: Option<String>,
    /// True when `TORCH_USE_RTLD_GLOBAL` replaces the global dependencies by `RTLD_GLOBAL`.
    is_global: bool,
}

/// Imports the torch that this check covers, on all CPU levels; returns one process if the levels agree.
pub(crate) fn import<'a>(
    rootfs: &'a RootFs,
    config: Option<&ImageConfig>,
    loader: &Rc<Loader<'a>>,
    python: Option<&Python>,
    torch: &Installation,
) -> Fact<Vec<Import<'a>>> {
    let (package, at) = match (&torch.imported_as, &torch.chosen) {
        (Some(package), Fact::Seen { at, .. }) => (package, at),
        (_, Fact::Unknown(gap)) => return Fact::Unknown(gap.clone()),
        _ => return Fact::Absent,
    };
    let imports = with_python(rootfs, config, python, package, |python| {
        let importer = Importer::new(rootfs, config, python, package);
        let run = |level| importer.run(loader, level);
        run(CpuLevel::V3).and_then(|import| {
            let more = import.process.depends_on_level().then(|| run(CpuLevel::V4)).transpose()?;
            Ok([import].into_iter().chain(more).collect())
        })
    });
    match imports {
        Some(Ok(imports)) => Fact::Seen { value: imports, at: at.clone() },
        Some(Err(gap)) => Fact::Unknown(gap),
        None => Fact::Unknown(Gap::new(format!("no interpreter found that imports {package}"))),
    }
}

impl<'a> Import<'a> {
    /// The process of a program that is judged in place of `import torch`.
    pub(crate) fn of_program(process: Process<'a>) -> Self {
        let failure = process.failure().map(ToOwned::to_owned);
        Self { process, asked_for: Vec::new(), before: 0..0, failure, cause: None }
    }

    /// The object with the interpreter's own code, which opens modules; it may be in a separate library.
    pub(crate) fn interpreter(&self) -> usize {
        let mut objects = self.process.objects().iter();
        objects.position(|object| object.path.file_name().starts_with(b"libpython3")).unwrap_or(0)
    }

    /// The objects that the program and torch loaded, each once, without those of other Python modules.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &LoadedObject<'a>> {
        let first = self.process.objects().iter().enumerate();
        let first = first.filter(|(_, object)| !matches!(object.asked, Requester::Needed(_) | Requester::Dlopen(_)));
        let roots = first.map(|(id, _)| id).chain(self.asked_for.iter().copied());
        self.process.closure(roots).into_iter().filter_map(|id| self.process.objects().get(id))
    }

    /// The objects that the program mapped before it imports torch, each with the path of the one that asked for it.
    pub(crate) fn before(&self) -> impl Iterator<Item = (&LoadedObject<'a>, Option<&ImagePath>)> {
        let objects = self.process.objects();
        objects.get(self.before.clone()).unwrap_or_default().iter().map(|object| {
            let by = match object.asked {
                Requester::Needed(by) => objects.get(by).map(|by| &by.path),
                _ => None,
            };
            (object, by)
        })
    }

    /// Result of `dlopen` of a name, called by the object with this path; `None` if there is no such object.
    pub(crate) fn dlopen(&self, name: &str, caller: &ImagePath) -> Option<Result<Option<Bound>, Gap>> {
        let caller = self.process.objects().iter().position(|object| object.path == *caller)?;
        Some(self.process.bound(name, caller))
    }
}

impl<'w, 'a> Importer<'w, 'a> {
    fn new(rootfs: &'a RootFs, config: Option<&ImageConfig>, python: &'w Python, package: &'w ImagePath) -> Self {
        let is_global = config.and_then(|config| config.environment.get("TORCH_USE_RTLD_GLOBAL"));
        let is_global = is_global.is_some_and(|value| !value.is_empty());
        Self { rootfs, python, package, cuda: cuda_major(rootfs, package), is_global }
    }

    fn run(&self, loader: &Rc<Loader<'a>>, level: CpuLevel) -> Result<Import<'a>, Gap> {
        let program = self.python.program.as_ref().map_err(Clone::clone)?;
        let process = Process::start(loader, level, program)?;
        if let Some(why) = process.failure() {
            return Err(Gap::new(format!("{program} does not start: {why}")));
        }
        let mut import = Import { process, asked_for: Vec::new(), before: 0..0, failure: None, cause: None };
        match self.carry_out(&mut import) {
            Ok(()) => {}
            Err(Stop::Unknown(gap)) => return Err(gap),
            Err(Stop::Fails(why)) => import.failure = Some(why),
        }
        Ok(import)
    }

    fn carry_out(&self, import: &mut Import<'a>) -> Result<(), Stop> {
        if !self.python.imports(self.rootfs, self.package) {
            return Err(Stop::Fails("ModuleNotFoundError: No module named 'torch'".to_owned()));
        }
        let init = match text(self.rootfs, &self.code()) {
            Fact::Seen { value, .. } => Some(value),
            Fact::Absent => None,
            Fact::Unknown(gap) => return Err(gap.into()),
        };
        if !self.is_pytorch(init.unwrap_or_default()) {
            return self.import_other(init);
        }
        let init = init.unwrap_or_default();
        let failures = [
            requirements::failure(self.rootfs, self.python, init),
            own_modules::failure(self.rootfs, self.package, init),
        ];
        if let Some((_, failure)) = failures.into_iter().flatten().min() {
            return Err(Stop::Fails(failure));
        }
        if let Some(cause) = extension::lacks_ctypes(self.rootfs, self.python) {
            import.cause = Some(cause);
            return Err(Stop::Fails("ModuleNotFoundError: No module named '_ctypes'".to_owned()));
        }
        if let Some(gap) = own_modules::cut(self.rootfs, self.package) {
            return Err(gap.into());
        }
        let interpreter = import.interpreter();
        // ctypes calls dlopen from its own module, unless it is built into the interpreter.
        let caller = match extension::find(self.rootfs, self.python, &self.python.path, "_ctypes") {
            Some(module) => import.process.dlopen(&module, interpreter, DlopenMode::NOW)?,
            None => interpreter,
        };
        let first = import.process.objects().len();
        // A library that is mapped is the one that others need by its name. One that is missing ends the program, or nothing.
        for (library, is_global) in &self.python.opened {
            let mode = DlopenMode { is_global: *is_global, ..DlopenMode::NOW };
            if let Err(Stop::Unknown(gap)) = import.process.dlopen(library, caller, mode) {
                return Err(gap.into());
            }
        }
        import.process = ImportWalk::before_torch(self.rootfs, self.python, import);
        import.before = first..import.process.objects().len();
        let mode = if self.is_global {
            DlopenMode { is_global: true, ..DlopenMode::LAZY }
        } else {
            self.load_global_deps(import, init, caller)?;
            DlopenMode::NOW
        };
        let folder = [self.package.clone()];
        let Some(module) = extension::find(self.rootfs, self.python, &folder, extension::NAME) else {
            let (stop, cause) = extension::missing(self.rootfs, self.python, self.package, init);
            import.cause = cause;
            return Err(stop);
        };
        load(import, &module, interpreter, mode)?;
        self_opened(import)
    }

    /// The file of the package's own code, or the only one.
    fn code(&self) -> ImagePath {
        let is_package = self.rootfs.is_directory(self.package);
        if is_package { self.package.join(b"__init__.py") } else { self.package.clone() }
    }

    /// True unless something else has the name.
    fn is_pytorch(&self, init: &[u8]) -> bool {
        self.rootfs.open(&self.package.join(b"version.py")).is_ok() || memchr::memmem::find(init, b"_C").is_some()
    }

    /// Imports what has torch's name and is not PyTorch; `code` is `None` without source.
    fn import_other(&self, code: Option<&[u8]>) -> Result<(), Stop> {
        match code {
            Some(code) if own_modules::does_nothing(code) => Ok(()),
            // Only a directory has the name.
            None if self.rootfs.open(&self.package.join(b"__init__.pyc")).is_err() => {
                Err(Stop::Fails(EMPTY_MODULE.to_owned()))
            }
            _ => {
                let why = format!("{} is not PyTorch, and what its import does is not followed", self.code());
                Err(Gap::new(why).into())
            }
        }
    }

    /// `torch._load_global_deps`.
    fn load_global_deps(&self, import: &mut Import<'_>, init: &[u8], caller: usize) -> Result<(), Stop> {
        let Some(recipe) = recipe(init) else { return Ok(()) };
        let library = format!("{}/lib/libtorch_global_deps.so", extension::spelled(self.package));
        match load(import, &library, caller, DlopenMode::GLOBAL) {
            Ok(_) => {
                let Some((mark, preloads)) = &recipe.afterwards else { return Ok(()) };
                let is_mapped = import.process.objects().iter().any(|object| object.path.to_string().contains(mark));
                if is_mapped {
                    for preload in preloads {
                        match self.preload(import, preload, &recipe, caller) {
                            // Any failure ends the preloading silently.
                            Err(Stop::Fails(_)) => break,
                            other => other?,
                        }
                    }
                }
                Ok(())
            }
            Err(Stop::Fails(why)) if recipe.errors.iter().any(|name| why.contains(name)) => {
                for preload in &recipe.otherwise {
                    self.preload(import, preload, &recipe, caller)?;
                }
                load(import, &library, caller, DlopenMode::GLOBAL).map(|_| ())
            }
            Err(stop) => Err(stop),
        }
    }

    /// `torch._preload_cuda_deps`: the library from the first directory in `sys.path` that has it.
    fn preload(&self, import: &mut Import<'_>, preload: &Preload, recipe: &Recipe, caller: usize) -> Result<(), Stop> {
        let mut candidates = Vec::new();
        for folder in &self.python.path {
            candidates = self.candidates(import, folder, preload, recipe)?;
            if !candidates.is_empty() {
                break;
            }
        }
        if candidates.is_empty() {
            let missing = format!("{} not found in the system path", preload.pattern);
            return if preload.required { Err(Stop::Fails(missing)) } else { Ok(()) };
        }
        match candidates.as_slice() {
            [only] => load(import, &extension::spelled(only), caller, DlopenMode::NOW).map(|_| ()),
            several => {
                let names: Vec<_> = several.iter().map(ToString::to_string).collect();
                let why = format!("torch loads the first of {} in arbitrary directory order", names.join(" and "));
                Err(Gap::new(why).into())
            }
        }
    }

    /// The matching files in the first directory that has any. Each name that is compared is a step of the process.
    fn candidates(
        &self,
        import: &mut Import<'_>,
        folder: &ImagePath,
        preload: &Preload,
        recipe: &Recipe,
    ) -> Result<Vec<ImagePath>, Gap> {
        let nvidia = folder.join(b"nvidia");
        let mut folders = vec![nvidia.join(preload.folder.as_bytes())];
        if let Some(cuda) = self.cuda.as_ref().filter(|_| recipe.in_toolkit) {
            folders.push(nvidia.join(format!("cu{cuda}").as_bytes()));
        }
        if recipe.beside {
            folders.push(folder.join(preload.folder.as_bytes()));
        }
        for folder in folders {
            let lib = folder.join(b"lib");
            let mut found = Vec::new();
            import.process.count_step(preload.pattern.len())?;
            for name in self.rootfs.names(&lib) {
                import.process.count_step(preload.pattern.len())?;
                if matches(preload.pattern.as_bytes(), name) {
                    found.push(lib.join(name));
                }
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }
}

/// Libraries that libtorch_cpu opens by name when it is loaded: nvFuser in PyTorch 2.0 and 2.1
/// (`torch/csrc/jit/codegen/cuda/interface.cpp`, `LoadingNvfuserLibrary`). Without the library there is only a warning.
fn self_opened(import: &mut Import<'_>) -> Result<(), Stop> {
    let Some(caller) = import.process.named("libtorch_cpu.so") else { return Ok(()) };
    match load(import, "libnvfuser_codegen.so", caller, DlopenMode::NOW) {
        Ok(_) | Err(Stop::Fails(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

fn load(import: &mut Import<'_>, path: &str, caller: usize, mode: DlopenMode) -> Result<usize, Stop> {
    let id = import.process.dlopen(path, caller, mode)?;
    import.asked_for.push(id);
    Ok(id)
}

fn cuda_major(rootfs: &RootFs, package: &ImagePath) -> Option<String> {
    let version = text(rootfs, &package.join(b"version.py"));
    let captures = super::version::CUDA.captures(version.value()?)?;
    let cuda = captures.get(1)?.as_bytes();
    Some(escape(cuda.split(|&byte| byte == b'.').next()?))
}
