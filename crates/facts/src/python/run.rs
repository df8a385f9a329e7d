//! Runs the code of a program as far as it decides which torch is imported and which variables NCCL gets: statements whose
//! execution is certain, those that may run, and functions where they are called.

mod blocks;
mod builds;
mod functions;
mod imports;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::ImagePath;

use super::super::pattern;
use super::code;
use super::condition::{ConditionScope, outcome};
use super::environment;
use super::expression::{CodeScope, string};
use super::modules::{self, Importable};
use super::program::is_of_packages;
use super::site::SitePath;
use super::source::{PythonSource, first_word};
pub(crate) use builds::{BuildCall, BuildKind};
use functions::Function;
use names::ProgramNames;

// What changes sys.path, or how modules are found; reading them is harmless.
pattern!(
    CHANGE,
    r"\bsys\.(?:path|meta_path|path_hooks|modules)\s*(?:\.(?:insert|append|extend|remove|pop|clear|sort|reverse|update|setdefault)\b|\[[^\]]*\]\s*=[^=]|\+?=[^=])|\bdel\s+sys\.path\b|\baddsitedir\b"
);
// `ctypes.CDLL(NAME, …)`, and what ctypes has for it.
pattern!(OPEN, r"\bctypes\.(?:CDLL|PyDLL|cdll\.LoadLibrary)\((.*)\)");
pattern!(ADDITION, r"^(?:sys\.path\.(?:append|extend)\(|sys\.path\s*\+=)");

/// Most blocks, calls and imports within one another.
const DEPTH: usize = 60;

/// The module that code belongs to.
struct ModuleName {
    /// The beginning of the full names of what it defines; empty for the program.
    prefix: String,
    /// The package that its relative imports begin at.
    package: String,
    is_main: bool,
}

/// Whether something has happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    No,
    Maybe,
    Yes,
}

/// A program that runs.
pub(super) struct ProgramRun<'r, 'w> {
    path: &'r mut SitePath<'w>,
    names: ProgramNames,
    functions: BTreeMap<String, Function>,
    /// The functions that were called, true where that is certain.
    called: BTreeMap<String, bool>,
    /// The functions whose calls have not ended.
    active: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// Names that lead to no module of the job.
    outside: BTreeSet<String>,
    /// What names mean in a module that has run, by the beginning of its full names.
    spaces: BTreeMap<String, BTreeMap<String, String>>,
    module: Rc<ModuleName>,
    torch: Reach,
    /// True once the process group is initialised.
    has_group: bool,
    depth: usize,
    steps: usize,
    sources: Vec<Rc<PythonSource>>,
    /// True once code was followed whose calls are not known.
    has_unread_calls: bool,
}

impl<'r, 'w> ProgramRun<'r, 'w> {
    pub(super) fn new(path: &'r mut SitePath<'w>) -> Self {
        let module = Rc::new(ModuleName { prefix: String::new(), package: String::new(), is_main: true });
        Self {
            path,
            names: ProgramNames::default(),
            functions: BTreeMap::new(),
            called: BTreeMap::new(),
            active: BTreeSet::new(),
            modules: BTreeSet::new(),
            outside: BTreeSet::new(),
            spaces: BTreeMap::new(),
            module,
            torch: Reach::No,
            has_group: false,
            depth: 0,
            steps: 0,
            sources: Vec::new(),
            has_unread_calls: false,
        }
    }

    /// Runs the program, then what it may call in ways that are not followed.
    pub(super) fn run(mut self, file: Option<ImagePath>, text: &[u8], package: &str) {
        self.follow(package);
        let module = ModuleName { prefix: String::new(), package: package.to_owned(), is_main: true };
        self.module = Rc::new(module);
        self.source(file, text);
        self.uncalled();
    }

    /// Runs a program whose text was not kept.
    pub(super) fn run_unchanged(mut self, file: &ImagePath, package: &str) {
        // Installers write the programs of packages into a folder of this name.
        if !is_of_packages(file) && file.parent().file_name() != b"bin" {
            self.follow(package);
            self.module(file, "__main__", package);
            self.uncalled();
        }
    }

