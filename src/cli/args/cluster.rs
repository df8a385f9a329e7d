//! Arguments of `cluster`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use probe::steps;

use super::OutputArgs;
use super::audit::duration;
use super::choice::number;
use super::help::{sections, short_help};
use super::rulebook::RulebookArgs;
use super::verdict::{FailOnArg, IncompleteArg};

const EXIT_SUMMARY: &str = "Exit status: 0 pass, 1 a node differs or a rule failed, 2 error, 3 incomplete";

const EXIT: &str = "\
Exit status:
  0  pass        1  a node differs or did not answer, or a rule failed
  2  usage error, or the nodes could not be reached
  3  incomplete: something could not be determined, or nodes differ and no value has a majority";

const EXAMPLES: &str = "\
Examples, the first two in an allocation of Slurm:
  ncclcheck cluster registry.example#team/train:7
  ncclcheck cluster --launch 'apptainer exec --nv train.sif'
  ncclcheck cluster --nodes a,b,c --launch 'ssh {node} docker run -i train'
  ncclcheck cluster --nodes pod-0,pod-1 --launch 'kubectl exec -i {node} --'";

/// A rate in GB/s, as bytes per second.
fn gigabytes(text: &str) -> Result<u64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (1e-6..1e6).contains(rate));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
    rate.map(|rate| (rate * 1e9) as u64).ok_or_else(|| "write a number of GB/s, such as 24.5".to_owned())
}

/// The steps, for `--steps`.
fn steps() -> String {
    format!("Steps:\n{}", steps::help())
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    mut_args = short_help(&["nodes", "launch", "from", "record", "format"]),
    mut_arg("format", |arg| arg.help("Output format: human, json, html or prometheus (repeatable)")),
    after_help = sections(&[EXAMPLES, EXIT_SUMMARY]),
    after_long_help = sections(&[&steps(), EXIT, EXAMPLES]),
)]
pub(in super::super) struct ClusterArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<ClusterCommand>,
    /// Image for srun's option --container-image [default: none, the node itself]
    #[arg(value_name = "IMAGE", conflicts_with_all = ["launch", "nodes", "from"])]
    pub(in crate::cli) image: Option<String>,
    /// Nodes, comma-separated [default: those of the allocation of Slurm]
    #[arg(long, value_name = "NODE,...", requires = "launch", help_heading = "Nodes")]
    pub(in crate::cli) nodes: Option<String>,
    /// Command that starts the words behind it in the image on a {node}
    ///
    /// With {node} in it, it runs here, once for each node, and reaches the node itself. Without, srun runs it on each node of
    /// the allocation. It has to pass standard input on.
    #[arg(long, value_name = "COMMAND", help_heading = "Nodes")]
    pub(in crate::cli) launch: Option<String>,
    /// Leaf switch of each node, as Slurm writes it: a topology.conf, or slurm to ask scontrol
    ///
    /// With it, the uplink of a leaf can be named.
    #[arg(long, value_name = "FILE", conflicts_with = "from", help_heading = "Between nodes")]
    pub(in crate::cli) topology: Option<PathBuf>,
    /// What a NIC carries in one direction, in GB/s
    ///
    /// With it, a loss that all nodes share is seen, and which of two nodes is slow.
    #[arg(long, value_name = "GB/S", value_parser = gigabytes, help_heading = "Between nodes")]
    pub(in crate::cli) expect: Option<u64>,
    /// Compare what the nodes have, and send nothing between them
    #[arg(long, conflicts_with_all = ["topology", "expect"], help_heading = "Between nodes")]
    pub(in crate::cli) quick: bool,
    /// Python interpreter in the image
    #[arg(long, value_name = "PROGRAM", default_value = "python3", help_heading = "Nodes")]
    pub(in crate::cli) python: String,
    /// Longest time until the last node has ended
    ///
    /// Once more than half of the nodes have ended, the others have three times the time of those, at least 15 seconds.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, help_heading = "Nodes")]
    pub(in crate::cli) budget: Duration,
    /// Judge a record from --record instead of a new run; - is standard input
    ///
    /// Several files are recordings of `probe --record`, one of each node, which is named like its file.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["nodes", "launch", "record"],
          help_heading = "Instead of a run")]
    pub(in crate::cli) from: Vec<PathBuf>,
    /// Run only these steps, comma-separated
    #[arg(long = "steps", value_name = "STEP,...", value_delimiter = ',', help_heading = "Steps")]
    pub(in crate::cli) only: Vec<String>,
    /// Record what came from the nodes in FILE
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Write the nodes on which no job should run to FILE, as `sbatch --exclude` takes them
    ///
    /// They did not come to the end, are slow, or differ from most in what makes a job fail.
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(in crate::cli) exclude: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) fail_on: FailOnArg,
    #[command(flatten)]
    pub(in crate::cli) incomplete: IncompleteArg,
    #[command(flatten)]
    pub(in crate::cli) rulebook: RulebookArgs,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ClusterCommand {
    /// Print a batch script or a Kubernetes Job that tests nodes
    ///
    /// Nothing is submitted or applied.
    Manifest(ManifestArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ManifestArgs {
    /// What starts the test: a batch script, or a Job whose pods sleep
    pub(in crate::cli) scheduler: Scheduler,
    /// Image of the job; with Slurm, one for pyxis [default: none, the node itself]
    #[arg(value_name = "IMAGE", required_if_eq("scheduler", "kubernetes"), value_parser = image_name)]
    pub(in crate::cli) image: Option<String>,
    /// Number of nodes
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = number::<u32>(1))]
    pub(in crate::cli) nodes: u32,
    /// Number of GPUs of each node
    #[arg(long, value_name = "NUMBER", value_parser = number::<u32>(0), default_value_t = 8)]
    pub(in crate::cli) gpus: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Scheduler {
    /// A script for sbatch
    Slurm,
    /// An Indexed Job for kubectl
    Kubernetes,
}

/// The name of an image, without what the shell or YAML would read as syntax.
fn image_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:/@#+-".contains(letter);
    let is_name = text.starts_with(|letter: char| letter.is_ascii_alphanumeric() || "./".contains(letter));
    if is_name && text.chars().all(is_plain) { Ok(text.to_owned()) } else { Err("not the name of an image".to_owned()) }
}
