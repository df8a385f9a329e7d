//! What a name is imported from: the finders of `sys.path` (CPython, `Lib/importlib/_bootstrap_external.py`).

use model::ImagePath;

use super::files::ProcessFiles;
use super::version::PythonVersion;

/// What an entry of `sys.path` has for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Importable {
    /// A directory with code for the package itself, and the file of this code.
    Package(ImagePath, ImagePath),
    /// A file.
    Module(ImagePath),
    /// A directory without code of its own, which is imported if no other entry has more.
    Namespace(ImagePath),
}

impl Importable {
    /// The package, or the file.
    pub(crate) const fn path(&self) -> &ImagePath {
        match self {
            Self::Package(path, _) | Self::Module(path) | Self::Namespace(path) => path,
        }
    }
}

/// What is imported by a name, from the first entry that has more than a directory, else from the first directory.
pub(super) fn find(
    files: &ProcessFiles<'_>,
    version: PythonVersion,
    entries: &[ImagePath],
    name: &str,
) -> Option<Importable> {
    let mut namespace = None;
    for entry in entries {
        if !files.budget.spend(1) {
            return None;
        }
        match in_entry(files, version, entry, name) {
            Some(Importable::Namespace(folder)) => {
                namespace.get_or_insert(folder);
            }
            Some(found) => return Some(found),
            None => {}
        }
    }
    namespace.map(Importable::Namespace)
}

/// What one directory has for a name.
pub(super) fn in_entry(
    files: &ProcessFiles<'_>,
    version: PythonVersion,
    entry: &ImagePath,
    name: &str,
) -> Option<Importable> {
    // A directory that cannot be listed has nothing.
    if !files.lists(entry) {
        return None;
    }
    let package = entry.join(name.as_bytes());
    let is_directory = files.is_directory(&package);
    if is_directory && let Some(init) = code(files, version, &package, "__init__") {
        return Some(Importable::Package(package, init));
    }
    match code(files, version, entry, name) {
        Some(module) => Some(Importable::Module(module)),
        None => is_directory.then_some(Importable::Namespace(package)),
    }
}

/// The file of a module in a directory: an extension, then source, then bytecode.
fn code(files: &ProcessFiles<'_>, version: PythonVersion, folder: &ImagePath, name: &str) -> Option<ImagePath> {
    let own = format!("{name}.cpython-3{}{}-", version.minor, version.mark());
    let tagged = files.names_with(folder, own.as_bytes()).find(|file| file.ends_with(b".so"));
    let tagged = tagged.map(|file| folder.join(file)).filter(|file| files.is_file(file));
    tagged.or_else(|| {
        let suffixes = ["abi3.so", "so", "py", "pyc"].into_iter();
        let mut candidates = suffixes.map(|suffix| folder.join(format!("{name}.{suffix}").as_bytes()));
        candidates.find(|file| files.is_file(file))
    })
}

/// The absolute name of a module that a package imports; `None` if it has more dots than the package has parents.
pub(crate) fn absolute(module: &str, package: &str) -> Option<String> {
    let relative = module.trim_start_matches('.');
    let dots = module.len() - relative.len();
    if dots == 0 {
        return Some(module.to_owned());
    }
    let parts: Vec<_> = package.split('.').filter(|part| !part.is_empty()).collect();
    let kept = parts.len().checked_sub(dots - 1)?;
    let parts = parts.into_iter().take(kept).chain((!relative.is_empty()).then_some(relative));
    Some(parts.collect::<Vec<_>>().join(".")).filter(|name| !name.is_empty())
}
