//! A `[[registry]]` table: the names to which it applies, and the places to which it leads.

use oci_spec::distribution::Reference as Name;

use crate::source::SourceError;

/// A `[[registry]]` table.
#[derive(Clone, Debug)]
pub(super) struct RegistryTable {
    /// `HOST[:PORT][/PATH]`, or `*.HOST`.
    pub(super) prefix: String,
    pub(super) primary: PullPlace,
    pub(super) mirrors: Vec<PullPlace>,
    pub(super) blocked: bool,
    /// The table's file and line.
    pub(super) place: String,
}

/// A location that replaces a table's prefix.
#[derive(Clone, Debug)]
pub(super) struct PullPlace {
    /// `HOST[:PORT][/PATH]`; `None` leaves names as they are.
    pub(super) location: Option<String>,
    pub(super) insecure: bool,
    pub(super) usage: MirrorUsage,
    /// The file and line of the location.
    pub(super) place: String,
}

/// The references for which a mirror is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MirrorUsage {
    #[default]
    All,
    DigestOnly,
    TagOnly,
}

impl MirrorUsage {
    pub(super) fn includes(self, is_by_digest: bool) -> bool {
        match self {
            Self::All => true,
            Self::DigestOnly => is_by_digest,
            Self::TagOnly => !is_by_digest,
        }
    }
}

impl RegistryTable {
    /// Returns true if the prefix ends where a component of the name ends.
    pub(super) fn applies_to(&self, name: &Name) -> bool {
        rest(name, &self.prefix).is_some()
    }
}

/// The part of a name behind a prefix, with its separator: empty, or `/PATH`, `:TAG`, `@DIGEST`.
fn rest(name: &Name, prefix: &str) -> Option<String> {
    let host = name.registry();
    let whole = name.to_string();
    if let Some(domain) = prefix.strip_prefix('*') {
        let is_below = host.strip_suffix(domain).is_some_and(|sub| !sub.is_empty());
        return is_below.then(|| whole.get(host.len()..).unwrap_or_default().to_owned());
    }
    let rest = whole.strip_prefix(prefix)?;
    // A colon behind a host begins a port, which is part of the host.
    let is_end = rest.is_empty() || rest.starts_with(['/', '@']) || rest.starts_with(':') && prefix.len() > host.len();
    is_end.then(|| rest.to_owned())
}

/// The name of an image at a place.
pub(super) fn rewritten(name: &Name, prefix: &str, to: &PullPlace) -> Result<Name, SourceError> {
    let (Some(location), Some(rest)) = (&to.location, rest(name, prefix)) else { return Ok(name.clone()) };
    let text = format!("{location}{rest}");
    let wrong = |why: &str| SourceError::invalid(format!("{}: '{text}' is not an image name: {why}", to.place));
    let physical: Name = text.parse().map_err(|error| wrong(&format!("{error}")))?;
    // Without a dot, a port or `localhost`, the parser takes the first component for a namespace of Docker Hub.
    let host = location.split('/').next().unwrap_or_default();
    if physical.registry() != host {
        return Err(wrong(&format!("'{host}' is not a host: it needs a dot or a port")));
    }
    Ok(physical)
}
