//! The part of an image configuration that matters here (OCI image-spec, `config.md`).

use std::collections::BTreeMap;

use super::Platform;

/// How a container of this image would be started, and how the image was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// What the image says it is for.
    pub platform: Option<Platform>,
    /// Environment; of a name given twice the last counts, as the runtime has it.
    pub environment: BTreeMap<String, String>,
    /// `Entrypoint`.
    pub entrypoint: Vec<String>,
    /// `Cmd`.
    pub command: Vec<String>,
    /// `User`; empty is root.
    pub user: String,
    /// `WorkingDir`.
    pub working_directory: String,
    /// `Labels`.
    pub labels: BTreeMap<String, String>,
}
