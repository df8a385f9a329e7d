//! Finds the place that serves an image: mirrors first, then the registry itself or its rewritten location.

use std::collections::BTreeSet;

use oci_spec::distribution::Reference as Name;

use super::config::{Candidate, ConfigFiles, PullSource, RegistryConfig, is_short, parsed};
use super::retry::Patience;
use super::{Registry, RegistryContacts, open_patiently};
use crate::source::{AccessOptions, Source as _, SourceError};

/// The registries of this machine, as its configuration files describe them.
#[derive(Debug)]
pub(crate) struct Registries {
    config: RegistryConfig,
    patience: Patience,
}

impl Registries {
    /// Reads the configuration files of this machine and user.
    pub(crate) fn read(options: &AccessOptions) -> Result<Self, SourceError> {
        Self::configured(&ConfigFiles::usual(&options.environment), Patience::default())
    }

    pub(super) fn configured(files: &ConfigFiles, patience: Patience) -> Result<Self, SourceError> {
        Ok(Self { config: RegistryConfig::read(files)?, patience })
    }

    /// The full names that a name may mean, in order: one, unless several registries are searched for short names.
    pub(crate) fn candidates(&self, text: &str) -> Result<Vec<Candidate>, SourceError> {
        if is_short(text) {
            return self.config.candidates(text);
        }
        Ok(vec![Candidate { name: parsed(text, None)?, origin: None }])
    }

    /// The hosts that may be asked for an image.
    pub(super) fn hosts(&self, text: &str) -> Result<BTreeSet<String>, SourceError> {
        let mut hosts = BTreeSet::new();
        for candidate in self.candidates(text)? {
            hosts.extend(self.config.sources(&candidate.name)?.iter().map(|place| place.name.registry().to_owned()));
        }
        Ok(hosts)
    }

    /// Opens an image at the first place that has it. Fetches its manifest now, so that an unknown name is an error while
    /// other places can still be tried.
    pub(crate) fn open(
        &self,
        name: &Name,
        options: &AccessOptions,
        contacts: &RegistryContacts,
    ) -> Result<Registry, SourceError> {
        let mut failed = Vec::new();
        for place in self.config.sources(name)? {
            match self.attempt(&place, options, contacts) {
                Ok(registry) => return Ok(registry),
                Err(error) => failed.push((place, error)),
            }
        }
        Err(nowhere(failed))
    }

    fn attempt(
        &self,
        place: &PullSource,
        options: &AccessOptions,
        contacts: &RegistryContacts,
    ) -> Result<Registry, SourceError> {
        if let Some(rule) = &place.blocked {
            return Err(SourceError::denied(format!(
                "{} is not fetched: {rule} blocks {}",
                place.name,
                place.name.registry()
            ))
            .with_hint(format!("name an image of an allowed registry, or remove 'blocked' at {rule}")));
        }
        let options = AccessOptions { tls_verify: options.tls_verify && !place.insecure, ..options.clone() };
        let mut registry = open_patiently(&place.name, &options, contacts, self.patience)?;
        registry.top()?;
        registry.served_by = place.origin.as_ref().map(|origin| format!("docker://{} ({origin})", place.name));
        Ok(registry)
    }
}

/// The error of the last place, with those of the mirrors before it.
fn nowhere(mut failed: Vec<(PullSource, SourceError)>) -> SourceError {
    let Some((place, error)) = failed.pop() else { return SourceError::invalid("the image has no registry") };
    let rewritten = place.origin.map(|origin| format!("\n  {origin} leads to {}", place.name));
    let mirrors = failed.into_iter().map(|(mirror, error)| {
        let origin = mirror.origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
        // The advice is that of the last place.
        let text = error.to_string();
        format!("\n  mirror {}{origin}: {}", mirror.name, text.split("\n  help: ").next().unwrap_or_default())
    });
    let notes: String = rewritten.into_iter().chain(mirrors).collect();
    error.with_notes(&notes)
}
