//! Modules that the program certainly imports and that its Python does not find, and where else the image has them.

use std::collections::BTreeSet;

use model::{Fact, Gap, ImagePath, PythonImport, Site, is_among};
use rootfs::RootFs;

use super::super::python::Python;
use super::super::start::PythonCall;
use super::super::{Context, Facts, key};
use super::ImportWalk;

/// Modules of the standard library, which may be built into the interpreter.
const STANDARD: &str = "abc antigravity annotationlib argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 \
    cProfile calendar cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser \
    contextlib contextvars copy copyreg csv ctypes curses dataclasses datetime dbm decimal difflib dis doctest email encodings \
    ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath \
    getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib importlib inspect io ipaddress \
    itertools json keyword lib2to3 linecache locale logging lzma mailbox marshal math mimetypes mmap modulefinder msvcrt \
    multiprocessing netrc nt ntpath nturl2path numbers opcode operator optparse os parser pathlib pdb pickle pickletools \
    pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat \
    queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil \
    signal site smtplib socket socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep \
    struct subprocess symbol symtable sys sysconfig syslog tabnanny tarfile tempfile termios textwrap this threading time \
    timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest \
    urllib uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Modules that a release of Python removed from its standard library (What's New In Python 3.12 and 3.13).
const REMOVED: [(u32, &str); 2] = [
    (12, "asynchat asyncore distutils imp smtpd"),
    (
        13,
        "aifc audioop cgi cgitb chunk crypt imghdr mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau \
         telnetlib uu xdrlib",
    ),
];

/// Most folders that are named.
const MOST: usize = 3;

/// An import without which the program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredModule {
    /// Its first component.
    module: String,
    /// The file that imports it; the interpreter for `-c`.
    code: ImagePath,
    line: usize,
}

impl RequiredModule {
    /// The module of an import; `None` for a relative one, which is of the job.
    pub(super) fn of(import: &PythonImport<'_>, code: &ImagePath) -> Option<Self> {
        let module = import.top_level()?.to_owned();
        Some(Self { module, code: code.clone(), line: import.line? })
    }

    /// True for an import of an installed package, and the module.
    pub(super) fn key(&self) -> (bool, String) {
        (is_among_packages(&self.code), self.module.clone())
    }
}

/// Returns the first import of each module that the Python certainly does not find, or why that is unknown.
pub(super) fn absent(context: &Context<'_>, python: &Python, walk: &ImportWalk<'_, '_>) -> Fact<Vec<RequiredModule>> {
    let rootfs = context.rootfs;
    let mut absent: Vec<RequiredModule> = Vec::new();
    let mut gap = None;
    for one in walk.required.iter().filter(|one| may_be_absent(rootfs, python, &one.module)) {
        if absent.iter().any(|other| other.module == one.module) {
            continue;
        }
        match python.import(rootfs, &one.module) {
            Ok(import) if import.found.is_some() || may_be_made(rootfs, walk, one) => {}
            Ok(_) => match doubt(context, python, &one.module) {
                None => absent.push(one.clone()),
                Some(why) => _ = gap.get_or_insert(why),
            },
            Err(why) => _ = gap.get_or_insert(why),
        }
    }
    // What the start installs is an assumption of its own.
    let is_changed = context.start.assumed.iter().any(|text| text.starts_with("no file that is judged changes"));
    match gap {
        _ if is_changed => Fact::Absent,
        Some(gap) if absent.is_empty() => Fact::Unknown(gap),
        _ if absent.is_empty() => Fact::Absent,
        _ => Fact::known(absent),
    }
}

/// Returns false for what is built into an interpreter, and where the image lacks the standard library.
fn may_be_absent(rootfs: &RootFs, python: &Python, module: &str) -> bool {
    let is_removed = |(release, names): &(u32, &str)| is_among(module, names) && python.minor < Some(*release);
    !module.starts_with('_')
        && module != "torch"
        && !is_among(module, STANDARD)
        && !REMOVED.iter().any(is_removed)
        && python.import(rootfs, "os").is_ok_and(|import| import.found.is_some())
}

/// Returns true for a module that the code of packages may make, or find where they keep it. Of packages only imports are read.
fn may_be_made(rootfs: &RootFs, walk: &ImportWalk<'_, '_>, one: &RequiredModule) -> bool {
    let is_of_package = is_among_packages(&one.code);
    let is_alias = |name: &String| *name == one.module || (is_of_package && name == "*");
    let is_kept = || folders_with(rootfs, &one.module).any(|folder| !is_root_of_packages(&folder));
    walk.aliases.iter().any(is_alias) || (is_of_package && is_kept())
}

/// Why a module may be found that no folder of the path has.
fn doubt(context: &Context<'_>, python: &Python, module: &str) -> Option<Gap> {
    let rootfs = context.rootfs;
    if let Some(why) = python.doubt(rootfs, module) {
        return Some(why);
    }
    let call = &python.call;
    let directory = &call.state.directory;
    if call.launcher.is_some() && has(rootfs, directory, module) {
        return Some(Gap::new(format!(
            "a launcher may add {directory}, which has {module}, to the path of its workers"
        )));
    }
    if call.launcher.is_some() && call.state.variables.contains_key("PYTHON_EXEC") {
        return Some(Gap::new("PYTHON_EXEC names the Python that torchrun starts"));
    }
    if module == "distutils" && python.import(rootfs, "setuptools").is_ok_and(|import| import.found.is_some()) {
        return Some(Gap::new("setuptools brings distutils"));
    }
    // Code of the job is followed, that of packages is not.
    let is_of_package = |folder: &ImagePath| {
        is_among_packages(folder) && python.site_packages.iter().any(|site| folder.starts_with(site))
    };
    let own = folders_with(rootfs, module).find(is_of_package)?;
    Some(Gap::new(format!("{own} has {module}, and the package that it is in may add it to sys.path")))
}

