//! Checks that the image's libraries know a variable name.

use std::collections::BTreeSet;

use model::{NcclStrings, Version};

use super::vocabulary::{self, PluginFamily, ReaderRelease, VariableRow, VariableUse, nearest, table};

/// Reader of a variable, from the name's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Nccl,
    Torch,
    /// A family without a complete list of names, by prefix.
    Other(&'static str),
}

/// Prefixes of PyTorch's variables for NCCL and the flight recorder, whose names are all in the table.
const TORCH: &[&str] = &["TORCH_NCCL_", "TORCH_FR_"];

impl Family {
    pub(super) fn of(name: &str) -> Option<Self> {
        const OTHERS: &[&str] = &["CUDA_", "NVIDIA_", "UCX_", "FI_", "GLOO_", "OFI_NCCL_", "SHARP_COLL_"];
        if name.starts_with("NCCL_") {
            return Some(Self::Nccl);
        }
        if TORCH.iter().any(|prefix| name.starts_with(prefix)) || (name.starts_with("TORCH_") && has_torch_row(name)) {
            return Some(Self::Torch);
        }
        OTHERS.iter().find(|prefix| name.starts_with(**prefix)).map(|prefix| Self::Other(prefix))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nccl => "nccl",
            Self::Torch => "torch",
            Self::Other("FI_") => "libfabric",
            Self::Other("CUDA_") => "cuda",
            Self::Other("NVIDIA_") => "nvidia",
            Self::Other("UCX_") => "ucx",
            Self::Other("OFI_NCCL_" | "SHARP_COLL_") => "plugin",
            Self::Other(_) => "gloo",
        }
    }
}

/// State of a name in this image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameState {
    /// The library reads it.
    Known,
    /// It has NCCL's prefix, but is a packager's note or belongs to a plugin or to PyTorch.
    Foreign,
    /// PyTorch's old spelling, which it still reads; holds the new one.
    Old(String),
    /// Only later releases read it; holds the first of them.
    NotYet(String),
    /// No longer read; holds the last release that read it.
    Removed(String),
    /// Only the process group that the job does not select reads it.
    Unselected,
    /// Only a process group reads it of which it is unknown whether the job selects it.
    Undecided,
    /// Close to a known name; holds that name.
    Misspelt(String),
    /// No library reads it; holds the name that was possibly meant.
    Unknown(Option<String>),
    /// Cannot be checked: there is no complete list, or the library is unknown.
    Unchecked,
}

impl NameState {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Known | Self::Old(_) => "known",
            Self::Foreign => "foreign",
            Self::NotYet(_) | Self::Removed(_) => "other-version",
            Self::Unselected => "other-backend",
            Self::Misspelt(_) => "misspelt",
            Self::Unknown(_) => "unknown",
            Self::Undecided | Self::Unchecked => "unchecked",
        }
    }
}

/// The libraries that a job of this image would load.
pub(super) struct Readers<'a> {
    /// Strings of the NCCL copy, if known.
    pub(super) nccl: Option<&'a NcclStrings>,
    pub(super) nccl_version: Option<Version>,
    pub(super) torch_version: Option<Version>,
    /// The process group behind PyTorch's backend `nccl`.
    pub(super) backend: NcclBackend,
}

/// The process group that TORCH_DIST_USE_NCCL2 selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcclBackend {
    /// That of the release, which is nccl2 since 2.15.
    Default,
    /// `ProcessGroupNCCL`.
    Legacy,
    /// The value is not known.
    Unknown,
}

/// Everything known about one name.
pub(super) struct Name {
    pub(super) family: Family,
    pub(super) state: NameState,
    pub(super) about: Option<&'static VariableUse>,
    pub(super) row: Option<&'static VariableRow>,
    /// The plugin whose variable it is.
    pub(super) plugin: Option<&'static PluginFamily>,
}

