//! The program that Python runs, as far as it changes where torch comes from or the variables of the process.

use model::{Fact, ImagePath, PythonImports};

use super::super::start::PythonTarget;
use super::files::ProcessFiles;
use super::modules::{self, Importable};
use super::run::ProgramRun;
use super::site::SitePath;
use super::version::PythonVersion;

impl SitePath<'_> {
    /// Runs the program. `entries` has the folder of the program.
    pub(super) fn run_program(&mut self, target: &PythonTarget) {
        let files = self.files;
        let (file, package) = match target {
            PythonTarget::Command(text) => return ProgramRun::new(self).run(None, text.as_bytes(), ""),
            PythonTarget::Script(path) if files.is_directory(path) => (path.join(b"__main__.py"), ""),
            PythonTarget::Script(path) => (path.clone(), ""),
            PythonTarget::Module(name) => match module(files, self.version, &self.entries, name) {
                Some(file) if file.file_name() == b"__main__.py" => (file, &**name),
                Some(file) => (file, name.rsplit_once('.').map_or("", |(package, _)| package)),
                None => return,
            },
            PythonTarget::Unstated | PythonTarget::Code => return,
        };
        match files.text(&file) {
            Fact::Seen { value, .. } => ProgramRun::new(self).run(Some(file), value, package),
            Fact::Absent => {}
            Fact::Unknown(_) => ProgramRun::new(self).run_unchanged(&file, package),
        }
    }

    /// A program or a module of the job that was not read may do anything.
    pub(super) fn leave_unread(&mut self, file: &ImagePath) {
        let why = format!("{file} was not read, and may set variables");
        self.changed.gap.get_or_insert(model::Gap::new(why));
        self.opaque.push(file.clone());
    }
}

/// Returns true for a file whose text would have been kept if it changed the path or a variable.
pub(super) fn is_examined(files: &ProcessFiles<'_>, path: &ImagePath) -> bool {
    let Ok((real, file)) = files.rootfs.open(path) else { return true };
    PythonImports::are_read_of(&real, file.size) && real.file_name().ends_with(b".py")
}

/// Returns true for a module of an installed package or of the standard library.
pub(super) fn is_of_packages(path: &ImagePath) -> bool {
    let mut parts = path.components();
    parts.any(|part| part.starts_with(b"python3") || matches!(part, b"site-packages" | b"dist-packages"))
}

/// The file that `-m NAME` runs.
fn module(files: &ProcessFiles<'_>, version: PythonVersion, entries: &[ImagePath], name: &str) -> Option<ImagePath> {
    let mut parts = name.split('.');
    let mut found = modules::find(files, version, entries, parts.next()?)?;
    for part in parts {
        found = modules::in_entry(files, version, found.path(), part)?;
    }
    match found {
        Importable::Module(file) => Some(file),
        Importable::Package(folder, _) | Importable::Namespace(folder) => {
            Some(modules::in_entry(files, version, &folder, "__main__")?.path().clone())
        }
    }
}
