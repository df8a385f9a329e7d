//! The Python that the image starts, and the directories that it imports from.

mod budget;
mod code;
mod condition;
mod editable;
mod environment;
mod expression;
mod files;
mod first;
mod modules;
mod options;
mod prefix;
mod program;
mod pyenv;
mod run;
mod search;
mod site;
mod source;
mod variables;
mod venv;
mod version;

use std::collections::BTreeSet;

use model::{Fact, Found, Gap, ImagePath, PythonImports, Site};
use rootfs::{RootFile, RootFs};

use super::start::PythonCall;
use super::{Context, Facts, key};

pub(super) use files::ProcessFiles;
use first::FirstEntry;
pub(super) use modules::{Importable, absolute};
use options::PathOptions;
pub(super) use run::{BuildCall, BuildKind};
pub(super) use search::ModuleImport;
use search::ModuleSearch;
use site::SitePath;
pub(super) use variables::ChangedVariables;
use version::PythonVersion;

/// An interpreter of the image.
#[derive(Debug)]
pub(super) struct Python {
    /// The call that runs it.
    pub(super) call: PythonCall,
    site: Site,
    /// The file that runs, or why it is unknown.
    pub(super) program: Result<ImagePath, Gap>,
    /// Minor version of Python 3.
    pub(super) minor: Option<u32>,
    /// Existing directories of `sys.path`, in order.
    pub(super) path: Vec<ImagePath>,
    /// The directories of `path` that packages are installed in.
    pub(super) site_packages: Vec<ImagePath>,
    /// Files that run code when this interpreter starts, and may change where it imports from.
    pub(super) hooks: Vec<ImagePath>,
    /// What its own code does to its variables.
    pub(super) changed: ChangedVariables,
    /// Libraries that the program opens before it imports torch, true where their symbols are global.
    pub(super) opened: Vec<(String, bool)>,
    /// Calls of the program that certainly run and compile code.
    pub(super) builds: Vec<BuildCall>,
    /// The mark of its virtual environment, if the user cannot read it: then it does not start.
    pub(super) unreadable_mark: Option<ImagePath>,
    /// True if permissions refuse it nothing.
    is_unlimited: bool,
    modules: Result<ModuleSearch, Gap>,
}

impl Python {
    /// The interpreter that a call runs, if it exists.
    pub(super) fn of(rootfs: &RootFs, call: &PythonCall) -> Option<Self> {
        Self::seeing(&ProcessFiles::of(rootfs, &call.state), call)
    }

    /// The same interpreter if no permission refused it anything; `None` if that makes no difference.
    pub(super) fn unlimited(&self, rootfs: &RootFs) -> Option<Self> {
        let files = ProcessFiles::of(rootfs, &self.call.state);
        if files.is_unlimited() { None } else { Self::seeing(&files.unlimited(), &self.call) }
    }

    fn seeing(files: &ProcessFiles<'_>, call: &PythonCall) -> Option<Self> {
        let rootfs = files.rootfs;
        let (real, file) = rootfs.open(&call.program).ok()?;
        let site = file.site(&real, None);
        let (call, program) = match pyenv::behind_shim(files, &call.state, &call.program, &real) {
            None => (call.clone(), Ok(real)),
            Some(Ok(behind)) => {
                let real = rootfs.open(&behind).ok()?.0;
                (call.of(behind), Ok(real))
            }
            Some(Err(gap)) => (call.clone(), Err(gap)),
        };
        // Another value of these variables may choose another interpreter, or another path for its packages.
        let gap = call.state.any_unknown(|name| name == "PATH" || name.starts_with("PY"));
        let program = gap.map_or(program, |gap| Err(gap.clone()));
        let mut python = Self {
            site,
            minor: None,
            path: Vec::new(),
            site_packages: Vec::new(),
            hooks: Vec::new(),
            changed: ChangedVariables::default(),
            opened: Vec::new(),
            builds: Vec::new(),
            unreadable_mark: None,
            is_unlimited: files.is_unlimited(),
            modules: Err(Gap::new("its path was not computed")),
            program,
            call,
        };
        python.modules = match python.program.clone() {
            Ok(real) => python.compute(files, &real),
            Err(gap) => Err(gap),
        };
        // A path that was not followed to its end is as good as none.
        Some(match files.budget.gap() {
            None => python,
            Some(gap) => Self {
                minor: None,
                path: Vec::new(),
                site_packages: Vec::new(),
                hooks: Vec::new(),
                modules: Err(gap.clone()),
                program: Err(gap),
                ..python
            },
        })
    }

