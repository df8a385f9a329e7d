//! Command-line arguments.

pub(super) mod audit;
pub(super) mod cache;
mod choice;
pub(super) mod cluster;
mod help;
pub(super) mod probe;
pub(super) mod rulebook;
pub(super) mod stdin;
pub(super) mod verdict;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::cli::version::long_version;
use facts::launch::LaunchFile;
use image::PlatformChoice;

use audit::AuditCommand;
use cache::{CacheArg, CacheCommand};
use choice::{Automatic, choice, number};
use cluster::ClusterArgs;
use help::{DIFF_EXIT, EXIT, EXIT_SUMMARY, HOSTS, images, sections, short_help};
use probe::{Preflight, ProbeArgs};
use rulebook::RulebookArgs;
use verdict::{FailOnArg, IncompleteArg};

const GENERATED: &str = "\
Files for the shell:
  completions SHELL  Print the completion script of bash, zsh, fish, elvish or powershell
  man [DIR]          Print the man page, or write the pages of all commands to DIR";

const EXAMPLES: &str = "\
`ncclcheck IMAGE` is short for `ncclcheck check IMAGE`.

Examples:
  ncclcheck check pytorch/pytorch:latest
  ncclcheck probe --quick pytorch/pytorch:latest
  ncclcheck explain 'unhandled system error'";

/// Check if distributed training in a PyTorch-CUDA container image will use NCCL and RDMA, without running the image.
#[derive(Debug, Parser)]
#[command(
    name = "ncclcheck",
    version,
    long_version = long_version(),
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXAMPLES,
    after_long_help = sections(&[GENERATED, EXAMPLES]),
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check images by the rules
    Check(Box<CheckCommand>),
    /// Show the contents of images, without a verdict
    Inspect(Box<InspectArgs>),
    /// Run an image on this host's GPUs and measure NCCL, topology and RDMA
    Probe(Box<ProbeArgs>),
    /// Check an image and probe it, as the step before a training job
    Preflight(Box<Preflight>),
    /// Probe all nodes of a job at once, and name the nodes that differ
    Cluster(Box<ClusterArgs>),
    /// Present stored reports in another form
    #[command(after_help = sections(&[REPORT_EXAMPLES, EXIT_SUMMARY]))]
    Report {
        /// Files that `check --format json` wrote; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Compare two images: contents and findings
    #[command(
        mut_args = short_help(&["host", "env", "platform", "profile", "config", "format", "verbose"]),
        mut_arg("images", |images| {
            images.num_args(2).value_names(["OLD", "NEW"]).action(ArgAction::Set).help(PAIR).long_help(PAIR)
        }),
        mut_arg("format", |format| format.help("Output format: human, json, github or markdown (repeatable)")),
        after_help = sections(&[DIFF_EXAMPLES, "Exit status: 0 not worse, 1 a rule is newly failing, 2 error, 3 incomplete"]),
        after_long_help = sections(&[&images(), HOSTS, DIFF_EXIT, DIFF_EXAMPLES]),
    )]
    Diff(Box<CheckArgs>),
    /// Judge thousands of images with many workers: plan, run, merge, compare
    #[command(subcommand)]
    Audit(Box<AuditCommand>),
    /// Read the logs of a job: what it used, what failed first, and why
    Log(LogArgs),
    /// Explain a rule, a fact, a variable, a topic or an error message
    Explain(ExplainArgs),
    /// Show this machine's driver, GPUs, fabric, RDMA and limits, or record them for `check --host`
    #[command(
        mut_arg("format", |arg| arg.help("Output format: human, json or yaml (repeatable)")),
        after_help = HOST_EXAMPLES,
    )]
    Host {
        #[command(flatten)]
        output: OutputArgs,
        /// Root of the machine's file system, if mounted elsewhere, as in a container
        ///
        /// With a root other than / NVML is not queried, because it only describes the machine of this process.
        #[arg(long, value_name = "DIR", default_value = "/")]
        root: PathBuf,
    },
    /// Examine what this machine offers: engines, registries, GPUs, RDMA, folders
    #[command(after_help = DOCTOR_EXIT)]
    Doctor {
        /// Output format
        #[arg(short = 'f', long, value_name = "FORMAT", default_value = "human")]
        format: ListFormat,
        /// Credentials file, in the format of Docker's config.json
        #[arg(long, value_name = "FILE")]
        authfile: Option<PathBuf>,
        #[command(flatten)]
        look: StyleArgs,
    },
    /// List, show, test and document the rules
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Manage the cache of layer scans
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Remove the containers of a process of ncclcheck when it ends
    #[command(hide = true)]
    Watch {
        /// The owner of the containers, as their label names it
        owner: String,
    },
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page of ncclcheck, or write the pages of all commands to a folder
    #[command(hide = true)]
    Man {
        /// Output folder, such as ~/.local/share/man/man1
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// List the active rules
    List {
        /// Output format
        #[arg(short = 'f', long, value_name = "FORMAT", default_value = "human")]
        format: ListFormat,
        #[command(flatten)]
        rulebook: RulebookArgs,
        #[command(flatten)]
        look: StyleArgs,
    },
    /// List the profiles
    Profiles,
    /// Print the source of a rule
    Show {
        /// Rule ID, such as nccl/missing-library
        rule: String,
        #[command(flatten)]
        rulebook: RulebookArgs,
    },
    /// Test rules against their examples
    #[command(after_help = "Examples:\n  ncclcheck rules test our-rules\n  ncclcheck rules test --mutate our-rules")]
    Test {
        /// Folders of rules, or rule files in them [default: the built-in rules]
        folders: Vec<PathBuf>,
        /// Also mutate each condition and require that an example fails
        #[arg(long)]
        mutate: bool,
    },
    /// Print the JSON schema of a file, or list the facts and functions of conditions
    Schema {
        /// Schema to print
        #[arg(value_name = "WHAT", default_value = "policy")]
        what: SchemaOf,
    },
    /// Write a Markdown page for each rule
    Docs {
        /// Output folder
        folder: PathBuf,
        #[command(flatten)]
        rulebook: RulebookArgs,
    },
}