impl Readers<'_> {
    pub(super) fn look_up(&self, name: &str) -> Option<Name> {
        let family = Family::of(name)?;
        Some(match family {
            Family::Nccl if has_torch_row(name) => self.torch(name, family),
            Family::Nccl => self.nccl(name),
            Family::Torch => self.torch(name, family),
            Family::Other(prefix) => {
                let about = table().others.get(name);
                let near = || nearest(name, prefix, table().others.keys().map(String::as_str));
                let state = match about {
                    Some(_) => NameState::Known,
                    None => near().map_or(NameState::Unchecked, |meant| NameState::Misspelt(meant.to_owned())),
                };
                Name { family, state, about, row: None, plugin: PluginFamily::of(name) }
            }
        })
    }

    fn nccl(&self, name: &str) -> Name {
        let found = vocabulary::row(&table().nccl, name, self.nccl_version.as_ref());
        let row = found.as_ref().map(|(row, _)| *row);
        let plugin = PluginFamily::of(name);
        let state = match self.nccl.filter(|copy| !copy.variables.is_empty()) {
            _ if plugin.is_some() || table().notes.iter().any(|note| note == name) => NameState::Foreign,
            None => NameState::Unchecked,
            Some(copy) if holds(copy, name, row.is_some()) => NameState::Known,
            Some(copy) => match found {
                Some((_, ReaderRelease::Since(first))) => NameState::NotYet(first),
                Some((_, ReaderRelease::Until(last))) => NameState::Removed(last),
                // The table and the library contradict each other.
                Some((_, ReaderRelease::Now)) => NameState::Unchecked,
                None => unknown(name, copy),
            },
        };
        Name { family: Family::Nccl, state, about: row.map(|row| &row.about), row, plugin }
    }

    fn torch(&self, name: &str, family: Family) -> Name {
        // Rows are per minor release; the table has no data on patch releases.
        let version = self.torch_version.as_ref().and_then(|version| {
            let mut parts = version.as_str().split('.');
            Version::parse(&format!("{}.{}", parts.next()?, parts.next()?))
        });
        let found = vocabulary::row(&table().torch, name, version.as_ref());
        let row = found.as_ref().map(|(row, _)| *row);
        let rows = || table().torch.iter().map(|row| row.name.as_str());
        let near =
            || TORCH.iter().find(|prefix| name.starts_with(**prefix)).and_then(|prefix| nearest(name, prefix, rows()));
        let state = match found {
            None => near().map_or(NameState::Unchecked, |meant| NameState::Misspelt(meant.to_owned())),
            Some((_, ReaderRelease::Since(first))) => NameState::NotYet(first),
            Some((_, ReaderRelease::Until(last))) => NameState::Removed(last),
            Some((row, ReaderRelease::Now))
                if self.backend != NcclBackend::Legacy && row.is_ignored(version.as_ref()) =>
            {
                if self.backend == NcclBackend::Unknown { NameState::Undecided } else { NameState::Unselected }
            }
            Some((row, ReaderRelease::Now)) => {
                let new = row.old_name_of.as_ref().filter(|new| {
                    let release = vocabulary::row(&table().torch, new, version.as_ref()).map(|(_, release)| release);
                    version.is_some() && release == Some(ReaderRelease::Now)
                });
                new.map_or(NameState::Known, |new| NameState::Old(new.clone()))
            }
        };
        Name { family, state, about: row.map(|row| &row.about), row, plugin: None }
    }
}

/// Returns true for a variable of PyTorch, whose older ones have NCCL's prefix.
pub(super) fn has_torch_row(name: &str) -> bool {
    vocabulary::row(&table().torch, name, None).is_some()
}

/// State of a name that neither this copy nor any release has.
fn unknown(name: &str, copy: &NcclStrings) -> NameState {
    let constants: BTreeSet<&str> = table().constants.iter().map(String::as_str).collect();
    let own = copy.variables.iter().map(String::as_str).filter(|known| !constants.contains(known));
    // Known mistakes take priority over similar names.
    let meant = table().mistaken.get(name);
    let near = match meant {
        Some(meant) => nearest(name, "NCCL_", own.filter(|known| known == meant)),
        None => nearest(name, "NCCL_", own),
    };
    near.map_or_else(|| NameState::Unknown(meant.cloned()), |meant| NameState::Misspelt(meant.to_owned()))
}

/// Returns true when a copy of NCCL has a name among its string literals. A literal that directly follows other bytes
/// counts only if the table has the name too.
fn holds(copy: &NcclStrings, name: &str, is_in_table: bool) -> bool {
    let is_constant = table().constants.iter().any(|constant| constant == name);
    (copy.variables.contains(name) && !is_constant) || (is_in_table && copy.joined.contains(name))
}
