//! A torch built for glibc in a Python that runs on musl. Which library musl misses first is not simulated; that the
//! import fails is certain.

use model::ImagePath;
use rootfs::RootFs;
use rootfs::loader::{elf, is_musl};

use super::super::Context;
use super::interpreter::with_python;

/// Why the import fails, if torch's libraries need glibc and the interpreter runs on musl.
pub(super) fn failure(context: &Context<'_>) -> Option<String> {
    let package = context.torch.imported_as.as_ref()?;
    let library = needs_glibc(context.rootfs, &package.join(b"lib"))?;
    with_python(context.rootfs, context.config, context.python.as_ref(), package, |python| {
        let (program, file) = context.rootfs.open(python.program.as_ref().ok()?).ok()?;
        let interpreter = elf(&file)?.interpreter.as_ref().filter(|name| is_musl(name))?;
        Some(format!("{library} is built for glibc, and {program} runs on musl ({interpreter})"))
    })?
}

/// A library of torch that needs glibc's C library.
fn needs_glibc(rootfs: &RootFs, folder: &ImagePath) -> Option<ImagePath> {
    rootfs.names(folder).filter(|name| name.starts_with(b"libtorch")).find_map(|name| {
        let (path, file) = rootfs.open(&folder.join(name)).ok()?;
        let is_glibc = elf(&file)?
            .version_needs
            .iter()
            .any(|need| need.file == "libc.so.6" && need.versions.iter().any(|version| version.starts_with("GLIBC_")));
        is_glibc.then_some(path)
    })
}
