//! Image configuration (OCI image-spec, `config.md`), reduced to the fields in use.

use std::collections::BTreeMap;

use super::{Gap, Platform};

/// Start parameters and metadata of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Platform that the image declares.
    pub platform: Option<Platform>,
    /// Environment. The last of several values of a variable wins, as in the runtime.
    pub environment: BTreeMap<String, String>,
    /// `Entrypoint`.
    pub entrypoint: Vec<String>,
    /// `Cmd`.
    pub command: Vec<String>,
    /// `User`; empty means root.
    pub user: String,
    /// `WorkingDir`.
    pub working_directory: String,
    /// `Labels`.
    pub labels: BTreeMap<String, String>,
    /// What replaces the image's own command, Python and user.
    pub start: StartChoice,
    /// The parts of a configuration that the image does not declare, or that were not determined.
    pub unknown: UnknownConfig,
}

/// The start of a container as a user describes it, where it is not the image's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartChoice {
    /// A shell command that is run in place of the image's entrypoint and command.
    pub command: Option<String>,
    /// Path of the Python that runs, whatever the command calls.
    pub python: Option<String>,
    /// The user, as `NAME` or `UID`, each with `:GROUP` or without.
    pub user: Option<String>,
}

impl StartChoice {
    /// Returns true if everything is the image's own.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Unknown parts of a configuration, with the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownConfig {
    /// Why the entrypoint and the command are unknown.
    pub command: Option<Gap>,
    /// Why the user and the working directory are unknown.
    pub user: Option<Gap>,
    /// Variables whose values are unknown.
    pub variables: BTreeMap<String, Gap>,
    /// Why any variable may have another value.
    pub environment: Option<Gap>,
}

impl UnknownConfig {
    /// The reason why one of these variables is unknown.
    pub fn among(&self, names: &[&str]) -> Option<&Gap> {
        self.environment.as_ref().or_else(|| names.iter().find_map(|name| self.variables.get(*name)))
    }

    /// The reason why a variable is unknown whose name is selected.
    pub fn any(&self, is_selected: impl Fn(&str) -> bool) -> Option<&Gap> {
        let mut selected = self.variables.iter().filter(|(name, _)| is_selected(name));
        self.environment.as_ref().or_else(|| selected.next().map(|(_, gap)| gap))
    }
}
