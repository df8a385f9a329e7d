//! Arguments of `probe` and `preflight`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use probe::arrangement::EntrypointUse::{self, OfImage, Replaced};
use probe::arrangement::PullPolicy::{self, Always, Missing, Never};
use probe::arrangement::{Cpus, GpuRequest, GpuWay, SecurityOption, Ulimit, bytes};
use probe::steps;

use super::choice::{Automatic, choice, number};
use super::help::{EXIT_SUMMARY, images, sections, short_help};
use super::rulebook::RulebookArgs;
use super::verdict::{FailOnArg, IncompleteArg};
use super::{CheckArgs, IMAGE_FORMATS, ImageProcessArgs, OutputArgs};

const EXIT: &str = "\
Exit status:
  0  pass        1  a rule failed        2  usage error, or the probe could not run
  3  incomplete: no rule failed, but some could not be evaluated";

/// The steps, for `--steps`.
fn steps() -> String {
    format!("Steps:\n{}", steps::help())
}

const PROBE_USAGE: &str = "\
ncclcheck probe [OPTIONS] <IMAGE|--like <LINE>>
       ncclcheck probe [OPTIONS] <--in-place|--from <FILE>...>
       ncclcheck probe <--print-payload|--clean>";

const PROBE_EXAMPLES: &str = "\
Examples:
  ncclcheck probe --quick pytorch/pytorch:latest
  ncclcheck probe --dry-run --gpus 2 --ipc host my/image
  ncclcheck probe --what-if NCCL_ALGO=Ring --what-if NCCL_P2P_DISABLE=1 my/image
  ncclcheck probe --in-place --record probe.jsonl";

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").args(["image", "in_place", "from", "print_payload", "clean"]),
    mut_arg("image", |image| image.required_unless_present_any(["in_place", "from", "print_payload", "clean", "like"])),
    mut_arg("like", |like| like.conflicts_with_all(["from", "print_payload", "clean"])),
    override_usage = PROBE_USAGE,
    mut_args = short_help(&[
        "in-place", "gpus", "ipc", "shm-size", "dry-run", "quick", "what-if", "record", "format",
    ]),
    after_help = sections(&[PROBE_EXAMPLES, EXIT_SUMMARY]),
    after_long_help = sections(&[&steps(), EXIT, PROBE_EXAMPLES]),
)]
pub(in super::super) struct ProbeArgs {
    /// Name or ID of an image of the container engine
    #[arg(value_name = "IMAGE")]
    pub(in crate::cli) image: Option<String>,
    /// Probe this host, or the container that ncclcheck runs in
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) in_place: bool,
    /// Judge a recording from --record instead of a new run; - is standard input (repeatable)
    ///
    /// Each task of a job writes its own recording; several are judged in one run.
    #[arg(long, value_name = "FILE", help_heading = "Instead of an image")]
    pub(in crate::cli) from: Vec<PathBuf>,
    /// Print the program that runs in the container and exit
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) print_payload: bool,
    /// Remove containers left behind by a killed ncclcheck
    #[arg(long, help_heading = "Instead of an image")]
    pub(in crate::cli) clean: bool,
    #[command(flatten)]
    pub(in crate::cli) like: LikeArg,
    #[command(flatten)]
    pub(in crate::cli) container: ContainerArgs,
    #[command(flatten)]
    pub(in crate::cli) steps: Steps,
    #[command(flatten)]
    pub(in crate::cli) more: InvestigationArgs,
    #[command(flatten)]
    pub(in crate::cli) judging: Judging,
    #[command(flatten)]
    pub(in crate::cli) fail_on: FailOnArg,
    #[command(flatten)]
    pub(in crate::cli) incomplete: IncompleteArg,
    #[command(flatten)]
    pub(in crate::cli) rulebook: RulebookArgs,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

