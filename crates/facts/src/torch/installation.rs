//! The torch packages of the image, and which one is imported.

use model::{Fact, Gap, ImagePath, Site};
use rootfs::{Credentials, Denied, FileAccess, Refusal, RootFs};

use super::super::packages::is_stored;
use super::super::python::{Importable, ModuleImport, ProcessFiles, Python};
use super::super::start::{ContainerUser, PythonCall};
use super::super::{Facts, key};

/// Python's message if it finds nothing.
const NO_MODULE: &str = "ModuleNotFoundError: No module named 'torch'";

/// Its message if only a directory without code has the name, when a program first uses it.
pub(super) const EMPTY_MODULE: &str = "AttributeError: module 'torch' has no attribute '__version__'";

/// An import that permissions prevent.
struct RefusedImport {
    /// The mode to blame.
    why: String,
    /// Python's message.
    message: String,
}

/// The torch packages of an image.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) all: Vec<(ImagePath, Site)>,
    /// The one that this check covers.
    pub(crate) chosen: Fact<ImagePath>,
    /// The path through which Python finds it; links are not followed.
    pub(crate) imported_as: Option<ImagePath>,
    /// What is imported as torch and is not PyTorch, and the PyTorch that it hides.
    pub(crate) shadow: Option<(ImagePath, Option<ImagePath>)>,
    /// Packages of other interpreters, if the image's Python imports no torch.
    pub(crate) elsewhere: Vec<ImagePath>,
    /// The interpreter that imports one of them.
    other_python: Option<ImagePath>,
    /// The environment of the image's Python, which that interpreter can make again.
    other_venv: Option<ImagePath>,
    /// The torch that would be imported if the user could read it, and why the user cannot.
    pub(crate) unreadable: Option<String>,
    /// Python's message, if the import fails before any library is opened.
    pub(crate) failure: Option<String>,
}

impl Installation {
    /// No torch, in an image whose subject does not import it.
    pub(crate) const fn none() -> Self {
        Self {
            all: Vec::new(),
            chosen: Fact::Absent,
            imported_as: None,
            shadow: None,
            elsewhere: Vec::new(),
            other_python: None,
            other_venv: None,
            unreadable: None,
            failure: None,
        }
    }

    pub(crate) fn find(rootfs: &RootFs, python: Option<&Python>) -> Self {
        let (all, other): (Vec<_>, Vec<_>) = packages(rootfs).into_iter().partition(|(path, _)| is_installed(path));
        let mut found = Self { all, ..Self::none() };
        match python {
            None => found.chosen = found.only(),
            Some(python) => match python.import(rootfs, "torch") {
                Ok(import) => found.settle(rootfs, python, import, &other),
                Err(_) if found.all.is_empty() && other.is_empty() => found.chosen = Fact::Absent,
                Err(gap) => found.chosen = Fact::Unknown(gap),
            },
        }
        if found.imported_as.is_none() {
            found.imported_as = found.chosen.value().cloned();
        }
        found
    }

    /// Inserts the facts about an import that does not find PyTorch.
    pub(super) fn produce(&self, facts: &mut Facts) {
        // What is not imported is unknown where the import is.
        let or_unknown = |fact: Option<String>| match (&self.chosen, fact) {
            (Fact::Unknown(gap), None) => Fact::Unknown(gap.clone()),
            (_, fact) => Fact::from(fact),
        };
        let shadow = self.shadow.as_ref().map(|(path, hidden)| match hidden {
            Some(hidden) => format!("{path}, which hides {hidden}"),
            None => path.to_string(),
        });
        facts.insert(key::TORCH_SHADOW, or_unknown(shadow));
        facts.insert(key::TORCH_UNREADABLE, or_unknown(self.unreadable.clone()));
        let elsewhere: Vec<_> = self.elsewhere.iter().map(ToString::to_string).collect();
        let elsewhere = match &self.chosen {
            Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
            _ => Fact::from(Some(elsewhere).filter(|paths| !paths.is_empty())),
        };
        let home = elsewhere.clone().and_then(|_, _| {
            let mut homes = self.all.iter().filter_map(|(package, site)| Some((home_of(package)?, site.clone())));
            homes.next().map_or(Fact::Absent, |(home, site)| Fact::seen(home, [site]))
        });
        let if_elsewhere = |path: &Option<ImagePath>| elsewhere.clone().and_then(|_, _| path.clone().into());
        facts.insert(key::TORCH_OTHER_HOME, home);
        facts.insert(key::TORCH_OTHER_PYTHON, if_elsewhere(&self.other_python));
        facts.insert(key::TORCH_OTHER_VENV, if_elsewhere(&self.other_venv));
        facts.insert(key::TORCH_NOT_IMPORTED, elsewhere);
    }

