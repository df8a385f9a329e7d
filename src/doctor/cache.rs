//! The folders that ncclcheck writes to.

use std::path::Path;

use super::{Offer, OwnFolders};
use model::cause;

const AREA: &str = "folders";

pub(super) fn offers(folders: &OwnFolders) -> Vec<Offer> {
    let cache = folders.cache.as_deref().map_or_else(
        || Offer::absent(AREA, "cache", "no folder: set XDG_CACHE_HOME or HOME to an absolute path"),
        |folder| writable("cache", folder, "set XDG_CACHE_HOME to a folder that you may write to, or use --cache off"),
    );
    vec![cache, writable("temporary files", &folders.temporary, "set TMPDIR to a folder that you may write to")]
}

/// Creates and removes a file in the folder, or in the nearest parent that exists.
fn writable(name: &str, folder: &Path, help: &str) -> Offer {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    match tempfile::tempfile_in(existing) {
        Ok(_) => Offer::works(AREA, name, folder.display().to_string()),
        Err(error) => Offer::broken(AREA, name, format!("{}: {}", folder.display(), cause(&error)), help),
    }
}
