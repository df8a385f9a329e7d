//! What a process inherits: variables, working directory and user.

use std::collections::BTreeMap;

use crate::model::{Gap, ImageConfig, ImagePath};
use crate::rootfs::RootFs;

use super::ContainerUser;

/// `PATH` that container runtimes set if the image does not.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The state that a process inherits.
#[derive(Clone, Debug)]
pub(in crate::facts) struct ProcessState {
    /// The working directory.
    pub(in crate::facts) directory: ImagePath,
    /// The user, or why it is unknown.
    pub(in crate::facts) user: Result<ContainerUser, Gap>,
    /// Each variable that is set, or why its value is unknown.
    pub(in crate::facts) variables: BTreeMap<String, Result<String, Gap>>,
    /// Why any variable may have another value.
    pub(in crate::facts) gap: Option<Gap>,
}

impl ProcessState {
    /// The state of the container's first process, as its configuration sets it.
    pub(in crate::facts) fn initial(rootfs: &RootFs, config: Option<&ImageConfig>) -> Self {
        let mut variables: BTreeMap<_, _> = config
            .iter()
            .flat_map(|config| &config.environment)
            .map(|(name, value)| (name.clone(), Ok(value.clone())))
            .collect();
        for (name, gap) in config.iter().flat_map(|config| &config.unknown.variables) {
            variables.insert(name.clone(), Err(gap.clone()));
        }
        let user = match config.and_then(|config| config.unknown.user.as_ref()) {
            Some(gap) => Err(gap.clone()),
            None => Ok(ContainerUser::find(rootfs, config.map_or("", |config| &config.user))),
        };
        Self {
            directory: ImagePath::from(config.map_or("", |config| config.working_directory.as_str())),
            user,
            variables,
            gap: config.and_then(|config| config.unknown.environment.clone()),
        }
    }

    /// The value of a variable; `None` if it is not set.
    pub(in crate::facts) fn variable(&self, name: &str) -> Result<Option<&str>, &Gap> {
        match self.variables.get(name) {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(gap)) => Err(gap),
            None => self.gap.as_ref().map_or(Ok(None), Err),
        }
    }

    /// The value of a variable if it is set and known.
    pub(in crate::facts) fn known(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.as_deref().ok()
    }

    /// The reason why a variable is unknown whose name is selected.
    pub(in crate::facts) fn any_unknown(&self, is_selected: impl Fn(&str) -> bool) -> Option<&Gap> {
        let mut selected = self.variables.iter().filter(|(name, _)| is_selected(name));
        self.gap.as_ref().or_else(|| selected.find_map(|(_, value)| value.as_ref().err()))
    }

    /// The file that a command leads to: a path directly, a name through `PATH`.
    pub(in crate::facts) fn find(&self, command: &str, is_usable: impl Fn(&ImagePath) -> bool) -> Option<ImagePath> {
        if command.contains('/') {
            return Some(self.directory.join(command.as_bytes())).filter(is_usable);
        }
        let path = self.known("PATH").unwrap_or(DEFAULT_PATH);
        path.split(':').map(|folder| ImagePath::from(folder).join(command.as_bytes())).find(is_usable)
    }
}
