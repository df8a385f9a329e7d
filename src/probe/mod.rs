//! Runs the image on this host's GPUs, and tells what NCCL, the topology and RDMA really do there: a container of the user's
//! own image, and in it a program that is sent in and answers in JSON lines.

pub mod arrangement;
mod command;
mod container;
mod devices;
pub mod engine;
pub mod expect;
pub(crate) mod facts;
pub mod isolation;
mod local;
mod nccl_log;
mod observer;
mod owner;
pub mod payload;
pub mod plan;
pub mod recording;
mod session;
pub mod steps;
mod tail;
pub mod wire;

pub use container::{ContainerOptions, DEFAULT_PIDS};
pub use observer::{Interrupt, Observer};
pub use plan::ProbePlan;
pub use session::{PreparedSession, Session, in_place};

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::image::source::SourceError;

/// The label of our containers. Its value tells who launched it.
pub(crate) const LABEL: &str = "io.ncclcheck.owner";

/// Why nothing could be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// No engine answers.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// This host's GPUs cannot be given as device nodes.
    #[error("no GPUs by device nodes: {0}")]
    DeviceNodes(String),
    /// The engine did not do what it was asked.
    #[error("{what}{}", crate::model::help_line(help.as_deref()))]
    Engine {
        /// What was asked, and the answer.
        what: String,
        /// What the user can do.
        help: Option<String>,
    },
}

impl ProbeError {
    /// Whether the engine refused to set a resource limit.
    pub fn concerns_limits(&self) -> bool {
        matches!(self, Self::Engine { what, .. } if what.contains("setting rlimit"))
    }
}

/// Inodes of the namespaces of this process that a container may be given (namespaces(7)).
pub fn namespaces() -> BTreeMap<String, u64> {
    let inode = |name: &str| Some((name.to_owned(), fs::metadata(format!("/proc/self/ns/{name}")).ok()?.ino()));
    ["net", "ipc", "pid"].into_iter().filter_map(inode).collect()
}

/// A name for a container of ours.
pub fn name() -> String {
    format!("ncclcheck-{:08x}", fastrand::u32(..))
}

/// The labels of a container that this process launches.
pub fn labels() -> Vec<(String, String)> {
    vec![(LABEL.to_owned(), owner::this())]
}