    /// Runs a module that starts with the interpreter.
    pub(super) fn run_module(mut self, file: ImagePath, text: &[u8]) {
        let module = ModuleName { prefix: String::new(), package: String::new(), is_main: false };
        self.module = Rc::new(module);
        self.source(Some(file), text);
    }

    fn source(&mut self, file: Option<ImagePath>, text: &[u8]) {
        let source = Rc::new(PythonSource::read(file, text));
        self.sources.push(Rc::clone(&source));
        self.block(&source, 0..source.statements.len());
    }

    /// Runs a statement without a block.
    fn simple(&mut self, text: &str) {
        if matches!(first_word(text), "import" | "from") {
            return self.import_statement(text);
        }
        let written = self.written(text);
        if CHANGE.is_match(written.as_bytes()) {
            self.change(&written);
        }
        if ["environ", "putenv", "unsetenv", "dotenv", "os.exec"].iter().any(|part| written.contains(part))
            && let Some(effects) = self.scoped(|scope| environment::effects(&written, scope))
        {
            let doubtful = self.path.is_doubtful;
            self.path.is_doubtful |= self.has_group;
            for effect in effects {
                self.path.change_variable(effect);
            }
            self.path.is_doubtful = doubtful;
        }
        if self.torch == Reach::No
            && !self.path.is_doubtful
            && let Some(captures) = OPEN.captures(written.as_bytes())
        {
            let arguments = String::from_utf8_lossy(captures.get(1).map_or(&[][..], |found| found.as_bytes()));
            let library = arguments.split(',').next().unwrap_or_default();
            if let Some(library) = self.scoped(|scope| string(library, scope)) {
                self.path.opened.push((library, arguments.contains("RTLD_GLOBAL")));
            }
        }
        self.note_build(&written);
        self.assign(text);
        self.calls(&written);
        self.has_group |= written.contains("init_process_group(") && !self.path.is_doubtful;
    }

    fn condition(&self, text: &str) -> Option<bool> {
        let written = self.written(text);
        let files = self.path.files;
        let entries = &*self.path.entries;
        let is_main = self.module.is_main;
        self.scoped(|scope| outcome(&written, &ConditionScope { code: scope, files, entries, is_main }))
    }

    /// Changes `sys.path`, unless that makes no difference to torch.
    fn change(&mut self, text: &str) {
        self.outside.clear();
        let effects = self.scoped(|scope| code::line(text, scope));
        let find = |path: &SitePath<'_>| modules::find(path.files, path.version, &path.entries, "torch");
        let before = find(self.path);
        let is_found = matches!(before, Some(Importable::Package(..) | Importable::Module(_)));
        let is_sure = !self.path.is_doubtful && self.torch != Reach::Maybe;
        let is_followed = effects.is_some() && !text.contains(".remove(");
        let understood = match effects {
            None => is_found && ADDITION.is_match(text.as_bytes()),
            Some(effects) => {
                let entries = self.path.entries.clone();
                let applied = self.path.apply(&ImagePath::root(), effects);
                let is_same = is_sure || find(self.path) == before;
                if !is_same {
                    self.path.entries = entries;
                }
                applied && is_same
            }
        };
        if !is_followed || !understood {
            let file = self.path.at.0.as_ref().map(ToString::to_string);
            self.path.unfollowed.get_or_insert(file.unwrap_or_else(|| "the code behind -c".to_owned()));
        }
        if understood || self.torch == Reach::Yes {
            return;
        }
        match self.path.at.0.clone() {
            Some(file) => self.path.opaque.push(file),
            None => self.path.is_understood = false,
        }
    }

    /// Evaluates a text in the process.
    fn scoped<T>(&self, ask: impl FnOnce(&CodeScope<'_>) -> T) -> T {
        let file = self.path.at.0.as_ref().filter(|file| self.path.files.real(file).as_ref() == Some(*file));
        self.path.scoped(None, file, |scope| ask(&CodeScope { names: &self.names.texts, ..*scope }))
    }
}