const PREFLIGHT_EXAMPLES: &str = "\
Examples:
  ncclcheck preflight my/image
  ncclcheck preflight --quick --gpus 2 --format json=report.json my/image
  srun --container-image=my/image ncclcheck preflight --in-place
  ncclcheck preflight --expect facts.yaml --reference good.jsonl my/image";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&[
        "in-place", "gpus", "ipc", "shm-size", "dry-run", "quick", "expect", "profile", "fail-on", "format",
    ]),
    mut_arg("images", |images| images.required(false).required_unless_present_any(["in_place", "like"])),
    mut_arg("format", |format| format.help(IMAGE_FORMATS)),
    // A preflight judges the host that it runs on.
    mut_arg("host", |host| host.hide(true)),
    after_help = sections(&[PREFLIGHT_EXAMPLES, EXIT_SUMMARY]),
    after_long_help = sections(&[&images(), &steps(), EXIT, PREFLIGHT_EXAMPLES]),
)]
pub(in super::super) struct Preflight {
    #[command(flatten)]
    pub(in crate::cli) check: CheckArgs,
    #[command(flatten)]
    pub(in crate::cli) process: ImageProcessArgs,
    #[command(flatten)]
    pub(in crate::cli) incomplete: IncompleteArg,
    /// Check and probe the container that ncclcheck runs in
    ///
    /// The root file system is read as the image, with the variables of this process.
    #[arg(long, conflicts_with = "images", help_heading = "Container")]
    pub(in crate::cli) in_place: bool,
    #[command(flatten)]
    pub(in crate::cli) like: LikeArg,
    #[command(flatten)]
    pub(in crate::cli) launch: LaunchArgs,
    #[command(flatten)]
    pub(in crate::cli) steps: Steps,
    #[command(flatten)]
    pub(in crate::cli) judging: Judging,
}

/// A run line whose options the container has.
#[derive(Clone, Debug, Default, Args)]
pub(in super::super) struct LikeArg {
    /// Start the container as a `docker run` line does
    ///
    /// LINE is the whole line as one argument, or a script with one. Other options take precedence, and IMAGE if it is given.
    /// Without --network, --ulimit, --device or --gpus in it, the container has what `docker run` gives: not the host's network,
    /// no raised limits, no RDMA devices and no GPUs. Options that the probe cannot give are named on standard error.
    #[arg(long, value_name = "LINE", conflicts_with = "in_place", help_heading = "Container")]
    pub(in crate::cli) like: Option<String>,
}

/// Options of the container.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct ContainerArgs {
    #[command(flatten)]
    pub(in crate::cli) launch: LaunchArgs,
    #[command(flatten)]
    pub(in crate::cli) rare: RareLaunchArgs,
    #[command(flatten)]
    pub(in crate::cli) process: ProcessArgs,
    /// Set an environment variable of the container (repeatable)
    #[arg(short, long, value_name = "NAME=VALUE", help_heading = "Container")]
    pub(in crate::cli) env: Vec<String>,
}

/// The process in the container.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct ProcessArgs {
    /// Python interpreter in the image [default: python3 on its PATH]
    #[arg(long, value_name = "PROGRAM", help_heading = "Container")]
    pub(in crate::cli) python: Option<String>,
    /// User in the container [default: the image's]
    #[arg(long, value_name = "USER", help_heading = "Container")]
    pub(in crate::cli) user: Option<String>,
}

