//! What a process inherits: variables, working directory and user.

use std::collections::BTreeMap;

use model::{Gap, ImageConfig, ImagePath, Site};
use rootfs::RootFs;
use shell::{ShellGap, ShellKind, ShellState, ShellValue};

use super::ContainerUser;
use super::gap::{in_shell, shown};

/// `PATH` that container runtimes set if the image does not.
pub(super) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The state that a process inherits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessState {
    /// The working directory.
    pub(crate) directory: ImagePath,
    /// The user, or why it is unknown.
    pub(crate) user: Result<ContainerUser, Gap>,
    /// Each variable that is set, or why its value is unknown.
    pub(crate) variables: BTreeMap<String, Result<String, Gap>>,
    /// The lines of scripts that set variables, by name.
    pub(crate) origins: BTreeMap<String, Site>,
    /// Why any variable may have another value.
    pub(crate) gap: Option<Gap>,
}

impl ProcessState {
    /// The state of the container's first process, as its configuration sets it.
    pub(crate) fn initial(rootfs: &RootFs, config: Option<&ImageConfig>) -> Self {
        let mut variables: BTreeMap<_, _> = config
            .iter()
            .flat_map(|config| &config.environment)
            .map(|(name, value)| (name.clone(), Ok(value.clone())))
            .collect();
        for (name, gap) in config.iter().flat_map(|config| &config.unknown.variables) {
            variables.insert(name.clone(), Err(gap.clone()));
        }
        let chosen = config.and_then(|config| config.start.user.as_ref());
        let own = config.map_or("", |config| &config.user);
        let user = match (chosen, config.and_then(|config| config.unknown.user.as_ref())) {
            (Some(Ok(user)), unknown) if unknown.is_none() || user.name.is_some() => {
                Ok(ContainerUser::given(rootfs, own, user))
            }
            (Some(Err(gap)), _) | (_, Some(gap)) => Err(gap.clone()),
            (_, None) => Ok(ContainerUser::find(rootfs, own)),
        };
        Self {
            directory: ImagePath::from(config.map_or("", directory)),
            user,
            variables,
            origins: BTreeMap::new(),
            gap: config.and_then(|config| config.unknown.environment.clone()),
        }
    }

    /// The state of a shell with these variables. Container runtimes set `HOME` if the image does not.
    pub(super) fn shell(&self) -> ShellState {
        let mut shell = ShellState::new(ShellKind::Posix, "");
        shell.gap = self.gap.clone().map(in_shell);
        shell.directory = Ok(self.directory.to_string());
        shell.export("PATH", Ok(DEFAULT_PATH.to_owned()));
        shell.export("HOME", self.user.clone().map(|user| user.home().to_string()).map_err(in_shell));
        for (name, value) in &self.variables {
            let value = self.gap.clone().map_or_else(|| value.clone(), Err);
            shell.export(name, value.map_err(in_shell));
        }
        shell
    }

    /// The state that a program inherits from a shell.
    pub(super) fn inherited(
        rootfs: &RootFs,
        shell: &ShellState,
        user: &Result<ContainerUser, Gap>,
    ) -> Result<Self, ShellGap> {
        let mut variables = BTreeMap::new();
        let mut origins = BTreeMap::new();
        for (name, variable) in shell.exported() {
            let value = variable.value.clone().map(|value| match value {
                Some(ShellValue::Text(text)) => text,
                Some(ShellValue::List(_)) | None => String::new(),
            });
            variables.insert(name.to_owned(), value.map_err(shown));
            if let Some((file, line)) = &variable.at {
                origins.insert(name.to_owned(), site(rootfs, file, *line));
            }
        }
        let directory = ImagePath::from(shell.directory.clone()?.as_str());
        Ok(Self { directory, user: user.clone(), variables, origins, gap: shell.gap.clone().map(shown) })
    }

    /// The same state with every variable unknown.
    pub(super) fn unknown(self, gap: &Gap) -> Self {
        let variables = self.variables.into_keys().map(|name| (name, Err(gap.clone())));
        Self { variables: variables.collect(), origins: BTreeMap::new(), gap: Some(gap.clone()), ..self }
    }

    /// The image's configuration, as a process of this state has it.
    pub(super) fn applied_to(&self, config: &ImageConfig) -> ImageConfig {
        let mut config = config.clone();
        let known = self.variables.iter().filter_map(|(name, value)| Some((name.clone(), value.clone().ok()?)));
        let unknown = self.variables.iter().filter_map(|(name, value)| Some((name.clone(), value.clone().err()?)));
        (config.environment, config.unknown.variables) = (known.collect(), unknown.collect());
        config.unknown.environment.clone_from(&self.gap);
        config.working_directory = self.directory.to_string();
        config
    }

    /// The value of a variable if it is set and known.
    pub(crate) fn known(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.as_deref().ok()
    }

    /// The reason why a variable is unknown whose name is selected.
    pub(crate) fn any_unknown(&self, is_selected: impl Fn(&str) -> bool) -> Option<&Gap> {
        let mut selected = self.variables.iter().filter(|(name, _)| is_selected(name));
        self.gap.as_ref().or_else(|| selected.find_map(|(_, value)| value.as_ref().err()))
    }

    /// The file that a command leads to: a path directly, a name through `PATH`.
    pub(crate) fn find(&self, command: &str, is_usable: impl Fn(&ImagePath) -> bool) -> Option<ImagePath> {
        if command.contains('/') {
            return Some(self.directory.join(command.as_bytes())).filter(is_usable);
        }
        let path = self.known("PATH").unwrap_or(DEFAULT_PATH);
        path.split(':').map(|folder| ImagePath::from(folder).join(command.as_bytes())).find(is_usable)
    }
}

/// The working directory, as stated by the configuration or for this check.
fn directory(config: &ImageConfig) -> &str {
    let chosen = config.start.command.as_ref().and_then(|command| command.as_ref().ok()?.directory.as_deref());
    chosen.unwrap_or(&config.working_directory)
}

/// A line of a script, or of a command in the configuration.
fn site(rootfs: &RootFs, file: &str, line: usize) -> Site {
    let path = ImagePath::from(file);
    match rootfs.open(&path) {
        Ok((real, found)) if file.starts_with('/') => found.site(&real, Some(&format!("line {line}"))),
        _ => Site::Config(format!("{file}, line {line}")),
    }
}
