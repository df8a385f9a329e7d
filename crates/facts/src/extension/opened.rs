//! Libraries that modules open by their paths, so that no import names them.

use model::{ImagePath, Table};
use rootfs::RootFs;

use crate::table;

/// A row of the table.
#[derive(serde::Deserialize)]
pub(crate) struct OpenedLibraries {
    /// The module, which needs one of the libraries.
    module: String,
    /// Beginnings of their paths below the folder of packages.
    libraries: Vec<String>,
}

pub(crate) static OPENED: Table<Vec<OpenedLibraries>> = table!("extensions");

/// The libraries that the import of a module opens: one of each list must load.
pub(super) fn of(module: &str, rootfs: &RootFs, folders: &[ImagePath]) -> Vec<Vec<ImagePath>> {
    let rows = OPENED.iter().filter(|row| row.module == module);
    rows.map(|row| {
        let beginnings =
            row.libraries.iter().flat_map(|library| folders.iter().map(|folder| folder.join(library.as_bytes())));
        let found = beginnings.flat_map(|beginning| {
            let folder = beginning.parent();
            let names = rootfs.names_with(&folder, beginning.file_name()).filter(|name| name.ends_with(b".so"));
            names.map(|name| folder.join(name)).collect::<Vec<_>>()
        });
        found.collect()
    })
    .collect()
}

/// The modules that open a library, which has this path below a folder of packages.
pub(super) fn by(path: &str) -> impl Iterator<Item = &'static str> {
    let opens = move |row: &&OpenedLibraries| row.libraries.iter().any(|library| path.starts_with(library.as_str()));
    OPENED.iter().filter(opens).map(|row| row.module.as_str())
}