/// Launch options of the container.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct LaunchArgs {
    /// Whether the image's entrypoint starts the probe's program
    ///
    /// image: as it starts a job's command, with the privileges that `docker run` gives by default, since entrypoints
    /// change users and files. none: the program replaces it, without privileges and with a read-only root file system.
    /// auto: image for preflight where the check sees that the entrypoint starts the command that it is given, otherwise
    /// none.
    #[arg(long, value_name = "USE", default_value = "auto", help_heading = "Container",
          value_parser = choice([("auto", None), ("image", Some(OfImage)), ("none", Some(Replaced))]))]
    pub(in crate::cli) entrypoint: Automatic<EntrypointUse>,
    /// GPUs: all, a number, or device=ID,... [default: all]
    ///
    /// The value may be Docker's own, with quotes and with capabilities of the driver: \"device=0,1\",capabilities=utility
    #[arg(long, value_name = "GPUS", help_heading = "Container")]
    pub(in crate::cli) gpus: Option<GpuRequest>,
    /// Method to pass GPUs to the container
    ///
    /// request: as with `docker run --gpus`. cdi: through the Container Device Interface. devices: through this host's
    /// device nodes and driver libraries, without support of the engine. none: no GPUs. auto: one that the engine
    /// supports.
    #[arg(long, value_name = "MODE", default_value = "auto", help_heading = "Container", value_parser = choice([
        ("auto", None),
        ("request", Some(GpuWay::Request)),
        ("cdi", Some(GpuWay::Cdi)),
        ("devices", Some(GpuWay::Devices)),
        ("none", Some(GpuWay::None)),
    ]))]
    pub(in crate::cli) gpu_mode: Automatic<GpuWay>,
    /// Network of the container [default: host]
    #[arg(long, value_name = "NETWORK", help_heading = "Container")]
    pub(in crate::cli) network: Option<String>,
    /// IPC namespace: private, host, shareable or container:NAME [default: the engine's, private]
    #[arg(long, value_name = "MODE", help_heading = "Container")]
    pub(in crate::cli) ipc: Option<String>,
    /// Size of /dev/shm [default: the engine's, 64m]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Container")]
    pub(in crate::cli) shm_size: Option<u64>,
    /// Memory limit; 0 for none [default: three quarters of the engine's memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Container")]
    pub(in crate::cli) memory: Option<u64>,
    /// Limit on processes and threads; 0 for none [default: 32768]
    #[arg(long, value_name = "N", value_parser = number::<u32>(0), help_heading = "Container")]
    pub(in crate::cli) pids_limit: Option<u32>,
    /// Resource limit, NAME=SOFT[:HARD] (repeatable) [default: memlock=-1]
    #[arg(long, value_name = "LIMIT", help_heading = "Container")]
    pub(in crate::cli) ulimit: Option<Vec<Ulimit>>,
    /// Pass /dev/infiniband to the container; auto if this host has it
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Container",
          value_parser = choice([("auto", None), ("yes", Some(true)), ("no", Some(false))]))]
    pub(in crate::cli) rdma: Automatic<bool>,
    /// Bind mount, as for `docker run` (repeatable) [default: none]
    #[arg(long, value_name = "HOST:CONTAINER[:ro]", help_heading = "Container")]
    pub(in crate::cli) volume: Vec<String>,
    /// When the engine pulls the image [default: missing]
    #[arg(long, value_name = "WHEN", help_heading = "Container",
          value_parser = choice([("missing", Missing), ("never", Never), ("always", Always)]))]
    pub(in crate::cli) pull: Option<PullPolicy>,
    /// Print the equivalent `docker run` command and exit
    #[arg(long, help_heading = "Container")]
    pub(in crate::cli) dry_run: bool,
}