/// Help of `--format` of the commands that write in-toto statements.
pub(super) const IMAGE_FORMATS: &str = "\
Output format: human, json, table, csv, sarif, junit, github, gitlab, markdown, html, prometheus, in-toto (repeatable)";

const CHECK_EXAMPLES: &str = "\
Examples:
  ncclcheck check pytorch/pytorch:latest
  ncclcheck check --format json=report.json oci:layout
  ncclcheck check --host driver=550.54,gpu=h100x8,rdma=mlx5 torch.tar
  ncclcheck check --fix --dockerfile Dockerfile my/image:1 | patch -p0";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&[
        "host", "env", "platform", "fail-on", "profile", "config", "format", "verbose", "fix",
    ]),
    mut_arg("images", |images| images.required(false).required_unless_present_any(["list", "launch"])),
    mut_arg("format", |format| format.help(IMAGE_FORMATS)),
    after_help = sections(&[CHECK_EXAMPLES, EXIT_SUMMARY]),
    after_long_help = sections(&[&images(), HOSTS, EXIT, CHECK_EXAMPLES]),
)]
pub(super) struct CheckCommand {
    #[command(flatten)]
    pub(super) check: CheckArgs,
    #[command(flatten)]
    pub(super) process: ImageProcessArgs,
    #[command(flatten)]
    pub(super) list: ListArg,
    #[command(flatten)]
    pub(super) incomplete: IncompleteArg,
    /// Judge only by these rules: an ID or AREA/* (repeatable)
    #[arg(long, value_name = "RULE", help_heading = "Policy")]
    pub(super) only: Vec<String>,
    /// Leave out these rules: an ID or AREA/* (repeatable)
    ///
    /// A waiver in a policy file or a Dockerfile accepts a finding with a reason, and shows it.
    #[arg(long, value_name = "RULE", help_heading = "Policy")]
    pub(super) ignore: Vec<String>,
    /// Dockerfile of the image, to annotate its lines with findings
    ///
    /// The formats sarif, github and gitlab attach each finding to a line of this file, which must be inside the
    /// current directory, and others name the line. A comment `# ncclcheck ignore=RULE REASON` in it accepts the findings of a rule, unless --config or
    /// --no-config is given.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) dockerfile: Option<PathBuf>,
    /// Judge a log of a job that ran the image, too (repeatable)
    ///
    /// `ncclcheck log` reads a log alone. Of several jobs in the logs, the last counts.
    #[arg(long, value_name = "LOG", conflicts_with_all = ["fix", "baseline"], help_heading = "Image")]
    pub(super) log: Vec<PathBuf>,
    /// Print a diff of the Dockerfile or launch files that settles findings
    ///
    /// The diff replaces the report. The image or the launch is judged again with it. What that settles, and what only a
    /// build can show, is printed on standard error. No file is written: pipe the diff to `patch -p0` or `git apply -p0`.
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(super) fix: bool,
    /// Fail only on what is worse than in a report or image
    ///
    /// FILE is a report of `check --format json=FILE`. An IMAGE, such as the one in use, is judged first. Findings and unknown
    /// rules that it has are accepted.
    #[arg(long, value_name = "FILE|IMAGE", conflicts_with = "fix", help_heading = "Policy")]
    pub(super) baseline: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) common: ImageArgs,
    /// Evaluate for a described or recorded host (repeatable)
    ///
    /// HOST is KEY=VALUE,... with the keys listed below. FILE is a YAML list of maps with the same keys, or the record of a
    /// host, which `ncclcheck host --format json=FILE` writes there. The image is judged for each host.
    #[arg(long, value_name = "HOST|FILE", help_heading = "Hosts")]
    pub(super) host: Vec<String>,
    #[command(flatten)]
    pub(super) fail_on: FailOnArg,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  ncclcheck inspect torch.tar
  ncclcheck inspect --explain libnccl.so.2 pytorch/pytorch:latest
  docker save torch:2.9.0 | ncclcheck inspect -";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&[
        "files", "explain", "program", "caller", "env", "platform", "jobs", "format", "verbose",
    ]),
    mut_arg("images", |images| images.required(false).required_unless_present("list")),
    after_help = INSPECT_EXAMPLES,
    after_long_help = sections(&[&images(), INSPECT_EXAMPLES]),
)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    pub(super) common: ImageArgs,
    #[command(flatten)]
    pub(super) process: ImageProcessArgs,
    #[command(flatten)]
    pub(super) list: ListArg,
    /// List the files of the merged file system instead
    ///
    /// Each line has the path, type, mode, size and target of an entry.
    #[arg(long)]
    pub(super) files: bool,
    /// Explain instead how the dynamic loader finds a library (such as libnccl.so.2) or file on `import torch`
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "files")]
    pub(super) explain: Vec<String>,
    /// With --explain: start from this program of the image instead of Python
    #[arg(long, value_name = "FILE", requires = "explain")]
    pub(super) program: Option<String>,
    /// With --explain: search as if this loaded file called dlopen
    #[arg(long, value_name = "FILE", requires = "explain")]
    pub(super) caller: Option<String>,
}

