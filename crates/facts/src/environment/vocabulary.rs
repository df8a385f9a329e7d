//! Known variables: the table `variables.yaml`, and the edit distance between names.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::table;
use model::{Table, Version, distance_within};

/// The table `variables.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VariableTable {
    /// Sources of the groups whose rows name none.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    sources: BTreeMap<String, String>,
    /// Releases that the rows were compared with, by reader.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the script that compares"))]
    compared: BTreeMap<String, Vec<String>>,
    /// NCCL's variables; a name whose format changed has several rows.
    pub(super) nccl: Vec<VariableRow>,
    /// Strings in the library that look like variables but are constants.
    pub(super) constants: Vec<String>,
    /// Names that packagers and build systems set for information.
    pub(super) notes: Vec<String>,
    /// Names that only plugins, their libraries and nccl-tests read.
    pub(super) plugins: Vec<PluginFamily>,
    /// Distances between devices, in the only spelling that NCCL accepts.
    pub(super) levels: Vec<PathLevel>,
    /// Names that no release has read, with the name that was meant.
    pub(super) mistaken: BTreeMap<String, String>,
    /// PyTorch's variables.
    pub(super) torch: Vec<VariableRow>,
    /// Variables of families without a complete list of names.
    pub(super) others: BTreeMap<String, VariableUse>,
}

/// Variables of one plugin.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PluginFamily {
    /// How their names begin, or a whole name.
    prefix: String,
    /// The plugin, as messages call it.
    pub(super) reader: String,
    /// How the names of its files begin.
    pub(super) libraries: Vec<String>,
}

impl PluginFamily {
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        table().plugins.iter().find(|family| name.starts_with(&family.prefix))
    }
}

/// A path level, and the first release that knows it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathLevel {
    pub(super) name: String,
    since: String,
}

impl PathLevel {
    pub(super) fn is_known_to(&self, version: &Version) -> bool {
        Version::parse(&self.since).is_some_and(|since| *version >= since)
    }
}

/// A variable and the releases that read it.
#[derive(Debug, Deserialize)]
pub(super) struct VariableRow {
    pub(super) name: String,
    /// First release that reads it.
    pub(super) since: String,
    /// Last release that reads it, if a later one does not.
    pub(super) until: Option<String>,
    /// The name that replaced it.
    pub(super) old_name_of: Option<String>,
    /// Minor releases of PyTorch whose process group nccl2 does not read it.
    #[serde(default)]
    pub(super) nccl2_ignores: Vec<String>,
    #[serde(flatten)]
    pub(super) about: VariableUse,
}

/// Format and effect of a variable.
#[derive(Debug, Default, Deserialize)]
pub(super) struct VariableUse {
    #[serde(default)]
    pub(super) reads: Reads,
    /// Accepted words.
    #[serde(default)]
    pub(super) of: Vec<String>,
    /// True when the words are case-sensitive.
    #[serde(default)]
    pub(super) exact: bool,
    /// True when the job stops at a value that is not one of them.
    #[serde(default)]
    pub(super) stops: bool,
    /// What an empty value does, where the reader does not take it for an unset one.
    pub(super) empty: Option<EmptyValue>,
    /// Bytes of which the size of a buffer is a multiple.
    pub(super) unit: Option<i64>,
    /// Smallest and largest number.
    pub(super) range: Option<(i64, i64)>,
    /// The default value.
    pub(super) default: Option<String>,
    /// Its effect, in one sentence.
    pub(super) what: Option<String>,
    pub(super) costs: Option<Costs>,
    /// The source: a file of the reader's source code.
    pub(super) source: Option<String>,
}

/// The effect of an empty value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyValue {
    pub(super) what: String,
    /// True when the job stops at it.
    #[serde(default)]
    pub(super) stops: bool,
}

/// Formats of values; the table explains each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reads {
    Number,
    Flag,
    One,
    Threads,
    Buffer,
    Unsigned,
    Processors,
    Thresholds,
    Word,
    Choice,
    Prefix,
    Words,
    Boolean,
    Level,
    Switch,
    Digit,
    Integer,
    Timeout,
    Algorithms,
    Protocols,
    Interfaces,
    Devices,
    Address,
    AddressRange,
    Path,
    NetDevices,
    CtaPolicy,
    #[default]
    Text,
}

impl Reads {
    /// Returns true where an empty value is not the same as an unset one.
    pub(super) const fn sees_empty(self) -> bool {
        matches!(self, Self::Switch | Self::Digit | Self::Integer | Self::Algorithms | Self::Protocols | Self::Address)
    }
}

/// The cost of setting a variable.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Costs {
    /// `set`, `zero`, `one`, `nonzero`, `not-negative`, or the words that have a cost.
    pub(super) when: String,
    #[serde(rename = "where")]
    pub(super) place: CostScope,
    /// The rule that already reports it when it is in the container's initial environment.
    pub(super) rule: Option<String>,
    pub(super) why: String,
}

/// Place where a setting has a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CostScope {
    /// In an image, which serves more than one site and job.
    Image,
    Anywhere,
}

pub(crate) static TABLE: Table<VariableTable> = table!("variables");

/// The table that ships with ncclcheck.
pub(super) fn table() -> &'static VariableTable {
    &TABLE
}

/// Releases that read a name, according to the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReaderRelease {
    /// This release reads it.
    Now,
    /// Later releases read it; holds the first of them.
    Since(String),
    /// Earlier releases read it; holds the last of them.
    Until(String),
}

