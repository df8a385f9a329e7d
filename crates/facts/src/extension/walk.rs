//! The imports that certainly follow from one import, in their order, and the libraries that they map.

use std::collections::{BTreeMap, BTreeSet};

use model::{Gap, ImagePath, ImportCondition, PythonImport, PythonImports, Site};
use rootfs::RootFs;
use rootfs::loader::{DlopenMode, Process, Stop, elf};

use super::super::python::{Importable, Python, absolute, imports};
use super::super::start::PythonTarget;
use super::super::torch::Import;
use super::absent::RequiredModule;
use super::nvshmem::{NvshmemMismatch, mismatches};
use super::{concerns, is_of_concern, missing, opened};

/// Most modules of one walk. `import vllm` has some hundred that are read.
const MOST_MODULES: usize = 20_000;

/// Most imports within one another.
const DEPTH: usize = 100;

/// A library that the loader refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) path: ImagePath,
    /// The first component of the module that loads it.
    pub(super) package: String,
    /// The loader's message.
    pub(super) message: String,
}

impl Refused {
    /// The loader's message, with the library that was opened.
    pub(super) fn text(&self) -> String {
        let Self { path, message, .. } = self;
        if message.contains(&path.to_string()) { message.clone() } else { format!("{path} needs {message}") }
    }
}

/// A process that imports modules.
pub(crate) struct ImportWalk<'w, 'a> {
    rootfs: &'a RootFs,
    python: &'w Python,
    process: Process<'a>,
    /// Where the interpreter's own code is, which opens extensions.
    interpreter: usize,
    /// Modules that were imported, and what they are.
    pub(super) modules: BTreeMap<String, Option<Importable>>,
    /// True if some code so far may have mapped libraries in ways that no import shows.
    opens_libraries: bool,
    /// True once torch is imported, in a walk that ends there.
    has_ended: bool,
    /// True while the program ends if a module that the code imports is not installed.
    is_required: bool,
    /// Imports without which the program ends, by packages and by the job the first of each module.
    pub(super) required: Vec<RequiredModule>,
    /// The modules of these, true for those of packages.
    named: BTreeSet<(bool, String)>,
    /// Names that code gives to modules itself.
    pub(super) aliases: BTreeSet<String>,
    depth: usize,
    /// What `import bitsandbytes` opens.
    bitsandbytes: Option<ImagePath>,
    /// Libraries that concern and that load.
    pub(super) loaded: Vec<(ImagePath, Site)>,
    pub(super) refused: Vec<Refused>,
    pub(super) mismatched: Vec<NvshmemMismatch>,
    /// Why it is unknown whether a library loads.
    pub(super) gap: Option<Gap>,
}

impl<'w, 'a> ImportWalk<'w, 'a> {
    /// A walk that begins after `import torch`.
    pub(super) fn new(rootfs: &'a RootFs, python: &'w Python, import: &Import<'a>) -> Self {
        Self {
            rootfs,
            python,
            process: import.process.fork(),
            interpreter: import.interpreter(),
            modules: BTreeMap::from([("torch".to_owned(), None)]),
            opens_libraries: false,
            has_ended: false,
            is_required: false,
            required: Vec::new(),
            named: BTreeSet::new(),
            aliases: BTreeSet::new(),
            depth: 0,
            bitsandbytes: None,
            loaded: Vec::new(),
            refused: Vec::new(),
            mismatched: Vec::new(),
            gap: None,
        }
    }

    /// The same with the library that bitsandbytes opens.
    pub(super) fn with_bitsandbytes(self, library: Option<&ImagePath>) -> Self {
        Self { bitsandbytes: library.cloned(), ..self }
    }

