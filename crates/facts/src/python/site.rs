//! The entries that `site` adds to `sys.path` (CPython, `Lib/site.py`; Debian's and Red Hat's changes to it).

mod dialect;

use std::collections::{BTreeMap, BTreeSet};

use model::{Fact, Gap, ImagePath};

use super::super::start::{PythonCall, homes};
use super::code::{self, PathEffect};
use super::expression::CodeScope;
use super::files::ProcessFiles;
use super::modules::{self, Importable};
use super::options::PathOptions;
use super::prefix::PythonPrefixes;
use super::run::{BuildCall, ProgramRun};
use super::variables::ChangedVariables;
use super::venv;
use super::version::PythonVersion;

use dialect::SiteDialect;

/// Most calls of `site.addsitedir` within one another. CPython ends at some 300 with an error of recursion.
const DEPTH: usize = 20;

/// Steps that an entry of `sys.path` costs: each import looks for several files in it.
pub(super) const ENTRY: usize = 10;

/// Names of a directory, or comparisons of paths, that cost a step.
const NAMES: usize = 16;

/// `sys.path` while `site` runs, and what was learned on the way.
pub(super) struct SitePath<'w> {
    pub(super) files: &'w ProcessFiles<'w>,
    pub(super) call: &'w PythonCall,
    pub(super) version: PythonVersion,
    options: PathOptions,
    dialect: SiteDialect,
    /// `sys.prefix`.
    prefix: ImagePath,
    /// `sys.path`.
    pub(super) entries: Vec<ImagePath>,
    known: BTreeSet<ImagePath>,
    /// The entries in which packages are installed.
    pub(super) packages: BTreeSet<ImagePath>,
    /// Files that run code.
    pub(super) hooks: Vec<ImagePath>,
    /// Files that may change the search for modules in a way that is not understood.
    pub(super) opaque: Vec<ImagePath>,
    /// Modules of editable packages' finders.
    pub(super) finders: Vec<ImagePath>,
    /// The length of the path when an `easy-install.pth` began, and where its entries go.
    eggs: Option<(usize, usize)>,
    /// A mark of the virtual environment that cannot be read.
    pub(super) unreadable_mark: Option<ImagePath>,
    /// How many calls of `site.addsitedir` are within one another.
    depth: usize,
    /// What code did to the variables of the process.
    pub(super) changed: ChangedVariables,
    /// Libraries that the program opens before it imports torch, true where their symbols are global.
    pub(super) opened: Vec<(String, bool)>,
    /// The file and the line that run, from 1; no file for `-c`.
    pub(super) at: (Option<ImagePath>, usize),
    /// True while it is unknown whether what runs does run.
    pub(super) is_doubtful: bool,
    /// False if the code behind `-c` changes the path in a way that is not understood.
    pub(super) is_understood: bool,
    /// Calls of the program that compile code.
    pub(super) builds: Vec<BuildCall>,
    /// False if the program has torch.compile do without what it cannot compile.
    pub(super) compiles: bool,
    /// Code that changes the path in a way that is not followed, although it makes no difference to torch.
    pub(super) unfollowed: Option<String>,
    /// A folder that a `.pth` file names and that the image does not have.
    pub(super) missing: Option<ImagePath>,
}

impl<'w> SitePath<'w> {
    pub(super) fn new(
        files: &'w ProcessFiles<'w>,
        call: &'w PythonCall,
        version: PythonVersion,
        options: PathOptions,
        start: &PythonPrefixes,
    ) -> Self {
        let prefix = start.own.clone().unwrap_or_else(|| start.base[0].clone());
        Self {
            files,
            call,
            version,
            options,
            dialect: SiteDialect::read(files, version, start),
            prefix,
            entries: start.path.clone(),
            known: BTreeSet::new(),
            packages: BTreeSet::new(),
            hooks: Vec::new(),
            opaque: Vec::new(),
            finders: Vec::new(),
            eggs: None,
            unreadable_mark: None,
            depth: 0,
            changed: ChangedVariables::default(),
            opened: Vec::new(),
            at: (None, 1),
            is_doubtful: false,
            is_understood: true,
            builds: Vec::new(),
            compiles: true,
            unfollowed: None,
            missing: None,
        }
    }