fn has(rootfs: &RootFs, folder: &ImagePath, module: &str) -> bool {
    let path = folder.join(module.as_bytes());
    rootfs.is_directory(&path) || rootfs.open(&folder.join(format!("{module}.py").as_bytes())).is_ok()
}

/// The folders of the image that a module could be imported from. One that is in a package is none.
fn folders_with<'r>(rootfs: &'r RootFs, module: &'r str) -> impl Iterator<Item = ImagePath> + 'r {
    let mut known = BTreeSet::new();
    let files = rootfs.files_named(|name| name.ends_with(b".py") || name.ends_with(b".so"));
    files.filter_map(move |(path, _)| {
        let parts: Vec<_> = path.components().collect();
        let stem = |part: &[u8]| part.split(|&byte| byte == b'.').next() == Some(module.as_bytes());
        let is_it = |(index, part): (usize, &&[u8])| {
            if index + 1 == parts.len() { stem(part) } else { *part == module.as_bytes() }
        };
        let at = parts.iter().enumerate().position(is_it)?;
        let folder = ImagePath::normalise(&parts.get(..at)?.join(&b'/'));
        let is_new = known.insert(folder.clone()) && rootfs.open(&folder.join(b"__init__.py")).is_err();
        is_new.then_some(folder)
    })
}

pub(super) fn produce(context: &Context<'_>, absent: &Fact<Vec<RequiredModule>>, facts: &mut Facts) {
    let rootfs = context.rootfs;
    let described = |one: &RequiredModule| match rootfs.open(&one.code) {
        Ok((real, file)) if Some(&one.code) != context.python.as_ref().map(|python| &python.call.program) => (
            format!("{} ({real}, line {})", one.module, one.line),
            file.site(&real, Some(&format!("line {}", one.line))),
        ),
        _ => (format!("{} (the code behind -c)", one.module), Site::Config("Entrypoint and Cmd".to_owned())),
    };
    let texts = absent.as_ref().and_then(|all, _| {
        let (value, at): (Vec<_>, Vec<_>) = all.iter().map(described).unzip();
        Fact::Seen { value, at }
    });
    let names: Vec<&str> = absent.value().into_iter().flatten().map(|one| one.module.as_str()).collect();
    let python = context.python.as_ref().filter(|_| !names.is_empty());
    let folders: BTreeSet<_> = { names.iter() }
        .filter(|_| python.is_some())
        .flat_map(|name| folders_with(rootfs, name).take(MOST).collect::<Vec<_>>())
        .collect();
    let of_packages = |folder: &&ImagePath| is_among_packages(folder);
    let other = python.and_then(|python| {
        folders.iter().filter(of_packages).find_map(|folder| importer(rootfs, &python.call, folder, &names))
    });
    let is_whole =
        |folder: &&ImagePath| !is_among_packages(folder) && names.iter().all(|name| has(rootfs, folder, name));
    let folder = folders.iter().find(is_whole).filter(|_| other.is_none()).cloned();
    let listed = |texts: Vec<String>| if texts.is_empty() { Fact::Absent } else { Fact::known(texts) };
    let searched = python.map(|python| python.path.iter().map(ToString::to_string).collect()).unwrap_or_default();
    facts.insert(key::START_ABSENT_MODULES, texts);
    facts.insert(key::START_MODULES_SEARCHED, listed(searched));
    facts.insert(key::START_MODULES_ELSEWHERE, listed(folders.iter().map(ToString::to_string).collect()));
    facts.insert(key::START_MODULES_PYTHON, other.into());
    facts.insert(key::START_MODULES_FOLDER, folder.into());
}

fn is_root_of_packages(folder: &ImagePath) -> bool {
    matches!(folder.file_name(), b"site-packages" | b"dist-packages")
}

fn is_among_packages(folder: &ImagePath) -> bool {
    folder.components().any(|part| matches!(part, b"site-packages" | b"dist-packages"))
}

/// The Python beside a folder of packages, if it imports torch and these modules.
fn importer(rootfs: &RootFs, call: &PythonCall, folder: &ImagePath, names: &[&str]) -> Option<ImagePath> {
    let prefix = folder.parent().parent().parent();
    let programs = [prefix, ImagePath::from("usr")];
    let programs =
        programs.iter().flat_map(|prefix| ["python", "python3"].map(|name| prefix.join(b"bin").join(name.as_bytes())));
    programs.filter(|program| rootfs.open(program).is_ok()).find(|program| {
        let other = Python::of(rootfs, &call.of(program.clone()));
        let imports = |name: &str| {
            other.as_ref().is_some_and(|other| other.import(rootfs, name).is_ok_and(|import| import.found.is_some()))
        };
        imports("torch") && names.iter().all(|name| imports(name))
    })
}
