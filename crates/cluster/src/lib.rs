//! Runs the probe on all nodes of a job at once, in the user's own image, and compares what it reads there. The nodes are
//! reached through a command that the user has: srun, ssh, kubectl. Nothing is installed on them, and nothing listens.
//!
//! [`run`] starts the program and gathers its output into a [`ClusterRun`]; [`compare()`] names the nodes that differ.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod agent;
mod between;
mod channel;
mod compare;
mod failed_test;
mod launch;
mod limits;
mod logs;
mod losses;
mod orders;
mod process;
mod reading;
mod rounds;
mod run;
mod saved;
mod slurm;
mod suspects;
mod table;
mod topology;

pub use between::{BetweenNodes, Network, NodeTest, TogetherRun, rate};
pub use compare::{Agreement, Comparison, Group, NodeRecord, compare};
pub use launch::{Launch, LaunchWay, node_names};
pub use limits::RunLimits;
pub use losses::{Loss, Packets};
pub use process::Stopper;
pub use run::{ClusterRun, Fate, NodeRun, run};
pub use slurm::{host_names, topology_of_slurm};
pub use suspects::{Cause, PortRates, SlowPort, WritesTest, cause};
pub use table::{Row, rows, table};
pub use topology::leaves;

/// An error that ends a run before any node is reached.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A command could not be started.
    #[error("cannot start {command}: {why}")]
    Start {
        /// The command.
        command: String,
        /// The system's reason.
        why: String,
    },
    /// The names of nodes are not usable.
    #[error("{0}")]
    Nodes(String),
    /// A file is not the record of a run.
    #[error("{0}")]
    Record(String),
}
