//! Whether a name means something to the libraries of this image.

use std::collections::BTreeSet;

use crate::model::{NcclStrings, Version};

use super::vocabulary::{self, ReaderRelease, VariableRow, VariableUse, nearest, table};

/// Who reads a variable, by the beginning of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Nccl,
    Torch,
    /// A family without a complete list, by its prefix.
    Other(&'static str),
}

impl Family {
    pub(super) fn of(name: &str) -> Option<Self> {
        const OTHERS: &[&str] = &["CUDA_", "NVIDIA_", "UCX_", "FI_", "GLOO_"];
        if name.starts_with("NCCL_") {
            return Some(Self::Nccl);
        }
        if name.starts_with("TORCH_NCCL_") {
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
            Self::Other(_) => "gloo",
        }
    }
}

/// What a name means here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameState {
    /// Its library reads it.
    Known,
    /// It begins like NCCL's, and is a packager's note, a plugin's or PyTorch's.
    Foreign,
    /// PyTorch's old spelling, which it still reads, and the new one.
    Old(String),
    /// A later release reads it, from this one on.
    NotYet(String),
    /// This release was the last to read it.
    Removed(String),
    /// Nearly a name that is read: this one.
    Misspelt(String),
    /// Nothing reads it; what may have been meant.
    Unknown(Option<String>),
    /// Nobody can tell: there is no complete list, or the library is not known.
    Unchecked,
}

impl NameState {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Known | Self::Old(_) => "known",
            Self::Foreign => "foreign",
            Self::NotYet(_) | Self::Removed(_) => "other-version",
            Self::Misspelt(_) => "misspelt",
            Self::Unknown(_) => "unknown",
            Self::Unchecked => "unchecked",
        }
    }
}

/// The libraries that a job of this image would load.
pub(super) struct Readers<'a> {
    /// What the copy of NCCL holds, if it is known.
    pub(super) nccl: Option<&'a NcclStrings>,
    pub(super) nccl_version: Option<Version>,
    pub(super) torch_version: Option<Version>,
}

/// What is known of one name.
pub(super) struct Name {
    pub(super) family: Family,
    pub(super) state: NameState,
    pub(super) about: Option<&'static VariableUse>,
    pub(super) row: Option<&'static VariableRow>,
}

impl Readers<'_> {
    pub(super) fn look_up(&self, name: &str) -> Option<Name> {
        let family = Family::of(name)?;
        Some(match family {
            Family::Nccl if vocabulary::row(&table().torch, name, None).is_some() => self.torch(name, family),
            Family::Nccl => self.nccl(name),
            Family::Torch => self.torch(name, family),
            Family::Other(prefix) => {
                let about = table().others.get(name);
                let near = || nearest(name, prefix, table().others.keys().map(String::as_str));
                let state = match about {
                    Some(_) => NameState::Known,
                    None => near().map_or(NameState::Unchecked, |meant| NameState::Misspelt(meant.to_owned())),
                };
                Name { family, state, about, row: None }
            }
        })
    }

    fn nccl(&self, name: &str) -> Name {
        let found = vocabulary::row(&table().nccl, name, self.nccl_version.as_ref());
        let row = found.as_ref().map(|(row, _)| *row);
        let is_foreign = table().notes.iter().any(|note| note == name)
            || table().plugins.iter().any(|family| name.starts_with(family));
        let state = match self.nccl.filter(|copy| !copy.variables.is_empty()) {
            _ if is_foreign => NameState::Foreign,
            None => NameState::Unchecked,
            Some(copy) if holds(copy, name, row.is_some()) => NameState::Known,
            Some(copy) => match found {
                Some((_, ReaderRelease::Since(first))) => NameState::NotYet(first),
                Some((_, ReaderRelease::Until(last))) => NameState::Removed(last),
                Some((_, ReaderRelease::Now)) => NameState::Unknown(None),
                None => unknown(name, copy),
            },
        };
        Name { family: Family::Nccl, state, about: row.map(|row| &row.about), row }
    }

    fn torch(&self, name: &str, family: Family) -> Name {
        // Rows are by minor releases: of what lies between two of them, nothing is known.
        let version = self.torch_version.as_ref().and_then(|version| {
            let mut parts = version.as_str().split('.');
            Version::parse(&format!("{}.{}", parts.next()?, parts.next()?))
        });
        let found = vocabulary::row(&table().torch, name, version.as_ref());
        let row = found.as_ref().map(|(row, _)| *row);
        let near = || nearest(name, "TORCH_NCCL_", table().torch.iter().map(|row| row.name.as_str()));
        let state = match found {
            None => near().map_or(NameState::Unchecked, |meant| NameState::Misspelt(meant.to_owned())),
            Some((_, ReaderRelease::Since(first))) => NameState::NotYet(first),
            Some((_, ReaderRelease::Until(last))) => NameState::Removed(last),
            Some((row, ReaderRelease::Now)) => {
                let new = row.old_name_of.as_ref().filter(|new| {
                    let release = vocabulary::row(&table().torch, new, version.as_ref()).map(|(_, release)| release);
                    version.is_some() && release == Some(ReaderRelease::Now)
                });
                new.map_or(NameState::Known, |new| NameState::Old(new.clone()))
            }
        };
        Name { family, state, about: row.map(|row| &row.about), row }
    }
}

/// A name that neither this copy nor any release has.
fn unknown(name: &str, copy: &NcclStrings) -> NameState {
    let constants: BTreeSet<&str> = table().constants.iter().map(String::as_str).collect();
    let own = copy.variables.iter().map(String::as_str).filter(|known| !constants.contains(known));
    // What people are known to have meant goes before what merely looks alike.
    let meant = table().mistaken.get(name);
    let near = match meant {
        Some(meant) => nearest(name, "NCCL_", own.filter(|known| known == meant)),
        None => nearest(name, "NCCL_", own),
    };
    near.map_or_else(|| NameState::Unknown(meant.cloned()), |meant| NameState::Misspelt(meant.to_owned()))
}

/// Whether a copy of NCCL has a name among its literals. One that stands behind other bytes without a gap counts where the
/// table has it, too.
fn holds(copy: &NcclStrings, name: &str, is_in_table: bool) -> bool {
    let is_constant = table().constants.iter().any(|constant| constant == name);
    (copy.variables.contains(name) && !is_constant) || (is_in_table && copy.joined.contains(name))
}
