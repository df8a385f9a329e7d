//! Arguments of `ncclcheck audit`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::cache::CacheArg;
use super::choice::{Automatic, number};
use super::help::{images, sections, short_help};
use super::rulebook::RulebookArgs;
use super::verdict::FailOnArg;
use super::{AccessArgs, JobsArg, ListFormat, ReadingArgs};
use crate::audit::Shard;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AuditCommand {
    /// Resolve names of images to digests, and write what is to be judged
    Plan(Box<AuditPlanArgs>),
    /// Work on a plan, beside other workers
    Run(Box<AuditRunArgs>),
    /// Show how far a run is, and what failed
    Status {
        #[command(flatten)]
        store: StoreArgs,
        /// Output format
        #[arg(short = 'f', long, value_name = "FORMAT", default_value = "human")]
        format: ListFormat,
    },
    /// Merge the results of a run: by layer, by rule, by team
    #[command(after_help = MERGE_EXAMPLES)]
    Merge {
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        view: AuditViewArgs,
    },
    /// Compare two runs: newly failing, fixed, new, gone
    #[command(after_help = TREND_EXAMPLES)]
    Trend {
        #[command(flatten)]
        store: StoreArgs,
        /// The earlier run [default: the newest finished one before]
        #[arg(long, value_name = "RUN", help_heading = "Audit")]
        since: Option<String>,
        #[command(flatten)]
        view: AuditViewArgs,
    },
    /// Print what to submit to a scheduler; nothing is submitted
    #[command(subcommand)]
    Manifest(AuditManifest),
}

/// A run in a store.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct StoreArgs {
    /// Store of the audit: a folder that all workers share, or s3://, gs:// or az://BUCKET/PATH
    #[arg(long, value_name = "URL", help_heading = "Audit")]
    pub(in crate::cli) store: String,
    /// Name of the run [default: the newest; for plan: the time]
    #[arg(long, value_name = "NAME", help_heading = "Audit")]
    pub(in crate::cli) run: Option<String>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  ncclcheck audit plan --store /shared/audit --list images.txt
  ncclcheck audit plan --store s3://ci/audit --profile multi-node-rdma oci:mirror";

const RUN_EXAMPLES: &str = "\
Exit status: 0 every image has a result, 2 usage error, 75 not finished: run it again

Examples:
  ncclcheck audit run --store /shared/audit
  ncclcheck audit run --store /shared/audit --shard 3/8 --deadline 55m";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&["store", "list", "repository", "tags", "newest", "pods"]),
    after_help = PLAN_EXAMPLES,
    after_long_help = sections(&[&images(), PLAN_EXAMPLES]),
)]
pub(in crate::cli) struct AuditPlanArgs {
    #[command(flatten)]
    pub(in crate::cli) store: StoreArgs,
    /// Images; a layout without a name means all of its images
    #[arg(value_name = "IMAGE")]
    pub(in crate::cli) images: Vec<String>,
    /// Add the images of a list, one on each line; - is standard input (repeatable)
    #[arg(long, value_name = "FILE", help_heading = "Audit")]
    pub(in crate::cli) list: Vec<PathBuf>,
    /// Add the tags of a repository of a registry, such as registry.example/team/train (repeatable)
    #[arg(long, value_name = "REPOSITORY", help_heading = "Audit")]
    pub(in crate::cli) repository: Vec<String>,
    /// Add the repositories of a registry that lists them: HOST, or HOST/PATTERN (repeatable)
    #[arg(long, value_name = "HOST[/GLOB]", help_heading = "Audit")]
    pub(in crate::cli) registry: Vec<String>,
    /// Take only tags that match, from --repository and --registry (repeatable)
    #[arg(long, value_name = "GLOB", help_heading = "Audit")]
    pub(in crate::cli) tags: Vec<String>,
    /// Take only the N newest images of each repository, by the time of their build
    #[arg(long, value_name = "N", value_parser = number::<usize>(0), help_heading = "Audit")]
    pub(in crate::cli) newest: Option<usize>,
    /// Add the images of running pods: the output of `kubectl get pods -A -o json`; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "Audit")]
    pub(in crate::cli) pods: Option<PathBuf>,
    /// Add the images of this machine's engine
    #[arg(long, help_heading = "Audit")]
    pub(in crate::cli) engine: bool,
    /// Add the images of an earlier run, with the digests that they had then
    ///
    /// With the same images and other rules, the verdicts come from cached scans.
    #[arg(long, value_name = "RUN", help_heading = "Audit")]
    pub(in crate::cli) again: Option<String>,
    /// Judge for a described host, KEY=VALUE,... as `check` takes it (repeatable)
    #[arg(long, value_name = "HOST", help_heading = "Audit")]
    pub(in crate::cli) host: Vec<String>,
    /// End with 0 also if some names cannot be resolved; the plan keeps them
    #[arg(long, help_heading = "Audit")]
    pub(in crate::cli) report_only: bool,
    #[command(flatten)]
    pub(in crate::cli) fail_on: FailOnArg,
    #[command(flatten)]
    pub(in crate::cli) reading: ReadingArgs,
    #[command(flatten)]
    pub(in crate::cli) rulebook: RulebookArgs,
}

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&["store", "run", "shard", "shards", "workers", "deadline", "jobs", "cache"]),
    after_help = RUN_EXAMPLES,
)]
pub(in crate::cli) struct AuditRunArgs {
    #[command(flatten)]
    pub(in crate::cli) store: StoreArgs,
    /// Part to begin with: auto, or K/N with K from 0
    ///
    /// auto reads the variables of a Slurm array, of a Kubernetes Indexed Job (with --shards) and of GitLab's parallel
    /// jobs; without any it means the whole plan. A worker helps with the other parts when its own is done.
    #[arg(long, value_name = "SHARD", default_value = "auto", value_parser = shard, help_heading = "Audit")]
    pub(in crate::cli) shard: Automatic<Shard>,
    /// Number of parts, where the scheduler does not say it
    #[arg(long, value_name = "N", value_parser = number::<usize>(0), help_heading = "Audit")]
    pub(in crate::cli) shards: Option<usize>,
    /// Number of images judged at once by this process
    #[arg(long, value_name = "N", value_parser = number::<NonZeroUsize>(1), default_value = "1", help_heading = "Audit")]
    pub(in crate::cli) workers: NonZeroUsize,
    /// Stop after this time: 90s, 55m or 2h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Audit")]
    pub(in crate::cli) deadline: Option<Duration>,
    /// Time after which the work of a silent worker is taken over
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s", help_heading = "Audit")]
    pub(in crate::cli) lease: Duration,
    #[command(flatten)]
    pub(in crate::cli) access: AccessArgs,
    #[command(flatten)]
    pub(in crate::cli) jobs: JobsArg,
    #[command(flatten)]
    pub(in crate::cli) caching: CacheArg,
}

