//! Runs the image on this host's GPUs and reports what NCCL, the topology and RDMA actually do there: starts a
//! container of the user's own image and sends it a program, which answers in JSON lines.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

pub mod arrangement;
mod command;
mod container;
mod devices;
pub mod engine;
pub mod expect;
pub mod facts;
mod finish;
mod intake;
pub mod isolation;
mod lines;
mod local;
mod observer;
mod order;
mod owner;
pub mod payload;
pub mod plan;
pub mod recording;
mod session;
pub mod steps;
mod tail;
mod watchdog;
pub mod wire;

pub use intake::Intake;
pub use observer::{Interrupt, Observer};
pub use plan::ProbePlan;
pub use session::{PreparedSession, Session, command_line, in_place};
pub use watchdog::{Watchdog, watch};

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use image::source::SourceError;

/// Label of all containers that ncclcheck launches. Its value identifies the launching process.
pub const LABEL: &str = "io.ncclcheck.owner";

/// An error that ends a probe without a result.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No engine answers.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// This host's GPUs cannot be passed as device nodes.
    #[error("cannot pass GPUs as device nodes: {0}")]
    DeviceNodes(String),
    /// The engine, or the program that it runs, failed.
    #[error("{what}{}", model::help_line(help.as_deref()))]
    Engine {
        /// The failed operation, and the reason.
        what: String,
        /// The next step for the user.
        help: Option<String>,
    },
}

impl ProbeError {
    /// Returns true if the engine refused to set a resource limit.
    pub fn concerns_limits(&self) -> bool {
        matches!(self, Self::Engine { what, .. } if what.contains("setting rlimit"))
    }
}

/// Inodes of this process's namespaces that a container may share (namespaces(7)).
pub fn namespaces() -> BTreeMap<String, u64> {
    let inode = |name: &str| Some((name.to_owned(), fs::metadata(format!("/proc/self/ns/{name}")).ok()?.ino()));
    ["net", "ipc", "pid"].into_iter().filter_map(inode).collect()
}

/// A random name for a container.
pub fn name() -> String {
    format!("ncclcheck-{:08x}", fastrand::u32(..))
}

/// Labels of the containers that this process launches.
pub fn labels() -> Vec<(String, String)> {
    vec![(LABEL.to_owned(), owner::this())]
}
