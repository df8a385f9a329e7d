//! What the loader misses, and where the image or its publisher has it.

use model::{ImagePath, SymbolImport, Table};
use rootfs::RootFs;
use rootfs::loader::{Process, elf};

use crate::table;

/// A row of the table of libraries and what brings them.
#[derive(serde::Deserialize)]
pub(crate) struct LibraryRow {
    library: Vec<String>,
    from: String,
}

pub(crate) static LIBRARIES: Table<Vec<LibraryRow>> = table!("libraries");

/// The library that a message of the loader names as missing.
pub(super) fn library(message: &str) -> Option<&str> {
    message.strip_suffix(": cannot open shared object file: No such file or directory")
}

/// Returns true if the image has the library with another version in its name.
pub(super) fn has_other_version(rootfs: &RootFs, library: &str) -> bool {
    let Some((name, _)) = library.split_once(".so.") else { return false };
    let beginning = format!("{name}.so.");
    rootfs.files_named(|own| own.starts_with(beginning.as_bytes())).next().is_some()
}

/// The major release of CUDA that a missing library belongs to. Other libraries of CUDA count their releases on their own.
pub(super) fn cuda_release(message: &str) -> Option<&str> {
    const OF_RELEASES: [&str; 5] =
        ["libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so.", "libnvJitLink.so."];
    let name = library(message)?;
    OF_RELEASES.iter().find_map(|beginning| name.strip_prefix(beginning))?.split('.').next()
}

/// The symbol that a message of the loader names as undefined.
fn symbol(message: &str) -> Option<&str> {
    let (_, symbol) = message.split_once(": undefined symbol: ")?;
    Some(symbol.split(", version ").next().unwrap_or(symbol))
}

/// A library with the folder of the image that has it, or with what usually brings it: `libcudart.so.12 (…)`.
pub(super) fn with_source(rootfs: &RootFs, name: &str) -> String {
    if let Some((path, _)) = rootfs.files_named(|own| own == name.as_bytes()).next() {
        return format!("{name} (in {}, which LD_LIBRARY_PATH does not name)", path.parent());
    }
    let row = LIBRARIES.iter().find(|row| row.library.iter().any(|beginning| name.starts_with(beginning)));
    row.map_or_else(|| name.to_owned(), |row| format!("{name} ({})", row.from))
}

/// Returns true if a library of the image that the process has not mapped is or defines what a message misses.
pub(super) fn is_elsewhere(rootfs: &RootFs, process: &Process<'_>, message: &str) -> bool {
    let library = library(message);
    let symbol = symbol(message);
    let keys = symbol.map(|symbol| SymbolImport { name: symbol.as_bytes(), version: None }.keys());
    let is_mapped = |path: &ImagePath| process.objects().iter().any(|object| object.path == *path);
    rootfs.read_files().any(|(path, file)| {
        let Some(elf) = elf(&file).filter(|_| !is_mapped(path)) else { return false };
        let is_it =
            library.is_some_and(|name| elf.soname.as_deref() == Some(name) || path.file_name() == name.as_bytes());
        let defines = keys.as_ref().is_some_and(|keys| elf.links.as_ref().is_ok_and(|links| links.exports.fit(keys)));
        is_it || defines
    })
}