/// The row of a name for one release, else the last row of that name, and what the row says about the release.
pub(super) fn row<'t>(
    rows: &'t [VariableRow],
    name: &str,
    version: Option<&Version>,
) -> Option<(&'t VariableRow, ReaderRelease)> {
    let mut last = None;
    for row in rows.iter().filter(|row| row.name == name) {
        let release = version.map_or(ReaderRelease::Now, |version| row.release(version));
        if release == ReaderRelease::Now {
            return Some((row, release));
        }
        last = Some((row, release));
    }
    last
}

impl VariableRow {
    /// Returns true where the default process group of a minor release of PyTorch does not read the variable.
    pub(super) fn is_ignored(&self, minor: Option<&Version>) -> bool {
        minor.is_some_and(|minor| self.nccl2_ignores.iter().any(|release| release == minor.as_str()))
    }

    fn release(&self, version: &Version) -> ReaderRelease {
        let before = |bound: &str| Version::parse(bound).is_some_and(|bound| *version < bound);
        // A bound such as `2.14` includes all of its patch releases.
        let after = |bound: &str| Version::parse(&format!("{bound}.99999")).is_some_and(|bound| *version > bound);
        match &self.until {
            Some(until) if after(until) => ReaderRelease::Until(until.clone()),
            _ if before(&self.since) => ReaderRelease::Since(self.since.clone()),
            _ => ReaderRelease::Now,
        }
    }
}

/// The known name closest to a misspelt one: at most one edit away, or two for a long name. An edit inserts, deletes or
/// replaces a letter, or swaps two neighbours.
pub(super) fn nearest<'n>(name: &str, prefix: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let own = name.strip_prefix(prefix)?;
    let allowed = if own.len() >= 10 { 2 } else { 1 };
    names
        .into_iter()
        .filter_map(|known| Some((distance_within(allowed, own, known.strip_prefix(prefix)?)?, known)))
        .filter(|(distance, _)| *distance > 0)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let table = table();
        let groups =
            ["nccl", "constants", "notes", "plugins", "levels", "mistaken", "torch", "others"].map(ToOwned::to_owned);
        assert!(groups.iter().all(|group| table.sources.contains_key(group)), "{:?}", table.sources);
        for (rows, reader) in [(&table.nccl, "nccl"), (&table.torch, "torch")] {
            let order = |row: &VariableRow| (row.name.clone(), Version::parse(&row.since));
            assert!(rows.is_sorted_by(|one, next| order(one) < order(next)), "rows of {reader}");
            let newest = table.compared.get(reader).and_then(|releases| Version::parse(releases.last()?)).unwrap();
            for row in rows {
                assert!(Version::parse(&row.since).is_some_and(|first| first <= newest), "{} after {newest}", row.name);
            }
        }
        for row in table.nccl.iter().chain(&table.torch) {
            for bound in std::iter::once(&row.since).chain(&row.until) {
                assert!(Version::parse(bound).is_some(), "{}: {bound}", row.name);
            }
            let needs_words = matches!(row.about.reads, Reads::Word | Reads::Choice | Reads::Prefix | Reads::Words);
            assert_eq!(needs_words, !row.about.of.is_empty(), "{}", row.name);
        }
        let costs = table.nccl.iter().chain(&table.torch).map(|row| &row.about).chain(table.others.values());
        for rule in costs.filter_map(|about| about.costs.as_ref()?.rule.as_ref()) {
            let file = format!("{}/../../rules/{rule}.yaml", env!("CARGO_MANIFEST_DIR"));
            assert!(std::path::Path::new(&file).is_file(), "there is no rule {rule}");
        }
        for family in &table.plugins {
            let is_of_nccl = table.nccl.iter().any(|row| row.name.starts_with(&family.prefix));
            assert!(!family.libraries.is_empty() && !is_of_nccl, "{family:?}");
            assert_eq!(PluginFamily::of(&family.prefix), Some(family), "another family has these names");
        }
        for name in table.mistaken.keys().chain(&table.constants) {
            assert!(!table.nccl.iter().any(|row| row.name == *name), "{name} is a variable and is none");
        }
    }

    #[test]
    fn near_names() {
        let known =
            ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_NET", "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_MAX_NCHANNELS"];
        for (name, expected) in [
            ("NCCL_IB_HAC", Some("NCCL_IB_HCA")),
            ("NCCL_SOCKET_IF_NAME", Some("NCCL_SOCKET_IFNAME")),
            ("NCCL_SOCKET_IFNAMES", Some("NCCL_SOCKET_IFNAME")),
            ("NCCL_SCOKET_IFNAM", Some("NCCL_SOCKET_IFNAME")),
            ("NCCL_NETS", Some("NCCL_NET")),
            ("NCCL_NCHANNELS", None),
            ("NCCL_PET_DOG", None),
            ("NCCL_NET", None),
        ] {
            assert_eq!(nearest(name, "NCCL_", known), expected, "{name}");
        }
    }

    #[test]
    fn releases() {
        let version = |text| Version::parse(text).unwrap();
        let release = |name, at| row(&table().nccl, name, Some(&version(at))).map(|(_, release)| release);
        assert_eq!(release("NCCL_CONF_FILE", "2.21.5"), Some(ReaderRelease::Since("2.23.4".to_owned())));
        assert_eq!(release("NCCL_CONF_FILE", "2.27.5"), Some(ReaderRelease::Now));
        assert_eq!(release("NCCL_CUDA_PATH", "2.27.5"), Some(ReaderRelease::Until("2.20.5".to_owned())));
        assert_eq!(release("NCCL_NCHANNELS", "2.27.5"), None);
        let (row, release) = row(&table().torch, "TORCH_NCCL_AVOID_RECORD_STREAMS", Some(&version("2.14.3"))).unwrap();
        assert_eq!((release, row.about.reads), (ReaderRelease::Now, Reads::Switch));
    }
}
