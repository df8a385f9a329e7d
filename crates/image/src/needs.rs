//! What reading an image needs of this machine: files, connections, and programs. It is known from the reference and the
//! configuration, before anything of the image is read, so that the process can give up everything else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What reading images needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageNeeds {
    /// Files and folders that are read. Not all of them need exist.
    pub files: BTreeSet<PathBuf>,
    /// Folders that are listed, for the name that the user may have meant.
    pub folders: BTreeSet<PathBuf>,
    /// True if a registry or an engine is asked.
    pub has_network: bool,
    /// Programs that the user's configuration has run: credential helpers, and ssh.
    pub programs: BTreeSet<String>,
}

impl ImageNeeds {
    /// A file or a folder.
    pub(super) fn of_path(path: &str) -> Self {
        let path = Path::new(path);
        let around = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        let folders = around.filter(|_| !path.exists()).map(Path::to_owned).into_iter().collect();
        Self { files: BTreeSet::from([path.to_owned()]), folders, ..Self::default() }
    }

    /// What both need.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
        self.programs.extend(other.programs);
        self.has_network |= other.has_network;
        self
    }
}

/// Where the needs of a transport's images come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceNeeds {
    /// The target is a path.
    Path,
    /// The configuration of registries.
    Registry,
    /// The engine, and its configuration.
    Engine,
    /// The configuration of stores.
    Store,
}
