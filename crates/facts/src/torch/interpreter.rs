//! The interpreter that imports torch.

use model::{ImageConfig, ImagePath};
use rootfs::RootFs;
use rootfs::loader::elf;

use super::super::python::Python;
use super::super::start::{ProcessState, PythonCall};

/// Calls a function with the interpreter that imports a torch package: the image's, or that of the package's own
/// environment. If neither finds the package, it is the image's, in which the import fails.
pub(super) fn with_python<T>(
    rootfs: &RootFs,
    config: Option<&ImageConfig>,
    python: Option<&Python>,
    package: &ImagePath,
    call: impl FnOnce(&Python) -> T,
) -> Option<T> {
    let folder = package.parent();
    let finds_it = |python: &&Python| python.imports(rootfs, package);
    if let Some(python) = python.filter(finds_it) {
        return Some(call(python));
    }
    let environment = folder.parent().parent().parent();
    let state = ProcessState::initial(rootfs, config);
    let other = Python::of(rootfs, &PythonCall::plain(environment.join(b"bin/python3"), state));
    other.as_ref().filter(finds_it).or(python).map(call)
}

/// `platform.machine()` of an interpreter.
pub(super) fn machine_of(rootfs: &RootFs, python: &Python) -> Option<&'static str> {
    let (_, file) = rootfs.open(python.program.as_ref().ok()?).ok()?;
    match elf(&file)?.machine {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    }
}