const HOST_EXAMPLES: &str = "\
Nothing is run, and root is not required: values that only root may read are reported as unknown.

Examples:
  ncclcheck host
  ncclcheck host --format json=node1.json
  ncclcheck check --host node1.json torch.tar";

const DOCTOR_EXIT: &str = "\
Nothing is changed. Credentials are named, not printed.

Exit status: 0 nothing is broken, 1 something does not work, 2 error";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// Policy files (ncclcheck.yaml)
    Policy,
    /// Rule files
    Rule,
    /// The report of `--format json`
    Report,
    /// The predicate of `check --format in-toto`
    Verdict,
    /// The document of `audit merge --format json`
    Audit,
    /// The report of `cluster --format json`
    Cluster,
    /// The facts and functions of conditions (not a JSON schema)
    Facts,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ncclcheck explain nccl/missing-library
  ncclcheck explain nccl.loaded.version
  ncclcheck explain NCCL_IB_DISABLE
  ncclcheck explain rdma
  ncclcheck explain why is my all_reduce slow
  ncclcheck explain 'unhandled system error'
  ncclcheck explain - < message.txt";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(super) struct ExplainArgs {
    /// Rule ID, fact name, environment variable, topic, message of a failing job, or question; a log of a job, - for standard input
    /// [default: list the topics]
    #[arg(value_name = "WHAT")]
    pub(super) what: Vec<String>,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
}