    /// The process of a program before it imports torch, with what it imports until then.
    pub(crate) fn before_torch(rootfs: &'a RootFs, python: &'w Python, import: &Import<'a>) -> Process<'a> {
        let mut walk = Self { modules: BTreeMap::new(), ..Self::new(rootfs, python, import) };
        walk.program();
        // Without an import of torch, the order is unknown.
        if walk.has_ended { walk.process } else { import.process.fork() }
    }

    /// What the program imports.
    pub(super) fn program(&mut self) {
        let rootfs = self.rootfs;
        self.is_required = true;
        match &self.python.call.target {
            PythonTarget::Command(code) => {
                let program = self.python.call.program.clone();
                self.follow(&PythonImports::read(code.as_bytes()), &program, "", true);
            }
            PythonTarget::Script(path) => {
                let path = if rootfs.is_directory(path) { path.join(b"__main__.py") } else { path.clone() };
                self.run(&path, "", true);
            }
            PythonTarget::Module(name) => {
                let package = name.rsplit_once('.').map_or("", |(package, _)| package);
                self.import(package);
                match self.find(name) {
                    Some(Importable::Module(file)) => self.run(&file, package, true),
                    Some(Importable::Package(folder, _) | Importable::Namespace(folder)) => {
                        self.import(name);
                        self.run(&folder.join(b"__main__.py"), name, true);
                    }
                    None => {}
                }
            }
            PythonTarget::Unstated | PythonTarget::Code => {}
        }
    }

    /// `import NAME`: each package of the name, then the module.
    pub(super) fn import(&mut self, name: &str) {
        let ends = name.match_indices('.').map(|(end, _)| end).chain([name.len()]);
        for name in ends.filter_map(|end| name.get(..end)).filter(|name| !name.is_empty()) {
            self.has_ended |= name == "torch" && !self.modules.contains_key(name);
            if self.has_ended || self.modules.contains_key(name) {
                continue;
            }
            if self.modules.len() > MOST_MODULES || self.depth > DEPTH {
                return;
            }
            let found = self.find(name);
            self.modules.insert(name.to_owned(), found.clone());
            self.depth += 1;
            match found {
                Some(Importable::Package(_, init)) => self.run(&init, name, false),
                Some(Importable::Module(file)) if file.file_name().ends_with(b".so") => self.load_one(&[file], name),
                Some(Importable::Module(file)) => {
                    let package = name.rsplit_once('.').map_or("", |(package, _)| package);
                    self.run(&file, package, false);
                }
                Some(Importable::Namespace(_)) | None => {}
            }
            self.depth -= 1;
            for libraries in opened::of(name, self.rootfs, &self.python.site_packages) {
                self.load_one(&libraries, name);
            }
            if let Some(library) = self.bitsandbytes.take_if(|_| name == "bitsandbytes") {
                self.load_one(&[library], name);
            }
        }
    }

    /// What a module is, whose packages were imported.
    fn find(&self, name: &str) -> Option<Importable> {
        let rootfs = self.rootfs;
        let Some((package, own)) = name.rsplit_once('.') else {
            return self.python.import(rootfs, name).ok()?.found;
        };
        let package = self.modules.get(package)?.as_ref()?;
        match package {
            Importable::Package(folder, _) | Importable::Namespace(folder) => self.python.within(rootfs, folder, own),
            Importable::Module(_) => None,
        }
    }

    /// Runs a file as a module of a package.
    fn run(&mut self, path: &ImagePath, package: &str, is_program: bool) {
        let Ok((real, file)) = self.rootfs.open(path) else { return };
        match imports(&file) {
            Some(imports) => self.follow(imports, path, package, is_program),
            None => self.opens_libraries |= !PythonImports::are_read_of(&real, file.size),
        }
    }

    /// Follows the imports of code in a file.
    fn follow(&mut self, imports: &PythonImports, code: &ImagePath, package: &str, is_program: bool) {
        self.opens_libraries |= imports.open_libraries();
        let is_required = self.is_required;
        let holds = |import: &PythonImport<'_>| match import.condition {
            ImportCondition::None => true,
            ImportCondition::IsProgram => is_program,
            ImportCondition::Unset(_) | ImportCondition::Found(_) => false,
        };
        let required = imports.required().filter(|import| is_required && holds(import));
        for one in required.filter_map(|import| RequiredModule::of(&import, code)) {
            if self.named.insert(one.key()) {
                self.required.push(one);
            }
        }
        self.aliases.extend(imports.aliases().map(ToOwned::to_owned));
        for import in imports.iter() {
            self.is_required = is_required && holds(&import) && import.line.is_some();
            let holds = match import.condition {
                ImportCondition::None => true,
                ImportCondition::IsProgram => is_program,
                ImportCondition::Unset(name) => {
                    let state = &self.python.call.state;
                    state.gap.is_none() && !state.variables.contains_key(name)
                }
                ImportCondition::Found(name) => absolute(name, package).is_some_and(|name| {
                    // It imports the packages that the module is in.
                    self.import(name.rsplit_once('.').map_or("", |(package, _)| package));
                    self.find(&name).is_some()
                }),
            };
            if let Some(library) = import.module.strip_prefix('=') {
                if holds {
                    self.open(library, code);
                }
                continue;
            }
            let Some(module) = absolute(import.module, package).filter(|_| holds) else { continue };
            self.import(&module);
            for name in import.names.split(' ').filter(|name| !matches!(*name, "" | "*")) {
                let name = format!("{module}.{name}");
                // The module itself defines a name that is not a module.
                if !self.modules.contains_key(&name) && self.find(&name).is_some() {
                    self.import(&name);
                }
            }
        }
        self.is_required = is_required;
    }

