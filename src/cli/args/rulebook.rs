//! `--profile`, `--config` and `--no-config`: selection of the rules.

use std::path::PathBuf;

use clap::Args;

use crate::judge::{ImagePatterns, PolicyText, Rulebook, RulebookError};

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
    /// Reads the policy file, and loads the selected rules.
    pub(in crate::cli) fn open(&self) -> Result<Rulebook, CliError> {
        self.read()?.open()
    }

    /// Reads the policy file.
    pub(in crate::cli) fn read(&self) -> Result<RulebookSource, CliError> {
        let file = match &self.config {
            Some(file) => Some(file.clone()),
            None if self.no_config => None,
            None => std::env::current_dir().ok().and_then(|folder| Rulebook::policy_file(&folder)),
        };
        let policy = file.map(|file| PolicyText::read(&file)).transpose();
        let policy = policy.map_err(|error| CliError::Rulebook(error.into()))?;
        Ok(RulebookSource { profile: self.profile.clone(), policy })
    }
}

/// A profile, and a policy file that was read.
#[derive(Debug, Default)]
pub(in crate::cli) struct RulebookSource {
    profile: Option<String>,
    policy: Option<PolicyText>,
}

impl RulebookSource {
    /// Loads the selected rules.
    pub(in crate::cli) fn open(&self) -> Result<Rulebook, CliError> {
        Rulebook::new(self.profile.as_deref(), self.policy.as_ref()).map_err(|error| match error {
            RulebookError::Profile(error) => CliError::Usage(format!("--profile: {error}")),
            error => CliError::Rulebook(error),
        })
    }

    /// Names of images to judge by their tables of contents.
    pub(in crate::cli) fn in_part(&self) -> Result<ImagePatterns, CliError> {
        let patterns = self.policy.as_ref().map(PolicyText::in_part).transpose();
        Ok(patterns.map_err(|error| CliError::Rulebook(error.into()))?.unwrap_or_default())
    }
}