/// Launch options that only an investigation needs. A preflight takes them from `--like`.
#[derive(Clone, Debug, Default, Args)]
pub(in super::super) struct RareLaunchArgs {
    /// PID namespace: host or container:NAME [default: a new one]
    #[arg(long, value_name = "MODE", help_heading = "Container")]
    pub(in crate::cli) pid: Option<String>,
    /// Host name of the container [default: the host's with --network host, otherwise the engine's choice]
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(in crate::cli) hostname: Option<String>,
    /// Limit on the time of CPUs; 0 for none [default: none]
    #[arg(long, value_name = "N", help_heading = "Container")]
    pub(in crate::cli) cpus: Option<Cpus>,
    /// CPUs that the container may run on, such as 0-31,64-95 [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Container")]
    pub(in crate::cli) cpuset_cpus: Option<String>,
    /// NUMA nodes whose memory the container may use, such as 0,1 [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Container")]
    pub(in crate::cli) cpuset_mems: Option<String>,
    /// Additional host device, as for `docker run` (repeatable)
    #[arg(long, value_name = "HOST[:CONTAINER[:rwm]]", help_heading = "Container")]
    pub(in crate::cli) device: Vec<String>,
    /// Capability to keep (repeatable) [default: all are dropped, or with --entrypoint image the engine's]
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(in crate::cli) cap_add: Vec<String>,
    /// Security option, such as seccomp=unconfined or seccomp=FILE (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = SecurityOption::read, help_heading = "Container")]
    pub(in crate::cli) security_opt: Vec<SecurityOption>,
    /// File system in memory, as for `docker run` (repeatable)
    #[arg(long, value_name = "PATH[:OPTIONS]", help_heading = "Container")]
    pub(in crate::cli) tmpfs: Vec<String>,
    /// Give the container all capabilities and devices
    #[arg(long, help_heading = "Container")]
    pub(in crate::cli) privileged: bool,
    /// OCI runtime [default: the engine's]
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(in crate::cli) runtime: Option<String>,
}

/// Steps that run in the container.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct Steps {
    /// Run only these steps, comma-separated
    #[arg(long = "steps", value_name = "STEP,...", value_delimiter = ',', help_heading = "Steps")]
    pub(in crate::cli) only: Vec<String>,
    /// Use few message sizes and short measurements
    ///
    /// The largest message has 256 MiB.
    #[arg(long, help_heading = "Steps")]
    pub(in crate::cli) quick: bool,
    /// Record the probe's JSON events in FILE
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(in crate::cli) record: Option<PathBuf>,
}

/// Steps of an investigation.
#[derive(Clone, Debug, Default, Args)]
pub(in super::super) struct InvestigationArgs {
    /// Message sizes of the collectives, comma-separated: 8, 1m, 1g
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = bytes, help_heading = "Steps")]
    pub(in crate::cli) sizes: Vec<u64>,
    /// Also run with P2P, shared memory and NVLS disabled, to test the network path on one host
    #[arg(long, help_heading = "Steps")]
    pub(in crate::cli) forced_network: bool,
    /// Also measure with NAME=VALUE[,...] (repeatable)
    ///
    /// Each --what-if is a run of the collectives with all of its variables.
    #[arg(long, value_name = "VARIABLES", help_heading = "Steps")]
    pub(in crate::cli) what_if: Vec<String>,
    /// Also run one container per GPU, connected over the host's network
    ///
    /// own: each container has its own GPU. all: each has all GPUs, and CUDA_VISIBLE_DEVICES selects one. Both use the
    /// given --ipc. matrix: all combinations in turn.
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "own", require_equals = true,
          help_heading = "Steps")]
    pub(in crate::cli) isolate_gpus: Option<Isolation>,
    /// Make a rank sleep before an operation, to test how a hang is reported: RANK:OPERATION
    #[arg(long, value_name = "RANK:OPERATION", hide = true)]
    pub(in crate::cli) sleep_rank: Option<String>,
    /// Seconds without progress after which a rank counts as hung
    #[arg(long, value_name = "SECONDS", value_parser = number::<u32>(0), help_heading = "Steps")]
    pub(in crate::cli) stall: Option<u32>,
}

/// Options for the judgement.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct Judging {
    /// Owners whose findings set the exit status, comma-separated
    #[arg(long, value_name = "WHOSE,...", value_delimiter = ',', default_values = ["image", "host", "arrangement"],
          help_heading = "Policy")]
    pub(in crate::cli) fail_for: Vec<String>,
    /// Expected facts: a YAML map from fact name to a value, {at_least: N} or {at_most: N}
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) expect: Option<PathBuf>,
    /// Recording of a reference run, a good one; fail if this run is slower
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(in crate::cli) reference: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Isolation {
    Own,
    All,
    Matrix,
}