    /// Opens a library by its name, as `ctypes.CDLL` does. The driver's libraries are not the image's.
    fn open(&mut self, name: &str, code: &ImagePath) {
        let is_of_driver = name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
        if is_of_driver || !is_of_concern(name) {
            return;
        }
        match self.process.dlopen(name, self.interpreter, DlopenMode::NOW) {
            Ok(_) => {}
            Err(Stop::Unknown(gap)) => _ = self.gap.get_or_insert(gap),
            Err(Stop::Fails(message)) => {
                self.refused.push(Refused { path: code.clone(), package: code.to_string(), message });
            }
        }
    }

    /// Opens the first of several libraries that the loader accepts. If it accepts none, the one that the image has more
    /// for counts.
    fn load_one(&mut self, paths: &[ImagePath], name: &str) {
        let mut refused = Vec::new();
        let mut may_load = false;
        for path in paths {
            match self.load(path) {
                Ok(true) => return,
                Ok(false) => may_load = true,
                Err(message) => refused.push((path.clone(), message)),
            }
        }
        if may_load {
            return;
        }
        let is_alternative = |(_, message): &(_, String)| {
            missing::library(message).map(|library| missing::has_other_version(self.rootfs, library))
        };
        if let Some((path, message)) = refused.into_iter().rev().min_by_key(is_alternative) {
            let package = name.split('.').next().unwrap_or(name).to_owned();
            self.refused.push(Refused { path, package, message });
        }
    }

    /// Opens a library as an extension module. Returns whether it certainly loads, or the loader's message if it certainly fails.
    fn load(&mut self, path: &ImagePath) -> Result<bool, String> {
        let Ok((real, file)) = self.rootfs.open(path) else { return Ok(false) };
        if !elf(&file).is_some_and(concerns) {
            return Ok(true);
        }
        let first = self.process.objects().len();
        match self.process.dlopen(&path.to_string(), self.interpreter, DlopenMode::NOW) {
            Ok(_) => {
                self.mismatched.extend(mismatches(&self.process, first));
                let site = file.site(&real, None);
                self.loaded.push((real, site));
                Ok(true)
            }
            Err(Stop::Unknown(gap)) => {
                self.gap.get_or_insert(gap);
                Ok(false)
            }
            // Code that opens libraries itself usually opens the one that is missing.
            Err(Stop::Fails(message))
                if self.opens_libraries && missing::is_elsewhere(self.rootfs, &self.process, &message) =>
            {
                Ok(false)
            }
            Err(Stop::Fails(message)) => Err(message),
        }
    }
}
