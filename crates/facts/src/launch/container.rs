//! The containers that launch files start, and the command of each.

use model::document::YamlNode;
use model::{Gap, StartCommand, StartUser};

use super::given::{Given, Said, Starter, site};
use super::{LaunchFile, Setting};

/// A container that a launch file starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchContainer {
    /// Its name, or that of its service, task or program.
    pub name: String,
    /// The line where it begins, from 1.
    pub line: usize,
    /// The image, as the file names it.
    pub image: Option<String>,
    /// True for a service of a Compose profile, which starts only if it is asked for.
    pub is_optional: bool,
    /// What it gets beside its command.
    pub given: Given,
    /// The options of a run line of Docker, Podman or nerdctl, in its order and by the names that it uses, each with its value,
    /// if it has one. They may hold secrets.
    pub options: Vec<(String, Option<String>)>,
    /// The variables that it gets beside those of the whole file.
    pub settings: Vec<Setting>,
    /// What replaces the image's entrypoint.
    pub entrypoint: Option<Vec<String>>,
    /// What replaces the image's command.
    pub arguments: Option<Vec<String>>,
    /// What replaces the working directory.
    pub directory: Option<String>,
    /// What replaces the user.
    pub user: Option<Said<StartUser>>,
}

impl LaunchContainer {
    fn command(&self, file: &str) -> StartCommand {
        StartCommand {
            from: file.to_owned(),
            entrypoint: self.entrypoint.clone(),
            arguments: self.arguments.clone(),
            directory: self.directory.clone(),
            is_of_job: true,
        }
    }

    /// The user that the file gives the container; `None` if that is the image's own.
    fn user(&self, file: &str) -> Option<Result<StartUser, Gap>> {
        let why = match &self.user {
            Some(Said { value: Some(user), line }) => {
                return Some(Ok(StartUser { at: Some(site(file, *line, "user")), ..user.clone() }));
            }
            Some(Said { value: None, line }) => format!("{file}:{line}: the user is computed when the job starts"),
            None if self.given.starter == Starter::Scheduler => {
                format!("{file}:{}: {} runs a container as the user who calls it", self.line, self.name)
            }
            None => return None,
        };
        Some(Err(Gap::new(why).settled_by("name the user of the job with --user")))
    }

    /// True if it runs ncclcheck, as a preflight before the job does.
    pub(super) fn is_preflight(&self) -> bool {
        let program = self.entrypoint.iter().chain(&self.arguments).flatten().next();
        program.is_some_and(|program| program.rsplit('/').next() == Some("ncclcheck"))
    }

    /// True if another container gets the same: the same image, command, variables and devices, by other lines of the file.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let what = |container: &Self| {
            let values = container.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
            (
                container.image.clone(),
                container.entrypoint.clone(),
                container.arguments.clone(),
                values.collect::<Vec<_>>(),
            )
        };
        what(self) == what(other) && self.given == other.given
    }

    /// True if the file names the image by this reference, which may have a transport before it.
    fn is_of(&self, reference: &str) -> bool {
        let Some(image) = &self.image else { return false };
        reference.strip_suffix(image.as_str()).is_some_and(|before| before.is_empty() || before.ends_with([':', '/']))
    }
}

/// The command that a launch file gives a container of an image; `None` if that is the image's own. Containers of this image
/// count before others, and those with a GPU before those without.
pub(super) fn choose(file: &LaunchFile, reference: &str) -> Option<Result<StartCommand, Gap>> {
    let mut commands: Vec<StartCommand> = Vec::new();
    for container in meant(&file.containers, reference) {
        let command = container.command(&file.name);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    match commands.as_slice() {
        [] => None,
        [one] if one.entrypoint.is_none() && one.arguments.is_none() && one.directory.is_none() => None,
        [one] => Some(Ok(one.clone())),
        several => {
            let why = format!("{} starts containers with {} different commands", file.name, several.len());
            Some(Err(Gap::new(why).settled_by("name the command of the job with --command")))
        }
    }
}

/// The user that a launch file gives a container of an image; `None` if that is the image's own.
pub(super) fn choose_user(file: &LaunchFile, reference: &str) -> Option<Result<StartUser, Gap>> {
    let containers = meant(&file.containers, reference);
    let (first, others) = containers.split_first()?;
    if others.iter().all(|other| other.user == first.user) {
        return first.user(&file.name);
    }
    let why = format!("{} starts containers as different users", file.name);
    Some(Err(Gap::new(why).settled_by("name the user of the job with --user")))
}

/// The containers of an image, or of a file that names none of them all: those with a GPU, if one has a GPU.
pub(super) fn meant<'c>(containers: &'c [LaunchContainer], reference: &str) -> Vec<&'c LaunchContainer> {
    let own = preferred(containers.iter().collect(), |container| container.is_of(reference));
    preferred(own, |container| container.given.has_gpu)
}

/// The containers for which this holds, or all if it holds for none.
fn preferred(containers: Vec<&LaunchContainer>, holds: impl Fn(&LaunchContainer) -> bool) -> Vec<&LaunchContainer> {
    let preferred: Vec<_> = containers.iter().copied().filter(|container| holds(container)).collect();
    if preferred.is_empty() { containers } else { preferred }
}

/// The texts of a list; `None` if one is not a text.
pub(super) fn texts(list: &YamlNode) -> Option<Vec<String>> {
    list.list()
        .iter()
        .map(|word| word.as_str().map(ToOwned::to_owned))
        .collect::<Option<Vec<_>>>()
        .filter(|words| !words.is_empty())
}
