//! One `registries.conf` file: version 2, and the lists of version 1.

use model::{open_configured, without_content};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::location::{MirrorUsage, PullPlace, RegistryTable};
use super::short_name::{Alias, SearchRegistries, ShortNameMode, ShortNames};
use super::{mistake, place};
use crate::source::{SourceError, read_bounded};

/// Maximum size of a configuration file in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct RegistriesFile {
    pub(super) tables: Vec<RegistryTable>,
    pub(super) short_names: ShortNames,
}

/// The file as written. Unknown keys are ignored, as by the engines: later versions may add some.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawFile {
    unqualified_search_registries: Option<Spanned<Vec<String>>>,
    short_name_mode: Option<Spanned<String>>,
    #[serde(default)]
    aliases: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    registry: Vec<Spanned<RawRegistry>>,
    registries: Option<Spanned<Lists>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawRegistry {
    prefix: Option<String>,
    location: Option<Spanned<String>>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<Spanned<RawMirror>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawMirror {
    location: String,
    #[serde(default)]
    insecure: bool,
    pull_from_mirror: Option<String>,
}

/// Version 1 of the format.
#[derive(Deserialize)]
struct Lists {
    #[serde(default)]
    search: List,
    #[serde(default)]
    insecure: List,
    #[serde(default)]
    block: List,
}

#[derive(Default, Deserialize)]
struct List {
    registries: Option<Spanned<Vec<String>>>,
}

impl List {
    /// The registries of the list, with the offset of the list in the file.
    fn entries(&self) -> impl Iterator<Item = (usize, &str)> {
        let entries =
            self.registries.iter().flat_map(|list| list.get_ref().iter().map(|name| (list.span().start, &**name)));
        entries.filter(|(_, name)| !name.is_empty())
    }
}

/// Reads a file; `None` if it is not readable for this user.
pub(super) fn read_file(path: &Path) -> Result<Option<String>, SourceError> {
    let what = format!("reading {}", path.display());
    let file = match open_configured(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        file => file.map_err(|error| SourceError::io(&what, error))?,
    };
    let bytes = read_bounded(file, LARGEST_FILE, &what)?;
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_error| SourceError::invalid(format!("{} is not UTF-8", path.display())))
}

impl RegistriesFile {
    /// Reads and checks a file.
    pub(super) fn read(path: &Path) -> Result<Self, SourceError> {
        let Some(text) = read_file(path)? else {
            return Err(SourceError::denied(format!("reading {}: permission denied", path.display()))
                .with_hint("make it readable, or name another file in CONTAINERS_REGISTRIES_CONF".to_owned()));
        };
        Self::parse(path, &text)
    }

    /// Parses a file's text.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            mistake(path, text, error.span().map_or(0, |span| span.start), &without_content(error.message()))
        })?;
        let mut file = Self::default();
        for table in &raw.registry {
            file.tables.push(registry_table(table, path, text)?);
        }
        check_conflicts(&file.tables)?;
        if let Some(mode) = &raw.short_name_mode {
            let wrong = || {
                let what = format!("short-name-mode '{}': expected enforcing, permissive or disabled", mode.get_ref());
                mistake(path, text, mode.span().start, &what)
            };
            let named = match mode.get_ref().as_str() {
                "" => None,
                name => Some(ShortNameMode::named(name).ok_or_else(wrong)?),
            };
            file.short_names.mode = named;
        }
        file.short_names.search = raw.unqualified_search_registries.map(|list| SearchRegistries {
            place: place(path, text, list.span().start),
            registries: list.into_inner(),
        });
        for (name, target) in raw.aliases {
            let alias = Alias { place: place(path, text, target.span().start), target: target.into_inner() };
            file.short_names.aliases.insert(name, alias);
        }
        if let Some(lists) = &raw.registries {
            if !file.tables.is_empty() || file.short_names.search.is_some() {
                let what = "the lists of version 1 and the keys of version 2 are in one file, which the engines refuse";
                return Err(mistake(path, text, lists.span().start, what));
            }
            let lists = lists.get_ref();
            file.add_lists(lists, path, text);
        }
        Ok(file)
    }

    /// Converts the lists of version 1.
    fn add_lists(&mut self, lists: &Lists, path: &Path, text: &str) {
        let search: Vec<_> = lists.search.entries().collect();
        if let Some((at, _)) = search.first() {
            let registries = search.iter().map(|(_, name)| (*name).to_owned()).collect();
            self.short_names.search = Some(SearchRegistries { place: place(path, text, *at), registries });
        }
        let mut tables: BTreeMap<&str, RegistryTable> = BTreeMap::new();
        let table = |at: usize, name: &str| {
            let place = place(path, text, at);
            let primary = PullPlace {
                location: Some(name.to_owned()),
                insecure: false,
                usage: MirrorUsage::All,
                place: place.clone(),
            };
            RegistryTable { prefix: name.to_owned(), primary, mirrors: Vec::new(), blocked: false, place }
        };
        for (at, name) in lists.insecure.entries() {
            tables.entry(name).or_insert_with(|| table(at, name)).primary.insecure = true;
        }
        for (at, name) in lists.block.entries() {
            tables.entry(name).or_insert_with(|| table(at, name)).blocked = true;
        }
        self.tables.extend(tables.into_values());
    }
}