const LOG_EXAMPLES: &str = "\
Examples:
  ncclcheck log train.log
  ncclcheck log rank-*.log.gz
  kubectl logs --prefix -l job-name=train | ncclcheck log -
  ncclcheck log --format html=job.html slurm-4711.out";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&["profile", "config", "format", "verbose"]),
    after_help = sections(&[LOG_EXAMPLES, EXIT_SUMMARY]),
)]
pub(super) struct LogArgs {
    /// Logs of one job, of all ranks or of each, plain or compressed with gzip; - is standard input
    ///
    /// A log is what the job prints: NCCL's lines (NCCL_DEBUG=INFO), and those of PyTorch, the launcher and the scheduler, with the
    /// prefixes of torchrun, srun, mpirun, kubectl, Docker Compose, Ray and log collectors.
    #[arg(required = true, value_name = "LOG")]
    pub(super) logs: Vec<PathBuf>,
    /// Compare with the record of a host of the job (repeatable)
    ///
    /// FILE is the record of a host, which `ncclcheck host --format json=FILE` writes there. The host of a record is found by its
    /// name; a single record stands for all hosts.
    #[arg(long, value_name = "FILE", help_heading = "Hosts")]
    pub(super) host: Vec<String>,
    /// Compare with the variables that a launch file of the job sets (repeatable)
    #[arg(long, value_name = "FILE", help_heading = "Hosts")]
    pub(super) launch: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) fail_on: FailOnArg,
    #[command(flatten)]
    pub(super) incomplete: IncompleteArg,
    #[command(flatten)]
    pub(super) rulebook: RulebookArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  ncclcheck check --format json=reports.json --list images.txt
  ncclcheck report reports.json
  ncclcheck report reports.json --format markdown --format csv=images.csv";

const DIFF_EXAMPLES: &str = "\
Examples:
  ncclcheck diff registry.example/train:2024.1 registry.example/train:2024.2";

const PAIR: &str = "The earlier and the later image";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    Human,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct ImageArgs {
    /// Images to read
    ///
    /// The forms of an IMAGE are listed below.
    #[arg(required = true, value_name = "IMAGE", value_parser = stdin::image)]
    pub(super) images: Vec<String>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) reading: ReadingArgs,

    /// Set an environment variable (repeatable)
    ///
    /// The container gets it, as with `docker run -e`. The variable overrides the image's. A root file system has no variables of its own.
    #[arg(short, long, value_name = "NAME=VALUE", help_heading = "Image")]
    pub(super) env: Vec<String>,
    /// Start the container as a launch file of the job does (repeatable)
    ///
    /// FILE sets variables, and what the container gets: its command, GPUs, devices, memory and network. Supported are shell and
    /// Slurm scripts with docker run, srun or Apptainer, Compose files, Kubernetes manifests and other YAML, and files of
    /// NAME=VALUE lines; a folder stands for the files in it, and - for standard input. Nothing in a file is executed. --env takes
    /// precedence. Without an IMAGE, `check` judges those that the file names, or the launch alone.
    #[arg(long, value_name = "FILE|FOLDER", help_heading = "Image")]
    pub(super) launch: Vec<PathBuf>,
    /// The run line of a preflight, which counts as the last launch file.
    #[arg(skip)]
    pub(super) like: Option<LaunchFile>,
    #[command(flatten)]
    pub(super) caching: CacheArg,
}

