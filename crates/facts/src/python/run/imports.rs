//! The modules of the job that a program imports.

use std::rc::Rc;

use model::{Fact, ImagePath, ImportCondition, PythonImports};

use super::super::modules::{self, Importable};
use super::super::program::{is_examined, is_of_packages};
use super::{DEPTH, ModuleName, ProgramRun, Reach};

impl ProgramRun<'_, '_> {
    /// Follows an `import` statement, and notes what its names mean.
    pub(super) fn import_statement(&mut self, text: &str) {
        if let Some((module, names)) = text.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) {
            let Some(module) = modules::absolute(module.trim(), &self.module.package) else { return };
            let is_of_job = self.follow(&module);
            let names = names.trim().trim_start_matches('(').trim_end_matches(')').split(',');
            for name in names {
                let mut words = name.split_whitespace();
                let Some(name) = words.next() else { continue };
                let own = words.nth(1).unwrap_or(name);
                if name == "*" {
                    self.path.files.budget.spend((self.functions.len() + self.names.texts.len()) / 16);
                    let prefix = format!("{module}.");
                    let of_module = self.functions.keys().chain(self.names.texts.keys());
                    let of_module =
                        of_module.filter_map(|full| Some((full.strip_prefix(&prefix)?.to_owned(), full.clone())));
                    let of_module: Vec<_> = of_module.collect();
                    self.names.full.extend(of_module);
                    continue;
                }
                let name = format!("{module}.{name}");
                if is_of_job {
                    self.follow(&name);
                }
                self.names.full.insert(own.to_owned(), name);
            }
            return;
        }
        for module in text.strip_prefix("import ").unwrap_or_default().split(',') {
            let mut words = module.split_whitespace();
            let Some(module) = words.next() else { continue };
            self.follow(module);
            match words.nth(1) {
                Some(own) => _ = self.names.full.insert(own.to_owned(), module.to_owned()),
                None => _ = self.names.full.remove(module.split('.').next().unwrap_or_default()),
            }
        }
    }

    /// Imports a module of the job, with the packages that it is in. Returns false for any other.
    pub(super) fn follow(&mut self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let mut folder: Option<ImagePath> = None;
        let ends = name.match_indices('.').map(|(end, _)| end).chain([name.len()]);
        let mut start = 0;
        for end in ends {
            let (Some(whole), Some(part)) = (name.get(..end), name.get(start..end)) else { return false };
            start = end + 1;
            let files = self.path.files;
            if whole == "torch" {
                let reach = if self.path.is_doubtful { Reach::Maybe } else { Reach::Yes };
                self.torch = self.torch.max(reach);
            }
            if whole == "torch" || self.outside.contains(whole) {
                return false;
            }
            let found = match &folder {
                None => modules::find(files, self.path.version, &self.path.entries, part),
                Some(folder) => modules::in_entry(files, self.path.version, folder, part),
            };
            let Some(found) = found.filter(|found| !is_of_packages(found.path())) else {
                self.outside.insert(whole.to_owned());
                return false;
            };
            folder = Some(found.path().clone());
            if !self.modules.insert(whole.to_owned()) {
                continue;
            }
            match found {
                Importable::Package(_, file) => self.module(&file, whole, whole),
                Importable::Module(file) => {
                    self.module(&file, whole, whole.rsplit_once('.').map_or("", |(package, _)| package));
                }
                Importable::Namespace(_) => {}
            }
        }
        true
    }

    /// Runs a module.
    pub(super) fn module(&mut self, file: &ImagePath, name: &str, package: &str) {
        if self.depth > DEPTH {
            return;
        }
        let module = ModuleName { prefix: format!("{name}."), package: package.to_owned(), is_main: false };
        let module = std::mem::replace(&mut self.module, Rc::new(module));
        let full = std::mem::take(&mut self.names.full);
        let at = self.path.at.clone();
        self.depth += 1;
        match self.path.files.text(file) {
            Fact::Seen { value, .. } => self.source(Some(file.clone()), value),
            Fact::Absent => {}
            Fact::Unknown(_) => self.unchanged(file),
        }
        self.depth -= 1;
        self.path.at = at;
        let own = std::mem::replace(&mut self.names.full, full);
        let module = std::mem::replace(&mut self.module, module);
        self.spaces.insert(module.prefix.clone(), own);
    }

    /// Follows the imports of a module whose text was not kept, since it changes neither the path nor a variable.
    fn unchanged(&mut self, file: &ImagePath) {
        if !is_examined(self.path.files, file) {
            return self.path.leave_unread(file);
        }
        let Ok((_, found)) = self.path.files.rootfs.open(file) else { return };
        self.torch = self.torch.max(Reach::Maybe);
        self.has_unread_calls = true;
        for import in super::super::imports(&found).into_iter().flat_map(PythonImports::iter) {
            let Some(module) = modules::absolute(import.module, &self.module.package) else { continue };
            if import.condition != ImportCondition::None || module.starts_with('=') {
                continue;
            }
            if self.follow(&module) {
                for name in import.names.split(' ').filter(|name| !matches!(*name, "" | "*")) {
                    self.follow(&format!("{module}.{name}"));
                }
            }
        }
    }
}