/// Checks a table and completes its defaults.
fn registry_table(table: &Spanned<RawRegistry>, path: &Path, text: &str) -> Result<RegistryTable, SourceError> {
    let at = table.span().start;
    let raw = table.get_ref();
    let wrong = |what: &str| mistake(path, text, at, what);
    let location = match &raw.location {
        Some(location) if !location.get_ref().is_empty() => {
            Some(checked(location.get_ref()).map_err(|what| mistake(path, text, location.span().start, &what))?)
        }
        _ => None,
    };
    let prefix = match raw.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => checked(prefix).map_err(|what| wrong(&what))?,
        None => location.clone().ok_or_else(|| wrong("the registry has neither a prefix nor a location"))?,
    };
    if prefix.contains('*')
        && (!prefix.starts_with("*.") || prefix.get(1..).is_some_and(|rest| rest.contains(['*', '/', ':', '@'])))
    {
        return Err(wrong(&format!("the prefix '{prefix}' is invalid: a wildcard has the form *.example.com")));
    }
    if location.is_none() && !prefix.starts_with('*') {
        return Err(wrong(&format!("the registry with the prefix '{prefix}' has no location")));
    }
    let mut mirrors = Vec::new();
    for mirror in &raw.mirror {
        let at = mirror.span().start;
        let raw_mirror = mirror.get_ref();
        let usage = usage(raw_mirror.pull_from_mirror.as_deref(), raw.mirror_by_digest_only)
            .map_err(|what| mistake(path, text, at, &what))?;
        mirrors.push(PullPlace {
            location: Some(checked(&raw_mirror.location).map_err(|what| mistake(path, text, at, &what))?),
            insecure: raw_mirror.insecure,
            usage,
            place: place(path, text, at),
        });
    }
    let here = place(path, text, at);
    let primary = PullPlace { location, insecure: raw.insecure, usage: MirrorUsage::All, place: here.clone() };
    Ok(RegistryTable { prefix, primary, mirrors, blocked: raw.blocked, place: here })
}

/// Refuses tables of one location that contradict each other, as the engines do: `insecure` and `blocked` concern the
/// location, whatever prefix leads there.
fn check_conflicts(tables: &[RegistryTable]) -> Result<(), SourceError> {
    let mut known: BTreeMap<&str, &RegistryTable> = BTreeMap::new();
    for table in tables {
        let location = table.primary.location.as_ref().unwrap_or(&table.prefix);
        let first = *known.entry(location).or_insert(table);
        for (key, differs) in [
            ("insecure", first.primary.insecure != table.primary.insecure),
            ("blocked", first.blocked != table.blocked),
        ] {
            if differs {
                return Err(SourceError::invalid(format!(
                    "{}: '{key}' of the location '{location}' contradicts {}",
                    table.place, first.place
                ))
                .with_hint(format!("set '{key}' to the same value in both tables")));
            }
        }
    }
    Ok(())
}

fn usage(named: Option<&str>, by_digest_only: bool) -> Result<MirrorUsage, String> {
    match named.unwrap_or_default() {
        "" if by_digest_only => Ok(MirrorUsage::DigestOnly),
        _ if by_digest_only => Err("pull-from-mirror contradicts mirror-by-digest-only of the registry".to_owned()),
        "" | "all" => Ok(MirrorUsage::All),
        "digest-only" => Ok(MirrorUsage::DigestOnly),
        "tag-only" => Ok(MirrorUsage::TagOnly),
        other => Err(format!("pull-from-mirror '{other}': expected all, digest-only or tag-only")),
    }
}

/// A prefix or a location without trailing slashes.
fn checked(text: &str) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(format!("'{text}': write HOST[:PORT][/PATH] without a scheme; insecure = true allows plain HTTP"));
    }
    match text.trim_end_matches('/') {
        "" => Err("a location must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}
