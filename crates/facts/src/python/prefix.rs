//! The entries of `sys.path` that an interpreter starts with (CPython, `Modules/getpath.py`; up to 3.10
//! `Modules/getpath.c`).

use model::{Fact, Gap, ImagePath};

use super::super::start::PythonCall;
use super::files::ProcessFiles;
use super::options::PathOptions;
use super::venv;
use super::version::{PythonVersion, ancestors};

/// What an interpreter knows of its installation before it imports `site`.
#[derive(Debug)]
pub(super) struct PythonPrefixes {
    /// `sys.executable`.
    pub(super) executable: ImagePath,
    /// `sys.base_prefix` and `sys.base_exec_prefix`.
    pub(super) base: [ImagePath; 2],
    /// `sys.prefix` if it is another one, as in virtual environments since 3.14.
    pub(super) own: Option<ImagePath>,
    /// `sys.platlibdir`.
    pub(super) libraries: String,
    /// The directory of the standard library.
    pub(super) standard: ImagePath,
    /// `sys.path`.
    pub(super) path: Vec<ImagePath>,
}

/// Most links that lead from one name of a program to the next: as many as the kernel follows.
const LINKS: usize = 40;

/// The search for the installation.
struct PrefixSearch<'w> {
    files: &'w ProcessFiles<'w>,
    call: &'w PythonCall,
    version: PythonVersion,
    options: PathOptions,
    /// `sys.executable`.
    executable: ImagePath,
    /// The file that it leads to. Links of its directories are not followed, as `getpath` does not.
    real: ImagePath,
}

/// Where the search begins.
struct Origin {
    /// The directory of the interpreter, and how many directories from it upward belong to the search.
    programs: ImagePath,
    depth: usize,
    /// The virtual environment, if a file marks one.
    environment: Option<ImagePath>,
}

/// Computes the start of `sys.path`. A `._pth` file changes the options.
pub(super) fn prefixes(
    files: &ProcessFiles<'_>,
    call: &PythonCall,
    version: PythonVersion,
    options: &mut PathOptions,
) -> Result<PythonPrefixes, Gap> {
    let own = call.state.known("PYTHONEXECUTABLE").filter(|value| version.minor >= 11 && !value.is_empty());
    let executable = own.map_or_else(|| call.program.clone(), |path| files.absolute(path.as_bytes()));
    let linked = |program: &ImagePath| Some(program.parent().join(files.rootfs.link_target(program)?));
    let names = std::iter::successors(Some(call.program.clone()), linked);
    let real = names.take(LINKS).last().unwrap_or_default();
    let search = PrefixSearch { files, call, version, options: *options, executable, real };
    match search.path_file()? {
        Some((file, lines)) => Ok(search.of_path_file(&file, &lines, options)),
        None => search.carry_out(),
    }
}

