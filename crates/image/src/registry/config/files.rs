//! Where the configuration files lie (containers-registries.conf(5), containers-registries.conf.d(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::file::{RegistriesFile, read_file};
use super::short_name::Alias;
use crate::registry::credentials::home;
use crate::source::SourceError;
use model::Environment;

/// The paths of all configuration files.
#[derive(Clone, Debug, Default)]
pub(in crate::registry) struct ConfigFiles {
    /// The file that `CONTAINERS_REGISTRIES_CONF` names. It replaces the user's and the system's, and must exist.
    pub(super) named: Option<PathBuf>,
    /// The user's file. Where it exists, nothing of the system is read.
    pub(super) user: Option<PathBuf>,
    /// The system's file.
    pub(super) system: PathBuf,
    /// The system's folder of further files.
    pub(super) system_folder: PathBuf,
    /// The user's folder of further files.
    pub(super) user_folder: Option<PathBuf>,
    /// Short names that Podman recorded after the user chose a registry; the first that exists counts.
    pub(super) recorded: Vec<PathBuf>,
    /// Docker's file.
    pub(super) daemon: PathBuf,
}

impl ConfigFiles {
    /// The usual files of this machine and user.
    pub(in crate::registry) fn usual(environment: &Environment) -> Self {
        let below_home = |path: &str| home(environment).map(|home| home.join(path));
        let cache = environment.get("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| below_home(".cache"));
        let recorded = cache.into_iter().chain([PathBuf::from("/var/cache")]);
        Self {
            named: environment.get("CONTAINERS_REGISTRIES_CONF").map(PathBuf::from),
            user: below_home(".config/containers/registries.conf"),
            system: "/etc/containers/registries.conf".into(),
            system_folder: "/etc/containers/registries.conf.d".into(),
            user_folder: below_home(".config/containers/registries.conf.d"),
            recorded: recorded.map(|folder| folder.join("containers/short-name-aliases.conf")).collect(),
            daemon: "/etc/docker/daemon.json".into(),
        }
    }

    /// All files and folders.
    pub(in crate::registry) fn all(self) -> impl Iterator<Item = PathBuf> {
        let single =
            [Some(self.system), Some(self.system_folder), self.named, self.user, self.user_folder, Some(self.daemon)];
        single.into_iter().flatten().chain(self.recorded)
    }

    /// One `registries.conf` and nothing of this machine.
    #[cfg(test)]
    pub(in crate::registry) fn only(file: &Path) -> Self {
        Self { named: Some(file.to_owned()), ..Self::default() }
    }

    /// The `registries.conf` files that exist, in the order in which they are merged.
    pub(super) fn registries(&self) -> Result<Vec<PathBuf>, SourceError> {
        let user_folder = self.user_folder.as_deref();
        if let (None, Some(user)) = (&self.named, self.user.as_ref().filter(|user| user.exists())) {
            let mut files = vec![user.clone()];
            files.extend(drop_ins(user_folder)?);
            return Ok(files);
        }
        let system = self.named.clone().or_else(|| self.system.exists().then(|| self.system.clone()));
        let mut files: Vec<PathBuf> = system.into_iter().collect();
        files.extend(drop_ins(Some(&self.system_folder))?);
        files.extend(drop_ins(user_folder)?);
        Ok(files)
    }

    /// The recorded short names.
    pub(super) fn recorded_aliases(&self) -> Result<BTreeMap<String, Alias>, SourceError> {
        let Some(path) = self.recorded.iter().find(|path| path.exists()) else { return Ok(BTreeMap::new()) };
        // Root's file is unreadable for others, who have none of their own.
        if read_file(path)?.is_none() {
            return Ok(BTreeMap::new());
        }
        Ok(RegistriesFile::read(path)?.short_names.aliases)
    }
}

/// The `*.conf` files of a folder, by name; none if there is no such folder.
fn drop_ins(folder: Option<&Path>) -> Result<Vec<PathBuf>, SourceError> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SourceError::io(format!("reading {}", folder.display()), error)),
    };
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "conf") && path.is_file());
    files.sort();
    Ok(files)
}
