//! The first entry of `sys.path`, by what the interpreter runs (CPython, `Modules/main.c` and `Python/pathconfig.c`).

use model::ImagePath;

use super::super::start::{PythonCall, PythonTarget};
use super::files::ProcessFiles;
use super::options::PathOptions;

/// Endings of archives that Python runs (`zipapp`, PEX).
const ARCHIVES: [&[u8]; 5] = [b".pyz", b".pyzw", b".pex", b".zip", b".par"];

/// Where a program of Python is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstEntry {
    /// No entry.
    None,
    /// A directory.
    Folder(ImagePath),
    /// An archive, which brings code of its own and may change the path.
    Archive(ImagePath),
}

/// The entry that comes before all others, added after `site` ran.
pub(super) fn first(files: &ProcessFiles<'_>, call: &PythonCall, options: PathOptions) -> FirstEntry {
    let unless_safe = |folder: ImagePath| if options.safe_path { FirstEntry::None } else { FirstEntry::Folder(folder) };
    match &call.target {
        PythonTarget::Unstated => FirstEntry::None,
        PythonTarget::Module(_) | PythonTarget::Command(_) | PythonTarget::Code => {
            unless_safe(files.directory().clone())
        }
        // An unpacked PEX adds its own directories to the path when it runs.
        PythonTarget::Script(path) if files.is_file(&path.join(b"PEX-INFO")) => FirstEntry::Archive(path.clone()),
        // A directory with `__main__` is an entry itself, also in isolated mode.
        PythonTarget::Script(path) if files.is_directory(path) => FirstEntry::Folder(path.clone()),
        PythonTarget::Script(path) if ARCHIVES.iter().any(|ending| path.file_name().ends_with(ending)) => {
            FirstEntry::Archive(path.clone())
        }
        PythonTarget::Script(path) => unless_safe(files.real(path).unwrap_or_else(|| path.clone()).parent()),
    }
}