impl PrefixSearch<'_> {
    fn carry_out(self) -> Result<PythonPrefixes, Gap> {
        let home = self.options.variable(self.call, "PYTHONHOME");
        let origin = self.origin(home.is_some());
        let compiled = self.compiled_libraries(&origin, home);
        let libraries = self.libraries(compiled);
        let [prefix, exec] = match home {
            Some(home) => {
                let (prefix, exec) = home.split_once(':').unwrap_or((home, home));
                [prefix, exec].map(|part| self.files.absolute(part.as_bytes()))
            }
            None => self.found(&origin, &libraries)?,
        };
        let mut path = self.listed();
        path.push(prefix.join(libraries.as_bytes()).join(&self.version.archive()));
        let standard = self.standard(&prefix, &libraries);
        path.push(standard.clone());
        path.push(self.standard(&exec, &libraries).join(b"lib-dynload"));
        let own = origin.environment.filter(|_| self.version.minor >= 14);
        Ok(PythonPrefixes { executable: self.executable, base: [prefix, exec], own, libraries, standard, path })
    }

    /// The standard library of a prefix.
    fn standard(&self, prefix: &ImagePath, libraries: &str) -> ImagePath {
        prefix.join(libraries.as_bytes()).join(self.version.to_string().as_bytes())
    }

    /// The entries of `PYTHONPATH`: an empty one is the working directory.
    fn listed(&self) -> Vec<ImagePath> {
        let list = self.options.variable(self.call, "PYTHONPATH");
        list.into_iter().flat_map(|list| list.split(':')).map(|entry| self.files.absolute(entry.as_bytes())).collect()
    }

    /// The place from which the installation is sought. `PYTHONHOME` makes it irrelevant.
    fn origin(&self, has_home: bool) -> Origin {
        if self.version.minor < 11 {
            return self.old_origin();
        }
        let programs = self.executable.parent();
        let folders = [programs.parent(), programs];
        let marked = folders.into_iter().find_map(|folder| Some((venv::lines(self.files, &folder)?, folder)));
        let marked = marked.filter(|_| !has_home);
        match marked.and_then(|(lines, folder)| Some((venv::home(&lines)?, folder))) {
            Some((home, folder)) => Origin { environment: Some(folder), ..self.named(&home) },
            None if self.executable != self.call.program => {
                Origin { environment: None, ..Origin::at(self.executable.parent()) }
            }
            None => Origin::at(self.real.parent()),
        }
    }

    /// The same up to 3.10: links of the program are followed first.
    fn old_origin(&self) -> Origin {
        let programs = self.real.parent();
        let folders = [programs.clone(), programs.parent()];
        let lines = folders.into_iter().find_map(|folder| venv::lines(self.files, &folder));
        match lines.and_then(|lines| venv::old_home(&lines)) {
            Some(home) => self.named(&home),
            None => Origin::at(programs),
        }
    }

    /// The directory that `home` of a virtual environment names.
    fn named(&self, home: &str) -> Origin {
        let programs = self.files.absolute(home.as_bytes());
        let depth = if home.starts_with('/') { usize::MAX } else { home.split('/').count() };
        Origin { programs, depth, environment: None }
    }

    /// `sys.prefix` and `sys.exec_prefix` without `PYTHONHOME`.
    fn found(&self, origin: &Origin, libraries: &str) -> Result<[ImagePath; 2], Gap> {
        let above = || ancestors(&origin.programs).take(origin.depth);
        let zip = |folder: &ImagePath| folder.join(libraries.as_bytes()).join(&self.version.archive());
        let by_zip = || above().find(|folder| self.version.minor >= 11 && self.files.is_file(&zip(folder)));
        let by_library = || above().find(|folder| self.has_library(folder, libraries));
        let prefix = match by_zip().or_else(by_library) {
            Some(prefix) => prefix,
            None => self.compiled_prefix(origin)?,
        };
        let modules = |folder: &ImagePath| self.standard(folder, libraries).join(b"lib-dynload");
        let exec = above().find(|folder| self.files.is_directory(&modules(folder)));
        Ok([prefix.clone(), exec.unwrap_or(prefix)])
    }

    /// Returns true if a prefix has the standard library.
    fn has_library(&self, prefix: &ImagePath, libraries: &str) -> bool {
        let standard = self.standard(prefix, libraries);
        [&b"os.py"[..], b"os.pyc"].into_iter().any(|name| self.files.is_file(&standard.join(name)))
    }

    /// The prefix that is compiled into the interpreter. It needs a standard library there, so it is the only one of the
    /// image. An image may leave the library out; then it is the usual place.
    fn compiled_prefix(&self, origin: &Origin) -> Result<ImagePath, Gap> {
        let folder = self.version.to_string();
        let mut prefixes: Vec<_> = self
            .files
            .rootfs
            .files_named(|name| name == b"os.py")
            .map(|(path, _)| path.parent())
            .filter(|standard| standard.file_name() == folder.as_bytes())
            .map(|standard| standard.parent().parent())
            .collect();
        prefixes.dedup();
        match (prefixes.pop(), prefixes.is_empty()) {
            (None, _) => Ok(origin.programs.parent()),
            (Some(only), true) => Ok(only),
            (Some(_), false) => {
                let program = &self.call.program;
                let why = format!("{program} has no standard library above it, and the image has several {folder}");
                Err(Gap::new(why).settled_by("set PYTHONHOME to the prefix of this interpreter"))
            }
        }
    }

    /// `sys.platlibdir`: a variable sets it since 3.9.
    fn libraries(&self, compiled: &str) -> String {
        let variable = self.options.variable(self.call, "PYTHONPLATLIBDIR").filter(|_| self.version.minor >= 9);
        variable.unwrap_or(compiled).to_owned()
    }

    /// The name of the library directory that is compiled into the interpreter, which is where the standard library is.
    /// Red Hat and SUSE use `lib64`.
    fn compiled_libraries(&self, origin: &Origin, home: Option<&str>) -> &'static str {
        let home = home.map(|home| self.files.absolute(home.split(':').next().unwrap_or_default().as_bytes()));
        let usual = ["usr", "usr/local"].map(ImagePath::from);
        let prefixes = home.into_iter().chain(ancestors(&origin.programs).take(origin.depth)).chain(usual);
        let real = |prefix: &ImagePath, libraries| self.files.real(&self.standard(prefix, libraries).join(b"os.py"));
        for prefix in prefixes {
            match (real(&prefix, "lib"), real(&prefix, "lib64")) {
                (None, Some(_)) => return "lib64",
                (Some(_), _) => return "lib",
                (None, None) => {}
            }
        }
        "lib"
    }

    /// The `._pth` file beside the name that was called or beside the file that runs (since 3.11), with its lines.
    fn path_file(&self) -> Result<Option<(ImagePath, Vec<String>)>, Gap> {
        if self.version.minor < 11 {
            return Ok(None);
        }
        for program in [&self.executable, &self.real] {
            let file = ImagePath::normalise(&[program.as_bytes(), b"._pth"].concat());
            match self.files.text(&file) {
                Fact::Seen { value, .. } => {
                    let text = String::from_utf8_lossy(value);
                    return Ok(Some((file, text.lines().map(ToOwned::to_owned).collect())));
                }
                Fact::Absent => {}
                Fact::Unknown(gap) => return Err(gap),
            }
        }
        Ok(None)
    }

    /// A `._pth` file has all of `sys.path`, and isolates the interpreter.
    fn of_path_file(self, file: &ImagePath, lines: &[String], options: &mut PathOptions) -> PythonPrefixes {
        let lines = || lines.iter().filter_map(|line| Some(line.split('#').next()?.trim()));
        *options = PathOptions {
            reads_environment: false,
            user_site: false,
            safe_path: true,
            site: lines().any(|line| line == "import site"),
        };
        let folder = file.parent();
        let entries = lines().filter(|line| !line.is_empty() && !line.starts_with("import "));
        let path = entries.map(|line| folder.join(line.as_bytes())).collect();
        let origin = self.origin(true);
        let libraries = self.compiled_libraries(&origin, None).to_owned();
        let standard = self.standard(&folder, &libraries);
        let base = [folder.clone(), folder];
        PythonPrefixes { executable: self.executable, base, own: None, libraries, standard, path }
    }
}

impl Origin {
    const fn at(programs: ImagePath) -> Self {
        Self { programs, depth: usize::MAX, environment: None }
    }
}
