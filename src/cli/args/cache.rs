//! `--cache`, `--no-cache` and `ncclcheck cache`.

use clap::{Args, Subcommand};

use super::{ListFormat, ReadingArgs};

/// Which caches a run uses.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct CachingArgs {
    /// Share scans of layers: look for them here too, and put them here (s3://BUCKET/PATH, gs://, az://, file://, http(s):// or
    /// a folder); who may write there is believed [default: $NCCLCHECK_CACHE]
    #[arg(long, value_name = "URL", conflicts_with = "no_cache", help_heading = "Cache")]
    pub(in crate::cli) cache: Option<String>,
    /// Read every layer, and keep no scans; NCCLCHECK_CACHE=off says it for good
    #[arg(long, help_heading = "Cache")]
    pub(in crate::cli) no_cache: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CacheCommand {
    /// Show where it is, and how much is in it
    Info(CacheInfoArgs),
    /// Remove scans from it
    Clear(CacheClearArgs),
    /// Copy scans of this version to a folder or a URL, which others then name with --cache
    Export(Box<CacheExportArgs>),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CacheInfoArgs {
    /// Form of the answer
    #[arg(long, value_name = "FORM", default_value = "human")]
    pub(in crate::cli) format: ListFormat,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CacheClearArgs {
    /// Only those that other versions of the scanner made, or that were made within other limits
    #[arg(long)]
    pub(in crate::cli) other_versions: bool,
    /// Only those that were not used for so many days
    #[arg(long, value_name = "DAYS")]
    pub(in crate::cli) older_than: Option<u32>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ncclcheck cache export /mnt/team/scans pytorch/pytorch:latest\n  ncclcheck cache export s3://ci-cache/ncclcheck"
)]
pub(in crate::cli) struct CacheExportArgs {
    /// Folder or URL, as --cache takes it
    #[arg(value_name = "PLACE")]
    pub(in crate::cli) place: String,
    /// Images whose layers' scans are copied; those that are not kept yet are made. All that are kept if none is named
    #[arg(value_name = "IMAGE")]
    pub(in crate::cli) images: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) reading: ReadingArgs,
}