    /// Imports `site`.
    pub(super) fn run(&mut self, start: &PythonPrefixes) {
        let mut known = BTreeSet::new();
        self.entries.retain(|entry| known.insert(entry.clone()));
        self.known = known;

        let [base, exec] = &start.base;
        let mut prefixes = vec![self.prefix.clone(), start.own.clone().unwrap_or_else(|| exec.clone())];
        let mut user_site = self.options.user_site;
        let folder = start.executable.parent();
        let marked = [folder.clone(), folder.parent()];
        let marked = marked.into_iter().find(|marked| self.files.is_file(&marked.join(b"pyvenv.cfg")));
        if let Some(marked) = marked {
            let lines = venv::lines(self.files, &marked);
            if lines.is_none() {
                self.unreadable_mark = Some(marked.join(b"pyvenv.cfg"));
            }
            let lines = lines.unwrap_or_default();
            let sees_system = venv::sees_system(&lines);
            if self.version.minor < 14 {
                self.prefix = folder.parent();
            }
            let own = self.prefix.clone();
            self.add_packages(std::slice::from_ref(&own), base);
            match (sees_system, self.version.minor < 14) {
                (true, true) => prefixes.insert(0, self.prefix.clone()),
                (true, false) => prefixes.extend([base.clone(), exec.clone()]),
                (false, true) => prefixes = vec![self.prefix.clone()],
                (false, false) => {}
            }
            user_site &= sees_system;
        }
        if user_site {
            self.add_user();
        }
        if user_site && self.dialect.adds_usr_local && !self.call.flags.isolated {
            prefixes.insert(0, ImagePath::from("usr/local"));
        }
        self.add_packages(&prefixes, base);
        self.customise("sitecustomize");
        if user_site {
            self.customise("usercustomize");
        }
    }

    /// `site.addsitepackages`.
    fn add_packages(&mut self, prefixes: &[ImagePath], base: &ImagePath) {
        let is_virtual = self.prefix != *base || (self.dialect.reads_variable && self.is_set("VIRTUAL_ENV"));
        for folder in self.dialect.folders(prefixes, self.version, is_virtual) {
            if self.files.is_directory(&folder) {
                self.add_site(&folder);
            }
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.call.state.known(name).is_some()
    }

    /// `site.addusersitepackages`.
    fn add_user(&mut self) {
        let name = format!("lib/{}/site-packages", self.version);
        let base = match self.call.state.known("PYTHONUSERBASE").filter(|base| !base.is_empty()) {
            Some(base) => self.files.absolute(base.as_bytes()),
            None => match self.home() {
                Some(home) => self.files.absolute(home.as_bytes()).join(b".local"),
                None => return self.doubt_user(&name),
            },
        };
        let folder = base.join(name.as_bytes());
        if self.files.is_directory(&folder) {
            self.add_site(&folder);
        }
    }

    /// A user who is unknown may be one whose home has packages.
    fn doubt_user(&self, name: &str) {
        let folders = homes(self.files.rootfs).map(|home| home.join(b".local").join(name.as_bytes()));
        let folder = folders.into_iter().find(|folder| self.files.is_directory(folder));
        if let (Some(folder), Err(gap)) = (folder, &self.call.state.user) {
            let why = format!("{folder} is on the path of its user alone, and the user is unknown: {}", gap.why);
            self.files.doubts(Gap::new(why).settled_by("name the user of the job with --user"));
        }
    }

    /// The home directory: `HOME`, which container runtimes set from the passwd file. That of an unknown user is not a part of
    /// the image.
    fn home(&self) -> Option<String> {
        let state = &self.call.state;
        match state.known("HOME") {
            // An empty one is the root directory in `~/.local`.
            Some(home) => Some(if home.is_empty() { "/".to_owned() } else { home.to_owned() }),
            None => state.user.as_ref().ok().map(|user| user.home().to_string()),
        }
    }

    /// `site.addsitedir`: adds a directory, and what its `.pth` files name.
    ///
    /// CPython reads the `.pth` files of a folder as often as it is added, also of one that is on the path already, so that a
    /// file that adds its own folder ends with an error of recursion.
    fn add_site(&mut self, folder: &ImagePath) {
        if self.depth > DEPTH {
            let why = format!("{folder}: more than {DEPTH} site directories add one another");
            return self.files.budget.refuse(why);
        }
        if self.known.insert(folder.clone()) {
            self.add_entry(self.entries.len(), folder.clone());
        }
        self.packages.insert(folder.clone());
        let hides = self.dialect.hides_dot_files;
        let files = self.files;
        let names = files.names(folder);
        files.budget.spend(names.len() / NAMES);
        for name in names.into_iter().filter(|name| name.ends_with(b".pth") && !(hides && name.starts_with(b"."))) {
            let file = folder.join(name);
            if !files.budget.spend_on_text(file.as_bytes().len()) {
                return;
            }
            match files.text(&file) {
                Fact::Seen { value, .. } => self.add_lines(folder, &file, &String::from_utf8_lossy(value)),
                Fact::Absent => {
                    // A link that leads nowhere, or a file that this user cannot read.
                    self.hooks.push(file);
                }
                Fact::Unknown(_) => {
                    self.hooks.push(file.clone());
                    self.opaque.push(file);
                }
            }
        }
    }

    /// `site.addpackage`.
    fn add_lines(&mut self, folder: &ImagePath, file: &ImagePath, text: &str) {
        let text = text.strip_prefix('\u{feff}').filter(|_| self.version.minor >= 13).unwrap_or(text);
        let lines = text.lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty()) {
            self.at = (Some(file.clone()), index + 1);
            if !self.files.budget.spend_on_text(line.len()) {
                return;
            }
            if line.starts_with("import ") || line.starts_with("import\t") {
                if self.hooks.last() != Some(file) {
                    self.hooks.push(file.clone());
                }
                let Some(effects) = self.scoped(Some(folder), None, |scope| code::line(line, scope)) else {
                    if self.opaque.last() != Some(file) && self.files.budget.spend_on_text(file.as_bytes().len()) {
                        self.opaque.push(file.clone());
                    }
                    continue;
                };
                // An error ends the file.
                if !self.apply(folder, effects) {
                    return;
                }
                continue;
            }
            let entry = folder.join(line.trim_end().as_bytes());
            if !self.files.exists(&entry) {
                self.missing.get_or_insert(entry.clone());
            }
            if !self.known.contains(&entry) && self.files.exists(&entry) {
                self.known.insert(entry.clone());
                self.add_entry(self.entries.len(), entry.clone());
                self.packages.insert(entry);
            }
        }
    }

