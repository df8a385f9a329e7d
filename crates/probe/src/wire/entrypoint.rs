//! The image's entrypoint in a launch, and the process that the engine started. ncclcheck itself writes these objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a launch did with the image's entrypoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrypointLaunch {
    /// Words of the entrypoint.
    pub words: Vec<String>,
    /// Why the program replaced the entrypoint; `None` if the entrypoint was to start it.
    #[serde(default)]
    pub bypassed: Option<String>,
    /// Python that the entrypoint was to start, by path or by name on its PATH.
    #[serde(default)]
    pub python: String,
    /// What the engine gave the entrypoint, if it reports that.
    #[serde(default)]
    pub given: Option<GivenProcess>,
    /// Why the entrypoint did not start the program, with the end of its output.
    #[serde(default)]
    pub failure: Option<String>,
}

/// The first process of a container, as the engine's account of the container describes it. Runtimes add a few variables
/// that engines do not report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenProcess {
    /// Names of its variables, with the values of those that cannot be secrets.
    pub environment: BTreeMap<String, Option<String>>,
    /// Its user, as the configuration names it; empty means root.
    pub user: String,
    /// Its working directory; empty means the root directory.
    pub directory: String,
}

impl EntrypointLaunch {
    /// The entrypoint in one line.
    pub fn command(&self) -> String {
        self.words.join(" ")
    }
}