    /// What `import NAME` imports, or why it is unknown.
    pub(super) fn import(&self, rootfs: &RootFs, name: &str) -> Result<ModuleImport, Gap> {
        let modules = self.modules.as_ref().map_err(Clone::clone)?;
        let files = ProcessFiles::of(rootfs, &self.call.state);
        modules.import(&if self.is_unlimited { files.unlimited() } else { files }, name)
    }

    /// The module that is imported by a name in place of an installed one, and that one; an error if the path is unknown.
    pub(super) fn hidden(&self, rootfs: &RootFs, name: &str) -> Result<Option<(Importable, Importable)>, Gap> {
        let modules = self.modules.as_ref().map_err(Clone::clone)?;
        Ok(modules.hidden(&ProcessFiles::of(rootfs, &self.call.state), name))
    }

    /// Why a module may be found that no entry of the path has.
    pub(super) fn doubt(&self, rootfs: &RootFs, name: &str) -> Option<Gap> {
        let modules = self.modules.as_ref().ok()?;
        modules.doubt(&ProcessFiles::of(rootfs, &self.call.state), name)
    }

    /// What a package has for the name of a module.
    pub(super) fn within(&self, rootfs: &RootFs, package: &ImagePath, name: &str) -> Option<Importable> {
        let version = self.modules.as_ref().ok()?.version;
        let files = ProcessFiles::of(rootfs, &self.call.state);
        modules::in_entry(&if self.is_unlimited { files.unlimited() } else { files }, version, package, name)
    }

    /// True if `import torch` imports this package.
    pub(super) fn imports(&self, rootfs: &RootFs, package: &ImagePath) -> bool {
        let found = || self.import(rootfs, "torch").ok()?.found;
        self.path.contains(&package.parent()) || found().is_some_and(|found| found.path() == package)
    }

    /// `sys.path`, with entries that do not exist.
    #[cfg(test)]
    fn entries(&self) -> &[ImagePath] {
        self.modules.as_ref().map_or(&[], |modules| &modules.entries)
    }

