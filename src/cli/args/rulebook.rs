//! `--profile`, `--config`, `--no-config` and `--rules`: selection of the rules.

use std::path::PathBuf;

use clap::Args;

use image::source::AccessOptions;
use image::{fetch_file, fetch_text};
use judge::{PolicyText, Rulebook, RulebookError, RulebookSource};

use crate::cli::CliError;
use crate::cli::file_kind::refuse_other_kind;
use model::document::FileError;
use model::{Environment, OverLimit, bytes_within, cause, open_named};

use crate::{archive, shipped};

#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct RulebookArgs {
    /// Profile of rules, such as ci or multi-node-rdma
    ///
    /// A profile selects rules and sets their severities.
    /// `ncclcheck rules profiles` lists the profiles.
    #[arg(long, value_name = "NAME", help_heading = "Policy")]
    pub(in crate::cli) profile: Option<String>,
    /// Policy file [default: ncclcheck.yaml] (repeatable)
    ///
    /// The default is searched for in the current folder and its parents, up to the root of the repository. Of several,
    /// a later one takes precedence. oci://HOST/NAME@sha256:DIGEST is a policy in a registry.
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) config: Vec<PathBuf>,
    /// Ignore policy files
    #[arg(long, conflicts_with = "config", help_heading = "Policy")]
    pub(in crate::cli) no_config: bool,
    /// Rules and tables in place of the program's: an archive
    ///
    /// A gzipped tar of the folder `rules`, such as that of a later release, in a file or as oci://HOST/NAME@sha256:DIGEST in a registry.
    /// It is refused if it was made for another version of the program.
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) rules: Option<String>,
}

/// Reads an archive of rules, a file or `oci://HOST/NAME@sha256:DIGEST`, which replaces the rules and tables of the program.
pub(in crate::cli) fn replace_rules(name: &str, options: &AccessOptions) -> Result<(), CliError> {
    let failed = |why: String| FileError { path: name.into(), why };
    let archive = match name.strip_prefix("oci://") {
        Some(reference) => fetch_file(reference, options).map_err(|error| failed(error.to_string()))?,
        None => open_named(name.as_ref())
            .and_then(|file| bytes_within(file, options.limits.text_file))
            .map_err(|error| failed(cause(&error)))?
            .ok_or_else(|| {
                failed(OverLimit::new("file too large", "text_file", options.limits.text_file).to_string())
            })?,
    };
    Ok(archive::replace_rules(name, &archive, &options.limits)?)
}

impl RulebookArgs {
    /// True if policies that the user did not name count: the file of the folder, and comments in the Dockerfile.
    pub(in crate::cli) const fn takes_found(&self) -> bool {
        self.config.is_empty() && !self.no_config
    }

    /// Reads the policies, and loads the selected rules.
    pub(in crate::cli) fn open(&self, environment: &Environment) -> Result<Rulebook, CliError> {
        let options = AccessOptions { environment: environment.clone(), ..AccessOptions::default() };
        Ok(self.read(&options)?.open(shipped())?)
    }

    /// Reads the rules and the policies, those in registries with these options.
    pub(in crate::cli) fn read(&self, options: &AccessOptions) -> Result<RulebookSource, CliError> {
        self.config.iter().try_for_each(|path| refuse_other_kind("--config", path))?;
        self.rules.iter().try_for_each(|name| refuse_other_kind("--rules", name.as_ref()))?;
        self.rules.iter().try_for_each(|name| replace_rules(name, options))?;
        let fetch = |name: &str| fetch_text(name, options).map_err(|error| error.to_string());
        let read = |path: &PathBuf| match PolicyText::fetch(&path.to_string_lossy(), fetch)? {
            Some(text) => Ok(text),
            None => PolicyText::read(path),
        };
        let named = if self.takes_found() {
            let folder = std::env::current_dir().unwrap_or_default();
            PolicyText::find(&folder).map(|found| found.into_iter().collect())
        } else {
            self.config.iter().map(read).collect::<Result<Vec<_>, _>>()
        };
        let mut policies = Vec::new();
        for text in named? {
            policies.extend(text.with_bases(&fetch).map_err(RulebookError::from)?);
        }
        Ok(RulebookSource::new(self.profile.clone(), policies, self.rules.clone()))
    }
}