    /// Without a Python: the only package.
    fn only(&self) -> Fact<ImagePath> {
        match self.all.as_slice() {
            [] => Fact::Absent,
            [(package, site)] => Fact::seen(package.clone(), [site.clone()]),
            several => {
                let paths: Vec<_> = several.iter().map(|(package, _)| package.to_string()).collect();
                Fact::Unknown(Gap::new(format!(
                    "there are {} torch packages, and no Python that imports one of them: {}",
                    several.len(),
                    paths.join(", ")
                )))
            }
        }
    }

    /// Takes what the image's Python imports.
    fn settle(&mut self, rootfs: &RootFs, python: &Python, import: ModuleImport, other: &[(ImagePath, Site)]) {
        let real = import.found.as_ref().and_then(|found| real_package(rootfs, found));
        let is_other = |package: &ImagePath| real.as_ref().is_none_or(|(real, _)| real != package);
        let mut others = self.all.iter().chain(other).map(|(package, _)| package).filter(|package| is_other(package));
        if let (Some(code), Some(package)) = (import.opaque.first(), others.next()) {
            let why =
                format!("{code} runs before torch is imported, and may change which one that is: {package} is another");
            self.chosen = Fact::Unknown(Gap::new(why).settled_by("remove the torch that is not used"));
            return;
        }
        if let Some(why) = unreadable(rootfs, python, import.found.as_ref()) {
            match why {
                Ok(refused) => {
                    self.unreadable = Some(refused.why);
                    self.failure = Some(refused.message);
                }
                Err(gap) => self.chosen = Fact::Unknown(gap),
            }
            return;
        }
        match (import.found, real) {
            (Some(found), Some((real, site))) => {
                if !self.all.iter().any(|(package, _)| *package == real) {
                    self.all.push((real.clone(), site.clone()));
                }
                self.imported_as = Some(found.path().clone());
                self.chosen = Fact::seen(real, [site]);
            }
            (Some(found), None) => {
                self.chosen = Fact::known(found.path().clone());
                let hidden = self.all.first().map(|(package, _)| package.clone());
                self.shadow = Some((found.path().clone(), hidden));
            }
            (None, _) => {
                self.elsewhere = self.all.iter().map(|(package, _)| package.clone()).collect();
                self.chosen = self.of_other_interpreter(rootfs, python);
                self.other_python = self.elsewhere.iter().find_map(|package| interpreter_of(rootfs, python, package));
                let prefix = |program: &ImagePath| program.parent().parent();
                let is_venv = |prefix: &ImagePath| rootfs.open(&prefix.join(b"pyvenv.cfg")).is_ok();
                let is_base = self.other_python.as_ref().is_some_and(|other| !is_venv(&prefix(other)));
                self.other_venv = Some(prefix(&python.call.program)).filter(|prefix| is_base && is_venv(prefix));
                self.failure = (!self.elsewhere.is_empty()).then(|| NO_MODULE.to_owned());
            }
        }
    }

    /// The only package, if the interpreter of its own environment imports it.
    fn of_other_interpreter(&self, rootfs: &RootFs, python: &Python) -> Fact<ImagePath> {
        let [(package, site)] = self.all.as_slice() else { return Fact::Absent };
        let folder = package.parent();
        let programs = folder.parent().parent().parent().join(b"bin");
        let finds_it = [&b"python3"[..], b"python"].into_iter().any(|name| {
            let call = PythonCall::plain(programs.join(name), python.call.state.clone());
            Python::of(rootfs, &call).is_some_and(|other| other.path.contains(&folder))
        });
        if finds_it { Fact::seen(package.clone(), [site.clone()]) } else { Fact::Absent }
    }
}

/// The interpreter that imports a package: one of its environment, or of the system with its version.
fn interpreter_of(rootfs: &RootFs, python: &Python, package: &ImagePath) -> Option<ImagePath> {
    let folder = package.parent();
    let version = folder.parent();
    let own = version.parent().parent().join(b"bin");
    let folders = [own, ImagePath::from("/usr/local/bin"), ImagePath::from("/usr/bin")];
    let names = [&b"python3"[..], b"python", version.file_name()];
    let mut programs = folders.iter().flat_map(|folder| names.map(|name| folder.join(name)));
    programs.find(|program| {
        let call = PythonCall::plain(program.clone(), python.call.state.clone());
        Python::of(rootfs, &call).is_some_and(|other| other.path.contains(&folder))
    })
}

/// The home directory whose user alone imports a package.
fn home_of(package: &ImagePath) -> Option<ImagePath> {
    let path = package.to_string();
    let (home, rest) = path.split_once("/.local/lib/")?;
    rest.starts_with("python").then(|| ImagePath::from(home))
}

