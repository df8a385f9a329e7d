//! Image configuration (OCI image-spec, `config.md`), reduced to the fields in use.

use std::collections::BTreeMap;

use super::Platform;

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
}
