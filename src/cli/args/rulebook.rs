//! `--profile`, `--config` and `--no-config`: which rules an image is judged by.

use std::path::PathBuf;

use clap::Args;

use crate::judge::{Rulebook, RulebookError};

use crate::cli::CliError;

#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct RulebookArgs {
    /// Which rules, how severe: ci, audit, preflight, single-node, multi-node-rdma ...; `ncclcheck rules profiles` lists them
    #[arg(long, value_name = "NAME", help_heading = "Policy")]
    pub(in crate::cli) profile: Option<String>,
    /// Policy file [default: ncclcheck.yaml in this folder or one above, up to the repository's]
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// No policy file
    #[arg(long, conflicts_with = "config", help_heading = "Policy")]
    pub(in crate::cli) no_config: bool,
}

impl RulebookArgs {
    /// The rules that were asked for.
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
