//! What can be typed behind `probe` and `preflight`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::probe::arrangement::{GpuSelection, Ulimit, bytes};
use crate::probe::{DEFAULT_PIDS, steps};

use super::rulebook::RulebookArgs;
use super::{CheckArgs, OutputArgs};

const EXIT: &str = "\
Exit status:
  0  pass        1  a rule failed        2  wrong usage, or nothing could be probed
  3  incomplete: no rule failed, but one could not be answered";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["image", "in_place", "from", "print_payload", "clean"]))]
#[command(after_help = format!("Steps:\n{}\n\n{EXIT}\n\nExamples:\n  ncclcheck probe --quick pytorch/pytorch:latest\n  ncclcheck probe --dry-run --gpus 2 --ipc host my/image\n  ncclcheck probe --what-if NCCL_ALGO=Ring --what-if NCCL_P2P_DISABLE=1 my/image\n  srun --container-image=my/image ncclcheck probe --in-place --record probe.jsonl", steps::help()))]
pub(in super::super) struct ProbeArgs {
    /// Image, by name or ID as the engine knows it
    #[arg(value_name = "IMAGE")]
    pub(in crate::cli) image: Option<String>,
    /// Run the program here instead: on this host or in the container that this is
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) in_place: bool,
    /// Judge what was recorded with --record; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "Instead of an image")]
    pub(in crate::cli) from: Option<PathBuf>,
    /// Print the program that would run in the container
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) print_payload: bool,
    /// Remove containers of ours that a killed ncclcheck left
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) clean: bool,
    #[command(flatten)]
    pub(in crate::cli) launch: LaunchArgs,
    /// Variable of the container
    #[arg(short, long, value_name = "NAME=VALUE", help_heading = "Container")]
    pub(in crate::cli) env: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) steps: Steps,
    #[command(flatten)]
    pub(in crate::cli) judging: Judging,
    /// Findings from this severity on fail the probe [default: error, or as the policy says]
    #[arg(long, value_name = "SEVERITY")]
    pub(in crate::cli) fail_on: Option<super::FailOn>,
    #[command(flatten)]
    pub(in crate::cli) rulebook: RulebookArgs,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(in super::super) struct Preflight {
    #[command(flatten)]
    pub(in crate::cli) check: CheckArgs,
    #[command(flatten)]
    pub(in crate::cli) launch: LaunchArgs,
    #[command(flatten)]
    pub(in crate::cli) steps: Steps,
    #[command(flatten)]
    pub(in crate::cli) judging: Judging,
}

/// How the container is run.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct LaunchArgs {
    /// GPUs: all, a number, or device=ID,...
    #[arg(long, value_name = "GPUS", default_value = "all", help_heading = "Container")]
    pub(in crate::cli) gpus: GpuSelection,
    /// How the engine is asked for them: as docker run --gpus (request), by the Container Device Interface (cdi), by this
    /// host's device nodes and driver libraries without help of the engine (devices), or not at all (none)
    #[arg(long, value_name = "MODE", default_value = "auto", help_heading = "Container")]
    pub(in crate::cli) gpu_mode: GpuMode,
    /// Network of the container
    #[arg(long, value_name = "NETWORK", default_value = "host", help_heading = "Container")]
    pub(in crate::cli) network: String,
    /// IPC namespace: private (the engine's default), host, shareable, container:NAME
    #[arg(long, value_name = "MODE", help_heading = "Container")]
    pub(in crate::cli) ipc: Option<String>,
    /// PID namespace: host, container:NAME
    #[arg(long, value_name = "MODE", help_heading = "Container")]
    pub(in crate::cli) pid: Option<String>,
    /// Host name of the container [default: the host's on its network, else the engine's choice]
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(in crate::cli) hostname: Option<String>,
    /// Size of /dev/shm [default: the engine's, 64m]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Container")]
    pub(in crate::cli) shm_size: Option<u64>,
    /// Resource limit, NAME=SOFT[:HARD] [default: memlock=-1]
    #[arg(long, value_name = "LIMIT", help_heading = "Container")]
    pub(in crate::cli) ulimit: Vec<Ulimit>,
    /// Whether the container gets /dev/infiniband: auto if this host has it
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Container")]
    pub(in crate::cli) rdma: RdmaChoice,
    /// Another device of the host
    #[arg(long, value_name = "PATH", help_heading = "Container")]
    pub(in crate::cli) device: Vec<String>,
    /// Mount, as docker run takes it; there is none that was not asked for
    #[arg(long, value_name = "HOST:CONTAINER[:ro]", help_heading = "Container")]
    pub(in crate::cli) volume: Vec<String>,
    /// User in the container [default: the image's]
    #[arg(long, value_name = "USER", help_heading = "Container")]
    pub(in crate::cli) user: Option<String>,
    /// A capability to keep; all are dropped
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(in crate::cli) cap_add: Vec<String>,
    /// Bound on memory; 0 is none [default: three quarters of the engine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Container")]
    pub(in crate::cli) memory: Option<u64>,
    /// Bound on processes and threads; 0 is none
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PIDS, help_heading = "Container")]
    pub(in crate::cli) pids_limit: u32,
    /// The image's Python [default: python3 on its PATH]
    #[arg(long, value_name = "PROGRAM", help_heading = "Container")]
    pub(in crate::cli) python: Option<String>,
    /// When the engine fetches the image
    #[arg(long, value_name = "WHEN", default_value = "missing", help_heading = "Container")]
    pub(in crate::cli) pull: PullChoice,
    /// Print the docker run line that equals the launch, and do nothing
    #[arg(long, help_heading = "Container")]
    pub(in crate::cli) dry_run: bool,
}

