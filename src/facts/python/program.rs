//! The file and the version of an interpreter.

use crate::model::{Gap, ImagePath};
use crate::rootfs::RootFs;

use super::super::start::ProcessState;
use super::minor_of;

/// The interpreter behind a pyenv shim, which is a script that chooses at run time; `None` if it is not a shim.
pub(super) fn behind_shim(
    rootfs: &RootFs,
    state: &ProcessState,
    name: &ImagePath,
    real: &ImagePath,
) -> Option<Result<ImagePath, Gap>> {
    let folder = real.parent();
    let versions = folder.parent().join(b"versions");
    if folder.file_name() != b"shims" || !rootfs.is_directory(&versions) {
        return None;
    }
    let chosen = state.known("PYENV_VERSION");
    let installed = rootfs.names(&versions).filter(|version| chosen.is_none_or(|chosen| chosen.as_bytes() == *version));
    let programs: Vec<_> = installed.map(|version| versions.join(version).join(b"bin/python")).collect();
    let mut programs = programs.into_iter().filter(|path| rootfs.open(path).is_ok());
    Some(match (programs.next(), programs.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(Gap::new(format!("{name} is a pyenv shim, which chooses one of several interpreters when it runs"))
            .settled_by("choose one with -e PYENV_VERSION=VERSION")),
    })
}

/// The minor version of an interpreter, from its file name or from the directories of its prefix.
pub(super) fn minor(rootfs: &RootFs, real: &ImagePath, prefix: &ImagePath) -> Option<u32> {
    minor_of(real).or_else(|| {
        let lib = prefix.join(b"lib");
        let mut versions = rootfs
            .names(&lib)
            .filter_map(|name| minor_of(&ImagePath::normalise(name)).filter(|_| rootfs.is_directory(&lib.join(name))));
        versions.next().filter(|_| versions.next().is_none())
    })
}
