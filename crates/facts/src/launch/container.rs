//! The containers that launch files start, and the command of each.

use model::{Gap, StartCommand};

/// A container that a launch file starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchContainer {
    /// The image, as the file names it.
    pub image: Option<String>,
    /// True if the file gives it a GPU.
    pub has_gpu: bool,
    /// What replaces the image's entrypoint.
    pub entrypoint: Option<Vec<String>>,
    /// What replaces the image's command.
    pub arguments: Option<Vec<String>>,
    /// What replaces the working directory.
    pub directory: Option<String>,
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

    /// True if the file names the image by this reference, which may have a transport before it.
    fn is_of(&self, reference: &str) -> bool {
        let Some(image) = &self.image else { return false };
        reference.strip_suffix(image.as_str()).is_some_and(|before| before.is_empty() || before.ends_with([':', '/']))
    }
}

/// The command that a launch file gives a container of an image; `None` if that is the image's own. Containers of this image
/// count before others, and those with a GPU before those without.
pub fn choose(file: &str, containers: &[LaunchContainer], reference: &str) -> Option<Result<StartCommand, Gap>> {
    let own = preferred(containers.iter().collect(), |container| container.is_of(reference));
    let mut commands: Vec<StartCommand> = Vec::new();
    for container in preferred(own, |container| container.has_gpu) {
        let command = container.command(file);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    match commands.as_slice() {
        [] => None,
        [one] if one.entrypoint.is_none() && one.arguments.is_none() && one.directory.is_none() => None,
        [one] => Some(Ok(one.clone())),
        several => {
            let why = format!("{file} starts containers with {} different commands", several.len());
            Some(Err(Gap::new(why).settled_by("name the command of the job with --command")))
        }
    }
}

/// The containers that are meant, or all if none is.
fn preferred(containers: Vec<&LaunchContainer>, is_meant: impl Fn(&LaunchContainer) -> bool) -> Vec<&LaunchContainer> {
    let meant: Vec<_> = containers.iter().copied().filter(|container| is_meant(container)).collect();
    if meant.is_empty() { containers } else { meant }
}
