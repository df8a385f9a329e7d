//! What can be typed.

pub(super) mod cache;
pub(super) mod probe;
pub(super) mod rulebook;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::image::reference;
use crate::model::Platform;

use cache::{CacheCommand, CachingArgs};
use probe::{Preflight, ProbeArgs};
use rulebook::RulebookArgs;

/// Tells from the bytes of a PyTorch-CUDA container image, without running it, whether distributed training in it will use
/// NCCL and RDMA.
#[derive(Debug, Parser)]
#[command(name = "ncclcheck", version, arg_required_else_help = true, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Judge images by the rules
    Check(CheckArgs),
    /// Show what is in images, with no judgement
    Inspect(InspectArgs),
    /// Run an image on this host's GPUs, and tell what NCCL, the topology and RDMA really do
    Probe(Box<ProbeArgs>),
    /// Check an image and probe it: the step before a training job
    Preflight(Box<Preflight>),
    /// Tell two images apart: what is in them, and which rules fail for one of them
    Diff(Box<DiffArgs>),
    /// Accept what is wrong today, and fail on what comes new
    #[command(subcommand)]
    Baseline(Box<BaselineCommand>),
    /// Tell all about a rule or a fact
    Explain(ExplainArgs),
    /// Show what this machine says of itself: driver, GPUs, fabric, RDMA, limits; `check --host-facts` judges by it
    Host(HostArgs),
    /// The rules that images are judged by
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Scans of layers that are kept, so that no layer is read twice
    #[command(subcommand)]
    Cache(CacheCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// List the rules that count
    List(ListArgs),
    /// List the profiles
    Profiles,
    /// Show a rule's file
    Show(ShowArgs),
    /// Try rules by their examples
    Test(TestArgs),
    /// Print the JSON schema of a file, for editors, or list the facts that conditions can ask for
    Schema(SchemaArgs),
    /// Write a page in Markdown for each rule
    Docs(DocsArgs),
}

/// The forms of an image reference.
fn images() -> String {
    let line = |(form, description): (String, &str)| format!("\n  {form:<29}{description}");
    let lines: String = reference::forms().into_iter().map(line).collect();
    format!("An IMAGE is one of:{lines}")
}

const EXIT: &str = "\
Exit status:
  0  pass        1  a rule failed        2  wrong usage, or our own failure
  3  incomplete: no rule failed, but one could not be answered";

const HOSTS: &str = "\
A HOST is driver=VERSION,gpu=MODEL[xCOUNT] (h100x8, or by architecture sm_90x8), and what else is known of it:
  cuda=VERSION  fabric=nvswitch|pcie  rdma=mlx5|efa|none  kernel=VERSION  name=TEXT";

#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{HOSTS}\n\n{EXIT}\n\nExamples:\n  ncclcheck check pytorch/pytorch:latest\n  ncclcheck check --format json=report.json oci:layout\n  ncclcheck check --host driver=550.54,gpu=h100x8,rdma=mlx5 --host driver=580.95,gpu=b200x8 torch.tar", images()))]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) common: ImageArgs,
    /// Judge for a host that is not here: KEY=VALUE,... as below, or a YAML file with a list of such maps; may be given
    /// several times
    #[arg(long, value_name = "HOST|FILE")]
    pub(super) host: Vec<String>,
    /// Judge for the host that this record is of, which `ncclcheck host --format json -o FILE` wrote there; may be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub(super) host_facts: Vec<PathBuf>,
    /// What the image was built from: sarif, github, gitlab show findings beside its lines
    #[arg(long, value_name = "FILE")]
    pub(super) dockerfile: Option<PathBuf>,
    /// Findings from this severity on fail the check [default: error, or as the policy says]
    #[arg(long, value_name = "SEVERITY")]
    pub(super) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\nExamples:\n  ncclcheck inspect torch.tar\n  docker save torch:2.9.0 | ncclcheck inspect -", images()))]
