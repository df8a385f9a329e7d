//! What a machine offers to ncclcheck and to training jobs, what of it does not work, and the line that fixes it.
//!
//! Each area is a module with one function that returns [offers](Offer). Nothing is changed and no image is read.

mod cache;
mod engines;
mod gpus;
mod rdma;
mod registries;
mod system;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::host::Record;
use crate::image::source::AccessOptions;
use crate::model::Environment;

/// Something that a machine may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Offer {
    /// The area, such as `engines`.
    pub area: &'static str,
    /// The thing, such as `Docker` or `/dev/infiniband`.
    pub name: String,
    /// Whether it is there and works.
    pub state: OfferState,
    /// What was seen.
    pub about: String,
    /// What to do, if it does not work.
    pub help: Option<String>,
}

/// Whether something is there and works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OfferState {
    /// It is there, and nothing wrong was seen.
    Works,
    /// It is there and does not work.
    Broken,
    /// It is not there, which may be right for this machine.
    Absent,
    /// It could not be determined.
    Unknown,
}

impl OfferState {
    /// The lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Broken => "broken",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

/// Where ncclcheck keeps files on this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnFolders {
    /// The cache of layer scans; `None` if the environment names no folder for it.
    pub cache: Option<PathBuf>,
    /// The folder for temporary files.
    pub temporary: PathBuf,
}

impl OwnFolders {
    /// Names the folders.
    pub fn new(cache: Option<PathBuf>, temporary: PathBuf) -> Self {
        Self { cache, temporary }
    }
}

/// Examines a machine: its record, and what the options reach from here.
pub fn examine(record: &Record, options: &AccessOptions, folders: &OwnFolders) -> Vec<Offer> {
    let areas = [
        engines::offers(options),
        registries::offers(options),
        gpus::offers(record),
        rdma::offers(record),
        system::offers(record),
        cache::offers(folders),
    ];
    areas.into_iter().flatten().collect()
}

fn is_in_path(program: &str, environment: &Environment) -> bool {
    let folders = environment.get("PATH").unwrap_or_default().split(':');
    folders.into_iter().any(|folder| Path::new(folder).join(program).is_file())
}

impl Offer {
    fn new(area: &'static str, name: impl Into<String>, state: OfferState, about: impl Into<String>) -> Self {
        Self { area, name: name.into(), state, about: about.into(), help: None }
    }

    fn works(area: &'static str, name: impl Into<String>, about: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Works, about)
    }

    fn absent(area: &'static str, name: impl Into<String>, about: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Absent, about)
    }

    fn unknown(area: &'static str, name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(area, name, OfferState::Unknown, why)
    }

    fn broken(area: &'static str, name: impl Into<String>, about: impl Into<String>, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..Self::new(area, name, OfferState::Broken, about) }
    }
}

#[cfg(test)]
mod tests;