/// What runs inside.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct Steps {
    /// Only these steps, parted by commas
    #[arg(long = "steps", value_name = "STEP,...", value_delimiter = ',', help_heading = "Steps")]
    pub(in crate::cli) only: Vec<String>,
    /// Few sizes, none above 256 MiB, and little time for each
    #[arg(long, help_heading = "Steps")]
    pub(in crate::cli) quick: bool,
    /// Sizes of the collectives, parted by commas: 8, 1m, 1g
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = bytes, help_heading = "Steps")]
    pub(in crate::cli) sizes: Vec<u64>,
    /// Also run with GPUs kept from reaching each other, so that the network path is proved on one host
    #[arg(long, help_heading = "Steps")]
    pub(in crate::cli) forced_network: bool,
    /// Also measure under these variables, NAME=VALUE[,NAME=VALUE...]; may be given several times
    #[arg(long, value_name = "VARIABLES", help_heading = "Steps")]
    pub(in crate::cli) what_if: Vec<String>,
    /// Also run one container for each GPU, joined over the host's network: each with its own GPU (own), each with all of
    /// them and CUDA_VISIBLE_DEVICES (all), with the --ipc that was asked for; or all arrangements in turn (matrix)
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "own", require_equals = true,
          help_heading = "Steps")]
    pub(in crate::cli) isolate_gpus: Option<Isolation>,
    /// Let this rank sleep before this operation, to see how a hang is told: RANK:OPERATION
    #[arg(long, value_name = "RANK:OPERATION", hide = true)]
    pub(in crate::cli) sleep_rank: Option<String>,
    /// Seconds without progress after which ranks are taken to hang
    #[arg(long, value_name = "SECONDS", help_heading = "Steps")]
    pub(in crate::cli) stall: Option<u32>,
    /// Write what the program tells to this file, as it comes
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(in crate::cli) record: Option<PathBuf>,
}

/// What counts.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct Judging {
    /// Whose findings set the exit status: image, host, arrangement
    #[arg(long, value_name = "WHOSE,...", value_delimiter = ',', default_values = ["image", "host", "arrangement"])]
    pub(in crate::cli) fail_for: Vec<String>,
    /// What is expected: a YAML map from names of facts to values, {at_least: N} or {at_most: N}
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) expect: Option<PathBuf>,
    /// The recording of a good run, than which this one must not be slower
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) baseline: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum GpuMode {
    Auto,
    Request,
    Cdi,
    Devices,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Isolation {
    Own,
    All,
    Matrix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RdmaChoice {
    Auto,
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum PullChoice {
    Missing,
    Never,
    Always,
}
