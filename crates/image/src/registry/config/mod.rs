//! The places from which a registry's images are fetched: rewrites, mirrors and blocks of `registries.conf`
//! (containers-registries.conf(5)), and the mirrors of Docker's `daemon.json`.
//!
//! `registries.conf` comes first. `daemon.json` counts only for names to which no `[[registry]]` table applies, because
//! dockerd itself does not read `registries.conf`.

mod docker;
mod file;
mod files;
mod location;
mod short_name;

use std::collections::BTreeMap;
use std::path::Path;

use oci_spec::distribution::Reference as Name;

use self::docker::DockerConfig;
use self::file::RegistriesFile;
pub(super) use self::files::ConfigFiles;
use self::location::{PullPlace, RegistryTable, rewritten};
use self::short_name::ShortNames;
pub(super) use self::short_name::{Candidate, is_short, parsed};
use crate::source::SourceError;

/// The configuration of registries on this machine, merged from all files.
#[derive(Debug, Default)]
pub(super) struct RegistryConfig {
    /// The `[[registry]]` tables by prefix. Of one prefix, the first table of the last file counts.
    tables: BTreeMap<String, RegistryTable>,
    short_names: ShortNames,
    docker: DockerConfig,
}

/// A place that may hold an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PullSource {
    /// The image's name at this place.
    pub(super) name: Name,
    /// True if plain HTTP and unverified certificates are allowed there.
    pub(super) insecure: bool,
    /// The file and line that define the place; `None` for the registry in the image's own name.
    pub(super) origin: Option<String>,
    /// The file and line that forbid the place.
    pub(super) blocked: Option<String>,
}

impl RegistryConfig {
    /// Reads all files. A malformed one is an error: without it, a pull could reach a registry that the file forbids.
    pub(super) fn read(files: &ConfigFiles) -> Result<Self, SourceError> {
        let mut config = Self::default();
        for path in files.registries()? {
            config.add(RegistriesFile::read(&path)?);
        }
        config.short_names.recorded = files.recorded_aliases()?;
        config.docker = DockerConfig::read(&files.daemon)?;
        Ok(config)
    }

    /// Merges a file that is read after the others.
    fn add(&mut self, file: RegistriesFile) {
        // In reverse, so that the first table of a prefix is the one that remains.
        self.tables.extend(file.tables.into_iter().rev().map(|table| (table.prefix.clone(), table)));
        self.short_names.add(file.short_names);
    }

    /// The places of an image, in the order in which they are tried. Never empty.
    pub(super) fn sources(&self, name: &Name) -> Result<Vec<PullSource>, SourceError> {
        let Some(table) = self.table(name) else { return self.docker.sources(name) };
        let is_by_digest = name.digest().is_some();
        let mirrors = table.mirrors.iter().filter(|mirror| mirror.usage.includes(is_by_digest));
        let mut sources = mirrors.map(|mirror| self.source(name, table, mirror)).collect::<Result<Vec<_>, _>>()?;
        let mut primary = self.source(name, table, &table.primary)?;
        if table.blocked {
            primary.blocked = Some(table.place.clone());
        }
        sources.push(primary);
        Ok(sources)
    }

    /// The source at one place of a table. The table of the image's name there decides whether it is blocked, as in Podman:
    /// a blocked registry may have mirrors.
    fn source(&self, name: &Name, table: &RegistryTable, to: &PullPlace) -> Result<PullSource, SourceError> {
        let physical = rewritten(name, &table.prefix, to)?;
        let blocked = self.table(&physical).filter(|table| table.blocked).map(|table| table.place.clone());
        let origin = (physical != *name).then(|| to.place.clone());
        Ok(PullSource { name: physical, insecure: to.insecure, origin, blocked })
    }

    /// The full names that a short name may mean, in order; see [`short_name`].
    pub(super) fn candidates(&self, text: &str) -> Result<Vec<Candidate>, SourceError> {
        self.short_names.candidates(text)
    }

    /// The table with the longest prefix that applies to a name.
    fn table(&self, name: &Name) -> Option<&RegistryTable> {
        let applying = self.tables.values().filter(|table| table.applies_to(name));
        applying.max_by_key(|table| table.prefix.len())
    }
}

/// An error in a configuration file, at a line.
fn mistake(path: &Path, text: &str, at: usize, what: &str) -> SourceError {
    SourceError::invalid(format!("{}: {what}", place(path, text, at)))
}

/// `FILE:LINE` of a byte of a file.
fn place(path: &Path, text: &str, at: usize) -> String {
    let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    format!("{}:{line}", path.display())
}

#[cfg(test)]
mod tests;
