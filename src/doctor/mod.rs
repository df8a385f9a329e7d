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

use facts::machine::Record;
use image::source::AccessOptions;
use model::Environment;

pub use report::{Offer, OfferState};

/// Where ncclcheck keeps files on this machine.
#[derive(Clone, Debug)]
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
        engines::offers(record, options),
        registries::offers(options),
        gpus::offers(record, &options.environment),
        rdma::offers(record),
        system::offers(record),
        cache::offers(folders),
    ];
    areas.into_iter().flatten().collect()
}

fn is_in_path(program: &str, environment: &Environment) -> bool {
    program_in_path(program, environment).is_some()
}

fn program_in_path(program: &str, environment: &Environment) -> Option<PathBuf> {
    let folders = environment.get("PATH").unwrap_or_default().split(':');
    folders.map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