    /// Computes `sys.path`.
    fn compute(&mut self, files: &ProcessFiles<'_>, real: &ImagePath) -> Result<ModuleSearch, Gap> {
        let call = self.call.clone();
        let environment = call.program.parent();
        let home = [environment.parent(), environment].iter().find_map(|folder| venv::lines(files, folder));
        let home = home.and_then(|lines| venv::home(&lines)).map(|home| files.absolute(home.as_bytes()));
        let reads_environment = !call.flags.ignores_environment && !call.flags.isolated;
        let own_home = call.state.known("PYTHONHOME").filter(|home| reads_environment && !home.is_empty());
        // `PREFIX:EXEC_PREFIX`
        let prefix = own_home.map(|home| home.split_once(':').map_or(home, |(prefix, _)| prefix));
        let home = prefix.map(|prefix| files.absolute(prefix.as_bytes()).join(b"bin")).or(home);
        let version = PythonVersion::of(files.rootfs, real, &home.unwrap_or_else(|| real.parent()));
        let version = version.ok_or_else(|| {
            Gap::new(format!("the version of {real} is unknown: neither its name nor a standard library shows it"))
        })?;
        self.minor = Some(version.minor);
        let mut options = PathOptions::of(&call, version);
        let start = prefix::prefixes(files, &call, version, &mut options)?;
        files.budget.spend(site::ENTRY * start.path.len());
        let mut path = SitePath::new(files, &call, version, options, &start);
        if options.site {
            path.run(&start);
        }
        let mut own = None;
        let program = match first::first(files, &call, options) {
            FirstEntry::None => None,
            FirstEntry::Folder(folder) => {
                path.entries.insert(0, folder.clone());
                own = Some(folder);
                None
            }
            FirstEntry::Archive(file) => Some(file),
        };
        path.run_program(&call.target);
        let SitePath {
            entries,
            packages,
            hooks,
            opaque,
            finders,
            unreadable_mark,
            changed,
            opened,
            is_understood,
            builds,
            compiles,
            unfollowed,
            missing,
            ..
        } = path;
        self.changed = changed;
        self.opened = opened;
        self.builds = if compiles { builds } else { Vec::new() };
        if !is_understood {
            return Err(Gap::new("the code behind -c changes sys.path in a way that is not understood"));
        }
        self.unreadable_mark = unreadable_mark;
        self.path = each_once(entries.iter().filter(|entry| files.is_directory(entry)).cloned());
        let is_standard = |entry: &ImagePath| *entry == start.standard || entry.file_name() == b"lib-dynload";
        let is_own = |entry: &ImagePath| own.as_ref() == Some(entry);
        let is_of_packages = |entry: &&ImagePath| packages.contains(entry) || !(is_standard(entry) || is_own(entry));
        self.site_packages = self.path.iter().filter(is_of_packages).cloned().collect();
        self.hooks = each_once(hooks);
        let archive = start.base[0].join(start.libraries.as_bytes()).join(&version.archive());
        let finders = each_once(finders);
        let opaque = each_once(opaque);
        let standard = start.standard;
        let gap = files.doubt();
        Ok(ModuleSearch { version, entries, standard, archive, finders, opaque, unfollowed, missing, program, gap })
    }
}

/// What a Python file imports, if its code was read.
pub(super) fn imports<'a>(file: &RootFile<'a>) -> Option<&'a PythonImports> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::PythonImports(imports)) => Some(imports),
        _ => None,
    })
}

/// The paths in their order, without repetitions.
fn each_once(paths: impl IntoIterator<Item = ImagePath>) -> Vec<ImagePath> {
    let mut known = BTreeSet::new();
    paths.into_iter().filter(|path| known.insert(path.clone())).collect()
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let gap = context.config.and_then(|config| config.unknown.among(&["PATH"]));
    let gap = context.start.gap.as_ref().or(gap);
    let Some(python) = &context.python else {
        facts.insert(key::PYTHON_PATH, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        facts.insert(key::PYTHON_SITE_PACKAGES, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        facts.insert(key::PYTHON_STARTUP_CODE, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        return;
    };
    let name = || Fact::seen(python.call.program.clone(), [python.site.clone()]);
    facts.insert(key::PYTHON_PATH, gap.map_or_else(name, |gap| Fact::Unknown(gap.clone())));
    let folders: Vec<_> = python.site_packages.iter().map(ToString::to_string).collect();
    let folders = match (&python.program, folders.is_empty()) {
        (Err(gap), _) => Fact::Unknown(gap.clone()),
        (Ok(_), true) => {
            let why = format!("{} has no directory to import packages from", python.call.program);
            Fact::Unknown(Gap::new(why))
        }
        (Ok(_), false) => Fact::seen(folders, [python.site.clone()]),
    };
    facts.insert(key::PYTHON_SITE_PACKAGES, folders);
    let hooks: Vec<_> = python.hooks.iter().map(ToString::to_string).collect();
    facts.insert(
        key::PYTHON_STARTUP_CODE,
        match &python.program {
            Err(gap) => Fact::Unknown(gap.clone()),
            Ok(_) if hooks.is_empty() => Fact::Absent,
            Ok(_) => Fact::seen(hooks, [python.site.clone()]),
        },
    );
}

#[cfg(test)]
mod tests;