    /// Adds an entry to `sys.path`, if steps are left for it.
    fn add_entry(&mut self, place: usize, entry: ImagePath) {
        let budget = &self.files.budget;
        if budget.spend(ENTRY) && budget.spend_on_text(entry.as_bytes().len()) {
            self.entries.insert(place, entry);
        }
    }

    /// Evaluates code in this process.
    pub(super) fn scoped<T>(
        &self,
        folder: Option<&ImagePath>,
        file: Option<&ImagePath>,
        ask: impl FnOnce(&CodeScope<'_>) -> T,
    ) -> T {
        let home = self.home();
        let variable = |name: &str| self.variable(name);
        ask(&CodeScope {
            folder,
            prefix: &self.prefix,
            directory: self.files.directory(),
            home: home.as_deref(),
            file,
            variable: &variable,
            names: &BTreeMap::new(),
            budget: &self.files.budget,
        })
    }

    /// Applies effects until one fails; returns false if one does.
    pub(super) fn apply(&mut self, folder: &ImagePath, effects: Vec<PathEffect>) -> bool {
        effects.into_iter().all(|effect| self.apply_one(folder, effect))
    }

    fn apply_one(&mut self, folder: &ImagePath, effect: PathEffect) -> bool {
        let path = |text: &str| self.files.absolute(text.as_bytes());
        match effect {
            PathEffect::Insert(index, entry) => {
                let entry = path(&entry);
                let length = self.entries.len();
                let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
                let place = if index < 0 { length.saturating_sub(back) } else { back.min(length) };
                self.add_entry(place, entry.clone());
                self.packages.insert(entry);
            }
            PathEffect::Append(entry) => {
                let entry = path(&entry);
                self.add_entry(self.entries.len(), entry.clone());
                self.packages.insert(entry);
            }
            PathEffect::Remove(entry) => {
                let entry = path(&entry);
                self.files.budget.spend(self.entries.len() / NAMES);
                let Some(place) = self.entries.iter().position(|known| *known == entry) else { return false };
                self.entries.remove(place);
                self.packages.remove(&entry);
            }
            PathEffect::AddSite(entry) => {
                let entry = path(&entry);
                // It is called without the directories that are known so far.
                if !self.files.budget.spend(self.entries.len()) {
                    return false;
                }
                let existing = self.entries.iter().filter(|entry| self.files.exists(entry)).cloned().collect();
                let known = std::mem::replace(&mut self.known, existing);
                self.depth += 1;
                self.add_site(&entry);
                self.depth -= 1;
                self.known = known;
            }
            PathEffect::MarkEggs => {
                let front = self.eggs.map_or(0, |(_, front)| front);
                self.eggs = Some((self.entries.len(), front));
            }
            PathEffect::MoveEggs => {
                let Some((mark, front)) = self.eggs else { return false };
                if !self.files.budget.spend(self.entries.len()) {
                    return false;
                }
                let moved: Vec<_> = self.entries.drain(mark.min(self.entries.len())..).collect();
                let place = front.min(self.entries.len());
                self.eggs = Some((mark, front + moved.len()));
                self.packages.extend(moved.iter().cloned());
                self.entries.splice(place..place, moved);
            }
            PathEffect::Needs(name) => {
                return modules::find(self.files, self.version, &self.entries, &name).is_some();
            }
            PathEffect::Variable(effect) => self.change_variable(effect),
            PathEffect::Editable(name) => self.finders.push(folder.join(format!("{name}.py").as_bytes())),
        }
        true
    }

    /// Imports a module that may change anything, if there is one.
    fn customise(&mut self, name: &str) {
        let found = modules::find(self.files, self.version, &self.entries, name);
        let file = match found {
            None | Some(Importable::Namespace(_)) => return,
            Some(Importable::Package(_, file) | Importable::Module(file)) => file,
        };
        let text = match self.files.text(&file) {
            Fact::Seen { value, .. } => String::from_utf8_lossy(value).into_owned(),
            Fact::Absent | Fact::Unknown(_) => {
                self.hooks.push(file.clone());
                return self.opaque.push(file);
            }
        };
        ProgramRun::new(self).run_module(file.clone(), text.as_bytes());
        if self.scoped(None, Some(&file), |scope| code::module(&text, scope)).is_none() {
            self.hooks.push(file.clone());
            self.opaque.push(file);
        }
    }
}
