//! The sandbox of a command: what its arguments need of this machine. It is entered once everything that the user names
//! has been resolved, and before the first thread starts, which it would not reach.

use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;
use image::{ImageNeeds, Request};
use layer::cache::ScanCache;
use layer::store::ObjectFolder;
use model::{Environment, Limits, SandboxState};

use super::CliError;
use super::output::OutputTarget;
use super::output_file::spare_images;
use super::plan::ImagesPlan;

/// Why a command that starts programs itself has no sandbox.
pub(super) const STARTS_PROGRAMS: &str = "a probe starts programs";

/// Environment variable with `off` for a command that keeps all rights.
const SANDBOX: &str = "NCCLCHECK_SANDBOX";

/// What a command needs.
#[derive(Debug, Default)]
pub(super) struct CommandNeeds {
    sandbox: Sandbox,
    images: ImageNeeds,
    is_unwanted: bool,
}

impl CommandNeeds {
    /// A command that needs nothing, unless the environment turns the sandbox off.
    pub(super) fn new(environment: &Environment) -> Result<Self, CliError> {
        let value = environment.get(SANDBOX);
        if let Some(text) = value.filter(|value| *value != "off") {
            return Err(CliError::Usage(format!("{SANDBOX}={text}: expected off")));
        }
        Ok(Self { sandbox: Sandbox::new(), images: ImageNeeds::default(), is_unwanted: value.is_some() })
    }

    /// Adds what reading images needs.
    pub(super) fn images<'r>(&mut self, requests: impl IntoIterator<Item = &'r Request>) -> &mut Self {
        if self.is_unwanted { self } else { self.reading(image::needs(requests)) }
    }

    fn reading(&mut self, images: ImageNeeds) -> &mut Self {
        self.images = std::mem::take(&mut self.images).and(images);
        self
    }

    /// Adds temporary files.
    pub(super) fn temporary(&mut self, limits: &Limits) -> &mut Self {
        self.sandbox.spool(limits.temporary.clone().unwrap_or_else(std::env::temp_dir));
        self
    }

    /// Adds files and folders that are read.
    pub(super) fn files(&mut self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> &mut Self {
        for path in paths {
            self.sandbox.read(path);
        }
        self
    }

    /// Adds the outputs of reports.
    pub(super) fn outputs<'t>(&mut self, targets: impl IntoIterator<Item = &'t OutputTarget>) -> &mut Self {
        for target in targets {
            if let Some(path) = target.path() {
                self.sandbox.output(path);
            }
        }
        self
    }

    /// Adds the caches of layer scans. The folder of this user is made now, because a folder that does not exist cannot be
    /// allowed.
    pub(super) fn cache(&mut self, cache: &ScanCache, environment: &Environment) -> &mut Self {
        if self.is_unwanted {
            return self;
        }
        let (local, shared) = cache.places();
        if let Some(local) = local {
            // Without the folder the cache reports the error when it is used.
            let _unmade = local.make();
            self.sandbox.keep(local.folder());
        }
        if let Some(shared) = shared {
            self.store(shared, environment);
        }
        self
    }

    /// Adds a store of objects.
    pub(super) fn store(&mut self, store: &ObjectFolder, environment: &Environment) -> &mut Self {
        match store.folder() {
            _ if self.is_unwanted => {}
            Some(folder) => {
                let _unmade = std::fs::create_dir_all(&folder);
                self.sandbox.keep(folder);
            }
            None => {
                self.sandbox.network(environment);
                self.files(store.credentials());
            }
        }
        self
    }

    /// Gives up everything else, and returns whether that succeeded.
    pub(super) fn enter(&mut self, environment: &Environment) -> SandboxState {
        if self.is_unwanted {
            return SandboxState::off(format!("{SANDBOX}=off"));
        }
        if !self.images.programs.is_empty() {
            let programs: Vec<_> = self.images.programs.iter().map(String::as_str).collect();
            let why = format!("the configuration has {} started, which needs other files", programs.join(" and "));
            return SandboxState::off(why);
        }
        self.files(self.images.files.clone());
        self.images.folders.iter().for_each(|folder| {
            self.sandbox.list(folder);
        });
        if self.images.has_network {
            self.sandbox.network(environment);
        }
        self.sandbox.enter()
    }
}

impl ImagesPlan {
    /// What reading the images needs. Returns an error if this plan writes to one of them. `file` is written besides the
    /// outputs.
    pub(super) fn spare_images(&self, file: Option<&Path>) -> Result<ImageNeeds, CliError> {
        let needs = image::needs(&self.requests);
        let outputs = self.outputs.iter().filter_map(|(_, target)| target.path()).chain(file);
        spare_images(needs.files.iter().map(PathBuf::as_path), outputs)?;
        Ok(needs)
    }

    /// Gives up what this plan does not need, after checking that it writes to no image.
    pub(super) fn confine(&mut self, file: Option<&Path>, environment: &Environment) -> Result<(), CliError> {
        let images = self.spare_images(file)?;
        let mut needs = CommandNeeds::new(environment)?;
        needs.reading(images).files(self.rulebook.folders()).files(&self.logs);
        needs.outputs(self.outputs.iter().map(|(_, target)| target));
        needs.outputs(file.map(|file| OutputTarget::File(file.to_owned())).as_ref());
        // All requests of a plan have the same limits and the same cache.
        if let Some(request) = self.requests.first() {
            needs.temporary(&request.limits).cache(&request.cache, environment);
        }
        self.run.sandbox = Some(needs.enter(environment));
        Ok(())
    }
}
