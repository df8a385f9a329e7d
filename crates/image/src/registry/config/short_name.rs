//! Short names, such as `debian`: names without a registry (containers-registries.conf(5), "Short-Name Aliasing").
//!
//! An alias decides; otherwise the search registries are tried in turn, if a file lists any. Without both, a short name
//! means Docker Hub, as for Docker.

use std::collections::BTreeMap;

use oci_spec::distribution::Reference as Name;

use crate::source::SourceError;
use model::{Digest, printable};

/// The settings for short names.
#[derive(Debug, Default)]
pub(super) struct ShortNames {
    pub(super) search: Option<SearchRegistries>,
    pub(super) mode: Option<ShortNameMode>,
    pub(super) aliases: BTreeMap<String, Alias>,
    /// The aliases that Podman recorded, which come before the others.
    pub(super) recorded: BTreeMap<String, Alias>,
}

/// The registries in which a short name is searched.
#[derive(Clone, Debug)]
pub(super) struct SearchRegistries {
    pub(super) registries: Vec<String>,
    /// The file and line of the list.
    pub(super) place: String,
}

/// An alias of a short name.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    /// The full name; empty removes the alias of an earlier file.
    pub(super) target: String,
    /// The file and line of the alias.
    pub(super) place: String,
}

/// What to do about several search registries. The difference between the other modes is whether Podman asks its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortNameMode {
    /// Several registries are an error.
    Enforcing,
    /// Several registries are tried in turn.
    Lenient,
}

impl ShortNameMode {
    /// The mode of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "enforcing" => Some(Self::Enforcing),
            "permissive" | "disabled" => Some(Self::Lenient),
            _ => None,
        }
    }
}

/// A full name that a short name may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) name: Name,
    /// The file and line that decide so; `None` for Docker's reading.
    pub(crate) origin: Option<String>,
}

/// Returns true if a name does not begin with a registry's host.
pub(in crate::registry) fn is_short(text: &str) -> bool {
    let host = text.split_once('/').map(|(first, _)| first);
    !host.is_some_and(|host| host.contains(['.', ':']) || host == "localhost" || host.contains(char::is_uppercase))
}

impl ShortNames {
    /// Merges the settings of a file that is read after the others.
    pub(super) fn add(&mut self, later: Self) {
        self.search = later.search.or(self.search.take());
        self.mode = later.mode.or(self.mode);
        self.aliases.extend(later.aliases);
    }

    /// The full names that a short name may mean, in order.
    pub(super) fn candidates(&self, text: &str) -> Result<Vec<Candidate>, SourceError> {
        let (repository, rest) = split(text);
        let alias = self.recorded.get(repository).or_else(|| self.aliases.get(repository));
        if let Some(alias) = alias.filter(|alias| !alias.target.is_empty()) {
            let name = parsed(&format!("{}{rest}", alias.target), Some(&alias.place))?;
            return Ok(vec![Candidate { name, origin: Some(alias.place.clone()) }]);
        }
        match &self.search {
            Some(search) if !search.registries.is_empty() => {
                if self.mode == Some(ShortNameMode::Enforcing) && search.registries.len() > 1 {
                    return Err(ambiguous(text, search));
                }
                let candidate = |registry: &String| {
                    let name = parsed(&format!("{registry}/{text}"), Some(&search.place))?;
                    Ok(Candidate { name, origin: Some(search.place.clone()) })
                };
                search.registries.iter().map(candidate).collect()
            }
            _ => Ok(vec![Candidate { name: parsed(text, None)?, origin: None }]),
        }
    }
}

/// The repository of a name, and its tag or digest with the separator.
fn split(text: &str) -> (&str, &str) {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let end = text.find('@').unwrap_or(text.len());
    let tag = text.get(last..end).and_then(|name| name.find(':')).map(|colon| last + colon);
    text.split_at_checked(tag.unwrap_or(end)).unwrap_or((text, ""))
}

/// The names that engines and registries accept, for those who wrote another one.
const NAME_FORM: &str =
    "write it as for docker pull: [HOST/]NAME[:TAG], in lower case and without spaces; a path begins with ./ or /";

/// What follows an `@`, for those who wrote another text there.
const DIGEST_FORM: &str = "write a whole digest behind @: sha256: and 64 hexadecimal digits; a tag follows a colon";

/// Parses a full name, which the line at `place` gives, or the user.
pub(in crate::registry) fn parsed(text: &str, place: Option<&str>) -> Result<Name, SourceError> {
    text.parse().map_err(|error| {
        let text = printable(text);
        let why = format!("'{text}' is not an image name: {error}");
        match place {
            Some(place) => SourceError::invalid(format!("{place}: {why}")),
            None => SourceError::invalid(why).with_hint(name_help(&text)),
        }
    })
}

/// What to write in the place of a text that is not a name.
fn name_help(text: &str) -> String {
    let (repository, rest) = split(text);
    let lower = repository.to_ascii_lowercase() + rest;
    match text.split_once('@') {
        Some((_, digest)) if digest.parse::<Digest>().is_err() => DIGEST_FORM.to_owned(),
        _ if lower.parse::<Name>().is_ok() => format!("write it in lower case: {lower}"),
        _ => NAME_FORM.to_owned(),
    }
}

fn ambiguous(text: &str, search: &SearchRegistries) -> SourceError {
    let names: Vec<_> = search.registries.iter().map(|registry| format!("docker://{registry}/{text}")).collect();
    SourceError::invalid(format!(
        "'{text}' may be an image of {}: {} requires a full name (short-name-mode = \"enforcing\")",
        search.registries.join(" or "),
        search.place
    ))
    .with_hint(format!("write one of {}", names.join(", ")))
}