/// Images that a file lists.
#[derive(Debug, Default, Args)]
pub(super) struct ListArg {
    /// Read the images of a list, one on each line; - is standard input (repeatable)
    ///
    /// Empty lines and lines that begin with # are skipped.
    #[arg(long, value_name = "FILE", help_heading = "Image")]
    pub(super) list: Vec<PathBuf>,
}

/// How images are read, and how their containers start, where these are not the defaults.
#[derive(Debug, Default, Args)]
pub(super) struct ImageProcessArgs {
    #[command(flatten)]
    pub(super) jobs: JobsArg,
    /// Command of the job, in place of the image's entrypoint and command
    ///
    /// It is read as `sh -c` would read it, with the image's variables, or as words without a shell if it is a JSON array:
    /// `["python3", "train.py"]`. What the entrypoint would do before is left out.
    #[arg(long, value_name = "COMMAND", help_heading = "Image")]
    pub(super) command: Option<String>,
    /// Python that runs, in place of the one that the command calls: a path, or a name in PATH
    #[arg(long, value_name = "PROGRAM", help_heading = "Image")]
    pub(super) python: Option<String>,
    /// User that the container runs as, in place of the image's
    #[arg(long, value_name = "NAME|UID[:GID]", help_heading = "Image")]
    pub(super) user: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct JobsArg {
    /// Number of layers to read in parallel, and of images [default: the number of CPUs]
    ///
    /// Of several images, up to 8 are read at once.
    #[arg(short, long, value_name = "N", value_parser = number::<NonZeroUsize>(1), help_heading = "Image")]
    pub(super) jobs: Option<NonZeroUsize>,
}

/// Selection of an image behind a reference, and how to reach it.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Platform, os/arch[/variant] or all [default: this machine's]
    #[arg(long, value_name = "PLATFORM", value_parser = platform, help_heading = "Image")]
    pub(super) platform: Option<PlatformChoice>,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

/// Parses `--platform`.
fn platform(text: &str) -> Result<PlatformChoice, String> {
    // Engines take these names of other systems, in any case, for those of the image specification.
    let known = |part: &str| match &*part.to_ascii_lowercase() {
        "x86_64" | "x86-64" => "amd64".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    match text.split('/').map(known).collect::<Vec<_>>().join("/") {
        text if text == "all" => Ok(PlatformChoice::All),
        text => text.parse().map(PlatformChoice::One),
    }
}

/// How to reach images, and what reading them may take.
#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    /// Change a resource limit; an unknown NAME lists them (repeatable)
    #[arg(long, value_name = "NAME=N", help_heading = "Image")]
    pub(super) limit: Vec<String>,

    /// Folder with the registry's CA certificates (*.crt) and client certificates (*.cert, *.key)
    #[arg(long, value_name = "DIR", help_heading = "Registry")]
    pub(super) cert_dir: Option<PathBuf>,
    /// Credentials file, in the format of Docker's config.json
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub(super) authfile: Option<PathBuf>,
    /// Verify TLS certificates; false also allows plain HTTP
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set, help_heading = "Registry")]
    pub(super) tls_verify: bool,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Output format: human or json; for verdicts also table, csv, sarif, junit, github, gitlab, markdown, html, prometheus
    /// (repeatable)
    ///
    /// FORMAT=FILE writes to FILE. Each of several formats needs its own file; one can go to standard output.
    /// `check` and `preflight` also have in-toto: statements for others to sign.
    #[arg(short = 'f', long, value_name = "FORMAT[=FILE]", help_heading = "Output")]
    pub(super) format: Vec<String>,
    #[command(flatten)]
    pub(super) look: StyleArgs,
    /// Print only the report and errors
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct StyleArgs {
    /// When to use colours; auto follows the terminal, NO_COLOR and CLICOLOR_FORCE
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output",
          value_parser = choice([("auto", None), ("always", Some(true)), ("never", Some(false))]))]
    pub(super) color: Automatic<bool>,
    /// Show all rules and facts, and the source of each fact
    ///
    /// By default, passed and not-applicable rules and absent facts are only counted.
    #[arg(short, long, overrides_with = "verbose", help_heading = "Output")]
    pub(super) verbose: bool,
}