/// Directories named torch with PyTorch's version file that can be imported by this name: not a part of another package,
/// and not a copy in the store of an installer.
fn packages(rootfs: &RootFs) -> Vec<(ImagePath, Site)> {
    let files =
        rootfs.files_named(|name| name == b"version.py").map(|(path, file)| (path.parent(), file.site(&path, None)));
    let is_own = |package: &ImagePath| {
        package.file_name() == b"torch"
            && !is_stored(rootfs, package)
            && rootfs.open(&package.parent().join(b"__init__.py")).is_err()
    };
    files.filter(|(package, _)| is_own(package)).collect()
}

/// Returns true for a package that an installer put where interpreters look.
fn is_installed(package: &ImagePath) -> bool {
    matches!(package.parent().file_name(), b"site-packages" | b"dist-packages")
}

/// The directory of a package without links, if it is PyTorch.
fn real_package(rootfs: &RootFs, found: &Importable) -> Option<(ImagePath, Site)> {
    let (Importable::Package(package, _) | Importable::Namespace(package)) = found else { return None };
    let (real, file) = rootfs.open(&package.join(b"version.py")).ok()?;
    Some((real.parent(), file.site(&real, None)))
}

/// Why the user of the process cannot import the torch that the search would find otherwise; `None` if that is not so.
fn unreadable(rootfs: &RootFs, python: &Python, found: Option<&Importable>) -> Option<Result<RefusedImport, Gap>> {
    let user = match &python.call.state.user {
        Ok(user) => user,
        Err(gap) => return unreadable_for_some(rootfs, python, found, gap).map(Err),
    };
    let files = ProcessFiles::of(rootfs, &python.call.state);
    let blame = |refusal: Refusal, about: &ImagePath, message: String| match refusal {
        Refusal::Denied(denied) => Some(Ok(RefusedImport { why: sentence(user, &denied, about), message })),
        Refusal::Unknown(gap) => Some(Err(gap)),
        Refusal::NoFile(_) => None,
    };
    let own = |path: &ImagePath, access| {
        let message = format!("PermissionError: [Errno 13] Permission denied: '{path}'");
        blame(files.refusal(path, access)?, path, message)
    };
    let program = &python.call.program;
    if let Some(refused) = own(program, FileAccess::Execute) {
        return Some(refused);
    }
    if let Some(mark) = &python.unreadable_mark {
        return own(mark, FileAccess::Read);
    }
    if let Some(Importable::Package(_, file) | Importable::Module(file)) = found {
        return own(file, FileAccess::Read);
    }
    let message = if found.is_some() { EMPTY_MODULE } else { NO_MODULE };
    let wanted = python.unlimited(rootfs)?.import(rootfs, "torch").ok()?.found?;
    let (package, file) = match &wanted {
        Importable::Package(package, file) => (package, file),
        Importable::Module(file) => (file, file),
        Importable::Namespace(_) => return None,
    };
    let refused = [file, &package.parent()]
        .into_iter()
        .find_map(|path| blame(files.refusal(path, FileAccess::Read)?, package, message.to_owned()));
    refused.or_else(|| {
        let id = user.id.unwrap_or_default();
        let why = format!("{package}: a file that leads Python there is not readable for user {id}");
        Some(Ok(RefusedImport { why, message: message.to_owned() }))
    })
}

/// Why torch may be unreadable for a user who is unknown; `None` if every user may read it.
fn unreadable_for_some(rootfs: &RootFs, python: &Python, found: Option<&Importable>, gap: &Gap) -> Option<Gap> {
    let file = match found {
        Some(Importable::Package(_, file) | Importable::Module(file)) => Some((file, FileAccess::Read)),
        _ => None,
    };
    let program = (&python.call.program, FileAccess::Execute);
    let refused = [Some(program), file].into_iter().flatten().find_map(|(path, access)| {
        match rootfs.access(&Credentials::anybody(), path.as_bytes(), access) {
            Err(Refusal::Denied(denied)) => Some((path, denied)),
            _ => None,
        }
    });
    let (path, denied) = refused?;
    let why = format!("not every user may use {denied}, which leads to {path}, and the user is unknown: {}", gap.why);
    Some(Gap::new(why).settled_by("name the user of the job with --user"))
}

fn sentence(user: &ContainerUser, denied: &Denied, path: &ImagePath) -> String {
    let id = user.id.unwrap_or_default();
    let verb = if denied.is_directory { "enter or list" } else { "use" };
    if denied.path == *path {
        return format!("user {id} may not {verb} {denied}");
    }
    format!("user {id} may not {verb} {denied}, which leads to {path}")
}

#[cfg(test)]
mod tests;