pub(super) struct InspectArgs {
    #[command(flatten)]
    pub(super) common: ImageArgs,
    /// List the merged file system instead: path, kind, mode, size and target of every entry
    #[arg(long)]
    pub(super) files: bool,
    /// Show instead how the dynamic loader comes to this library (libnccl.so.2) or file when torch is imported
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "files")]
    pub(super) explain: Vec<String>,
    /// With --explain: in the process of this program of the image, which need not be Python
    #[arg(long, value_name = "FILE", requires = "explain")]
    pub(super) program: Option<String>,
    /// With --explain: as if this file, which the process has mapped, called dlopen
    #[arg(long, value_name = "FILE", requires = "explain")]
    pub(super) from: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is run, and root is not needed; what only root may read is told as unknown.\n\nExamples:\n  ncclcheck host\n  ncclcheck host --format json -o node1.json\n  ncclcheck check --host-facts node1.json torch.tar"
)]
pub(super) struct HostArgs {
    /// Form of the record
    #[arg(long, value_name = "FORM", default_value = "human")]
    pub(super) format: RecordForm,
    /// Write it to this file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Where the machine's root is mounted, as in a container; NVML is not asked then, which speaks for this process's machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(super) root: PathBuf,
    #[command(flatten)]
    pub(super) look: StyleArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordForm {
    Human,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Form of the list
    #[arg(long, value_name = "FORM", default_value = "human")]
    pub(super) format: ListFormat,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
    #[command(flatten)]
    pub(super) look: StyleArgs,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Of what
    #[arg(value_name = "WHAT", default_value = "policy")]
    pub(super) what: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// ncclcheck.yaml
    Policy,
    /// A rule's file
    Rule,
    /// What `--format json` writes
    Report,
    /// No schema: names and types of facts, and functions of conditions
    Facts,
}

#[derive(Debug, Args)]
pub(super) struct DocsArgs {
    /// Folder for the pages
    pub(super) folder: PathBuf,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A rule (nccl/missing-library) or a fact (nccl.loaded.version)
    pub(super) name: String,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\nExit status:\n  0  nothing is worse      1  a rule fails that did not      2  wrong usage, or our own failure\n  3  a rule cannot be answered that could\n\nExamples:\n  ncclcheck diff registry.example/train:2024.1 registry.example/train:2024.2", images()))]
pub(super) struct DiffArgs {
    #[command(flatten)]
    pub(super) check: CheckArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum BaselineCommand {
    /// Write down what is wrong now
    Write(BaselineWrite),
    /// Judge images; what was written down does not fail them
    Check(BaselineCheck),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ncclcheck baseline write known.json my/image:1\n  ncclcheck baseline check known.json my/image:2"
)]
pub(super) struct BaselineWrite {
    /// File to write
    #[arg(value_name = "FILE")]
    pub(super) baseline: PathBuf,
    #[command(flatten)]
    pub(super) check: CheckArgs,
}

#[derive(Debug, Args)]
pub(super) struct BaselineCheck {
    /// File that `baseline write` wrote
    #[arg(value_name = "FILE")]
    pub(super) baseline: PathBuf,
    #[command(flatten)]
    pub(super) check: CheckArgs,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Id, such as nccl/missing-library
    pub(super) rule: String,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ncclcheck rules test our-rules\n  ncclcheck rules test --mutate our-rules")]
pub(super) struct TestArgs {
    /// Folders of rules, or files in such; the rules that ship if none is given
    pub(super) folders: Vec<PathBuf>,
    /// Also change each condition in every small way, and see that an example notices it
    #[arg(long)]
    pub(super) mutate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    Human,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
pub(super) struct ImageArgs {
    /// Images, as listed below
    #[arg(required = true, value_name = "IMAGE")]
    pub(super) images: Vec<String>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) reading: ReadingArgs,

    /// Start it with this variable, as `docker run -e` would: over the image's own, or all that a root file system has
    #[arg(short, long, value_name = "NAME=VALUE", help_heading = "Image")]
    pub(super) env: Vec<String>,
    /// Also the variables that this file sets: a script (bash, Slurm), a Compose file, a Kubernetes manifest or NAME=VALUE
    /// lines; nothing in it is executed
    #[arg(long, value_name = "FILE", help_heading = "Image")]
    pub(super) launch: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) caching: CachingArgs,
}

/// Which image of a reference is read, and how.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Which image of several platforms: os/arch[/variant]; this machine's if not given
    #[arg(long, value_name = "PLATFORM", conflicts_with = "all_platforms", help_heading = "Image")]
    pub(super) platform: Option<Platform>,
    /// Every platform's image
    #[arg(long, help_heading = "Image")]
    pub(super) all_platforms: bool,
    /// Layers read at once [default: the number of processors]
    #[arg(short, long, value_name = "N", help_heading = "Image")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Read every layer to its last byte and verify its digest, also where a table of contents (eStargz, zstd:chunked, SOCI) lets
    /// one read and verify the parts that matter
    #[arg(long, help_heading = "Image")]
    pub(super) whole: bool,
    /// Of an image in an engine on this machine, read layers from the engine's own folders (overlay2; as root), and of one in a
    /// registry, read layers in part by a SOCI index of version 1: much faster, and nothing of them can be verified
    #[arg(long, help_heading = "Image")]
    pub(super) unverified: bool,
    /// Move one of the bounds on what an image may make us do; a name that is none lists them
    #[arg(long, value_name = "NAME=N", help_heading = "Image")]
    pub(super) limit: Vec<String>,
    /// Folder for temporary files, for libtorch_cpu.so as long as it is read [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Image")]
    pub(super) tmp_dir: Option<PathBuf>,

    /// Folder with the registry's CA certificates (*.crt) and client certificates (*.cert, *.key)
    #[arg(long, value_name = "DIR", help_heading = "Registry")]
    pub(super) cert_dir: Option<PathBuf>,
    /// Credentials, in the format of Docker's config.json
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub(super) authfile: Option<PathBuf>,
    /// false: do not check certificates, and try plain HTTP too
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set, help_heading = "Registry")]
    pub(super) tls_verify: bool,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// human, json or, of judgements, sarif, junit, github, gitlab, markdown; FORM=FILE writes there; may be given several
    /// times
    #[arg(long, value_name = "FORM[=FILE]", help_heading = "Output")]
    pub(super) format: Vec<String>,
    /// Write the report to this file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) look: StyleArgs,
    /// Only the report and errors
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// No progress on standard error
    #[arg(long, help_heading = "Output")]
    pub(super) no_progress: bool,
}

#[derive(Debug, Args)]
pub(super) struct StyleArgs {
    /// Colours: auto follows the terminal, NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(super) color: Color,
    /// Also what passed, what does not apply, and where everything was read
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,
}
