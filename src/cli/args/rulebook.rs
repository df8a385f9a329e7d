//! `--profile`, `--config` and `--no-config`: selection of the rules.

use std::path::PathBuf;

use clap::Args;

use crate::judge::{Rulebook, RulebookError};

use crate::cli::CliError;

#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct RulebookArgs {
    /// Profile of rules, such as ci or multi-node-rdma
    ///
    /// A profile selects rules and sets their severities.
    /// `ncclcheck rules profiles` lists the profiles.
    #[arg(long, value_name = "NAME", help_heading = "Policy")]
    pub(in crate::cli) profile: Option<String>,
    /// Policy file [default: ncclcheck.yaml]
    ///
    /// The default is searched for in the current folder and its parents, up to the root of the repository.
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Ignore policy files
    #[arg(long, conflicts_with = "config", help_heading = "Policy")]
    pub(in crate::cli) no_config: bool,
}

impl RulebookArgs {
    /// Loads the selected rules.
    pub(in crate::cli) fn open(&self) -> Result<Rulebook, CliError> {
        let file = match &self.config {
            Some(file) => Some(file.clone()),
            None if self.no_config => None,
            None => std::env::current_dir().ok().and_then(|folder| Rulebook::policy_file(&folder)),
        };
        Rulebook::new(self.profile.as_deref(), file.as_deref()).map_err(|error| match error {
            RulebookError::Profile(error) => CliError::Usage(format!("--profile: {error}")),
            error => CliError::Rulebook(error),
        })
    }
}