const MERGE_EXAMPLES: &str = "\
Exit status: 0 pass, 1 an image fails, 2 error, 3 an image is incomplete, unavailable or pending

Examples:
  ncclcheck audit merge --store /shared/audit
  ncclcheck audit merge --store /shared/audit --owners owners.yaml --format json=audit.json";

const TREND_EXAMPLES: &str = "\
Exit status: 0 not worse, 1 an image is newly failing, 2 error, 3 no finished run before

Examples:
  ncclcheck audit trend --store /shared/audit
  ncclcheck audit trend --store /shared/audit --since 20261101T020000Z";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AuditManifest {
    /// A batch script of Slurm: an array with a task for each shard
    Slurm {
        #[command(flatten)]
        common: ManifestArgs,
        /// Partition
        #[arg(long, value_name = "NAME")]
        partition: Option<String>,
    },
    /// An Indexed Job of Kubernetes with a pod for each shard
    Kubernetes(KubernetesArgs),
}

/// What every scheduler needs.
#[derive(Debug, Args)]
pub(in crate::cli) struct ManifestArgs {
    #[command(flatten)]
    pub(in crate::cli) store: StoreArgs,
    /// Number of tasks
    #[arg(long, value_name = "N", value_parser = number::<NonZeroUsize>(1), default_value = "8")]
    pub(in crate::cli) shards: NonZeroUsize,
    /// Time limit of a task in minutes; it stops five minutes before
    #[arg(long, value_name = "MINUTES", default_value = "60", value_parser = number::<u32>(10))]
    pub(in crate::cli) minutes: u32,
    /// Number of processors of a task
    #[arg(long, value_name = "N", value_parser = number::<NonZeroUsize>(1), default_value = "2")]
    pub(in crate::cli) cpus: NonZeroUsize,
    /// Further arguments of `audit run`, after --
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(in crate::cli) arguments: Vec<String>,
}

#[derive(Debug, Args)]
#[command(override_usage = "ncclcheck audit manifest kubernetes --store URL --run NAME --image IMAGE")]
pub(in crate::cli) struct KubernetesArgs {
    #[command(flatten)]
    pub(in crate::cli) common: ManifestArgs,
    /// Image that has ncclcheck as its entrypoint
    #[arg(long, value_name = "IMAGE")]
    pub(in crate::cli) image: String,
    /// Claim of a volume that all pods share, mounted at the path of the store
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) claim: Option<String>,
    /// Secret whose keys become variables, such as AWS_ACCESS_KEY_ID
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) secret: Option<String>,
    /// Secret of type kubernetes.io/dockerconfigjson with the logins of registries
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) registry_secret: Option<String>,
}

/// How results are shown.
#[derive(Debug, Args)]
pub(in crate::cli) struct AuditViewArgs {
    /// Output format: human, json, markdown, html, csv or prometheus (repeatable)
    ///
    /// FORMAT=FILE writes to FILE. Each of several formats needs its own file; one can go to standard output.
    #[arg(short = 'f', long, value_name = "FORMAT[=FILE]", help_heading = "Output")]
    pub(in crate::cli) format: Vec<String>,
    /// Teams by names of images: a YAML list of {images: PATTERN, team: NAME}
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) owners: Option<PathBuf>,
    /// End with 0 whatever the verdicts; an error still ends with 2
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) report_only: bool,
}

/// Parses `--shard`.
fn shard(text: &str) -> Result<Automatic<Shard>, String> {
    if text == "auto" { Ok(None) } else { text.parse().map(Some) }
}

/// Parses a time with a unit: `90s`, `55m`, `2h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number with s, m or h, such as 55m".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_number| wrong())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}
