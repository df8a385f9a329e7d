//! The image of a preflight, which is read while it runs, and what its entrypoint is predicted to do.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

use facts::{Handover, NoHandover, handover};
use image::{Image, ImageError};
use model::{Gap, ImageConfig, UnknownConfig};
use probe::recording::Recording;
use probe::wire::entrypoint::GivenProcess;

type Loaded = Result<Vec<Image>, ImageError>;

/// An image that another thread reads.
pub struct ImageReading<'scope> {
    thread: Cell<Option<ScopedJoinHandle<'scope, Loaded>>>,
    images: OnceCell<Loaded>,
}

impl<'scope> ImageReading<'scope> {
    pub(super) fn new(thread: ScopedJoinHandle<'scope, Loaded>) -> Self {
        Self { thread: Cell::new(Some(thread)), images: OnceCell::new() }
    }

    /// Waits until the image has been read, and returns why its entrypoint is not one that starts the command of a job,
    /// here a Python, or why that is unknown. `None` if it is one, even if it fails before.
    pub fn entrypoint_gap(&self, python: &str) -> Option<Gap> {
        let why = |why: String| Some(Gap::new(why));
        match self.images().as_deref() {
            Ok([Image { config: Some(config), .. }]) if config.start.command.is_some() => {
                let from = config.start.command.iter().flatten().map(|command| command.from.clone()).next();
                why(format!("{} replaces it in the job", from.as_deref().unwrap_or("another command")))
            }
            Ok([Image { config: Some(config), rootfs, .. }]) => match handover(rootfs, config, python) {
                Ok(_) | Err(NoHandover::StartsNothing) => None,
                Err(NoHandover::Other(gap)) => Some(gap),
            },
            Ok(_) => why("the image has no single configuration".to_owned()),
            Err(error) => why(format!("the image cannot be read: {error}")),
        }
    }

    /// Waits until the image has been read.
    pub(super) fn finish(self) -> Loaded {
        self.images();
        self.images.into_inner().unwrap_or_else(|| Ok(Vec::new()))
    }

    fn images(&self) -> &Loaded {
        self.images.get_or_init(|| {
            let joined = self.thread.take().map(ScopedJoinHandle::join);
            joined.map_or_else(|| Ok(Vec::new()), |joined| joined.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }
}

impl fmt::Debug for ImageReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageReading").field("is_done", &self.images.get().is_some()).finish_non_exhaustive()
    }
}

/// What the image's entrypoint hands over to the program of this run, as the image's files predict it.
pub(super) fn predicted(image: &Image, recording: &Recording) -> Result<Handover, Gap> {
    let entrypoint = recording.launch.as_ref().and_then(|launch| launch.entrypoint_in_use());
    match (&image.config, entrypoint) {
        (Some(config), Some(launch)) => {
            let config = launch.given.as_ref().map_or_else(|| config.clone(), |given| as_given(config, given));
            handover(&image.rootfs, &config, &launch.python).map_err(NoHandover::gap)
        }
        _ => Err(Gap::new("the program did not run behind an entrypoint")),
    }
}

/// The configuration with what the engine gave the container, which may lack variables that the job sets elsewhere.
fn as_given(config: &ImageConfig, given: &GivenProcess) -> ImageConfig {
    let mut config = ImageConfig { unknown: UnknownConfig::default(), ..config.clone() };
    config.environment.retain(|name, _| given.environment.contains_key(name));
    for (name, value) in &given.environment {
        match value {
            Some(value) => drop(config.environment.insert(name.clone(), value.clone())),
            None if config.environment.contains_key(name) => {}
            None => {
                let why = Gap::new(format!("the value of {name} may be a secret, which the recording does not keep"));
                config.unknown.variables.insert(name.clone(), why);
            }
        }
    }
    (config.user, config.start.user) = (given.user.clone(), None);
    config.working_directory.clone_from(&given.directory);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_begins_with_what_the_engine_gave() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let config = ImageConfig {
            environment: [pair("NCCL_DEBUG", "INFO"), pair("TOKEN", "x"), pair("NCCL_ALGO", "Ring")].into(),
            user: "1".to_owned(),
            ..ImageConfig::default()
        };
        let mut given = GivenProcess::default();
        for (name, value) in [("NCCL_DEBUG", Some("WARN")), ("TOKEN", None), ("OTHER", None)] {
            given.environment.insert(name.to_owned(), value.map(ToOwned::to_owned));
        }
        (given.user, given.directory) = ("1000".to_owned(), "/work".to_owned());
        let config = as_given(&config, &given);
        assert_eq!(config.environment, [pair("NCCL_DEBUG", "WARN"), pair("TOKEN", "x")].into());
        assert_eq!(config.unknown.variables.keys().collect::<Vec<_>>(), ["OTHER"]);
        assert_eq!((&*config.user, &*config.working_directory), ("1000", "/work"));
    }
}
