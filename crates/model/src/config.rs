//! Image configuration (OCI image-spec, `config.md`), reduced to the fields in use.

use std::collections::BTreeMap;

use super::{Gap, Platform, Site};

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
    /// The build arguments that the step of each layer uses, from the lowest layer.
    pub build_arguments: Vec<BTreeMap<String, String>>,
    /// What replaces the image's own command, Python and user.
    pub start: StartChoice,
    /// The parts of a configuration that the image does not declare, or that were not determined.
    pub unknown: UnknownConfig,
}

/// The start of a container as a user describes it, where it is not the image's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartChoice {
    /// What is run in place of the image's entrypoint and command, or why a launch file leaves that unknown.
    pub command: Option<Result<StartCommand, Gap>>,
    /// The Python that runs, whatever the command calls: a path, or a name that is searched for in `PATH`.
    pub python: Option<String>,
    /// The user in place of the image's own, or why a launch file leaves it unknown.
    pub user: Option<Result<StartUser, Gap>>,
}

/// The user of a container, where it is not the image's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartUser {
    /// `NAME` or `UID`, each with `:GROUP` or without; `None` keeps the image's own.
    pub name: Option<String>,
    /// The number of the group in place of the user's own. Groups that have the user as a member stay.
    pub group: Option<u32>,
    /// The names or numbers of groups that it has beside its own.
    pub more: Vec<String>,
    /// The line that names it; `None` for an option.
    pub at: Option<Site>,
}

impl StartUser {
    /// The user of an option: `NAME` or `UID`, each with `:GROUP` or without.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }
}

impl StartChoice {
    /// Returns true if everything is the image's own.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same without the command and the user of a launch file.
    #[must_use]
    pub fn without_job(&self) -> Self {
        let is_own = |command: &Result<StartCommand, Gap>| command.as_ref().is_ok_and(|command| !command.is_of_job);
        let is_option = |user: &Result<StartUser, Gap>| user.as_ref().is_ok_and(|user| user.at.is_none());
        Self { command: self.command.clone().filter(is_own), user: self.user.clone().filter(is_option), ..self.clone() }
    }
}

/// A command in place of an image's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartCommand {
    /// The option or the file that names it.
    pub from: String,
    /// What replaces the entrypoint; `None` keeps it.
    pub entrypoint: Option<Vec<String>>,
    /// What replaces the command; `None` keeps it.
    pub arguments: Option<Vec<String>>,
    /// What replaces the working directory.
    pub directory: Option<String>,
    /// True if a launch file names it: `${NAME}` stands for what only the job knows.
    pub is_of_job: bool,
}

impl StartCommand {
    /// The command of an option: words in the form of a JSON array, or otherwise a text that a shell reads.
    ///
    /// # Errors
    /// The text begins with `[` and ends with `]`, and is not an array of words.
    pub fn of_option(from: &str, text: &str) -> Result<Self, String> {
        let start = text.trim_start();
        // `[` alone, or twice, is a command of a shell.
        let is_array = start.starts_with('[') && !start.starts_with("[ ") && !start.starts_with("[[");
        let words = if is_array {
            serde_json::from_str::<Vec<String>>(text).map_err(|error| format!("not an array of words: {error}"))?
        } else {
            vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()]
        };
        if words.is_empty() {
            return Err("an array without words names no program".to_owned());
        }
        Ok(Self {
            from: from.to_owned(),
            entrypoint: Some(words),
            arguments: Some(Vec::new()),
            directory: None,
            is_of_job: false,
        })
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
