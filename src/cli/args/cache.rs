//! Argument `--cache`, and those of `ncclcheck cache`.

use clap::{Args, Subcommand};

use super::choice::number;
use super::help::{images, sections, short_help};
use super::{JobsArg, ListFormat, ReadingArgs};

/// The cache of a run.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct CacheArg {
    /// Shared cache of layer scans, a URL or a folder, or `off` for no cache [default: $NCCLCHECK_CACHE]
    ///
    /// Scans are read from the shared cache on a miss of the local cache, and new scans are written to both. URLs:
    /// s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, http(s)://SERVER/PATH, file:///FOLDER. Anyone with
    /// write access to a shared cache is trusted, unless NCCLCHECK_CACHE_TRUST is own. With `off`, every layer is read, and no
    /// scans are stored.
    #[arg(long, value_name = "URL|off", help_heading = "Cache")]
    pub(in crate::cli) cache: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CacheCommand {
    /// Show the location and size of the cache
    Info {
        /// Output format
        #[arg(short = 'f', long, value_name = "FORMAT", default_value = "human")]
        format: ListFormat,
    },
    /// Remove scans from the cache
    Clear {
        /// Remove only scans made by other scanner versions or with other limits
        #[arg(long)]
        other_versions: bool,
        /// Remove only scans that were not used for DAYS days
        #[arg(long, value_name = "DAYS", value_parser = number::<u32>(0))]
        older_than: Option<u32>,
    },
    /// Copy scans of this version to a folder or URL for use with --cache
    Export(Box<CacheExportArgs>),
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  ncclcheck cache export /mnt/team/scans pytorch/pytorch:latest
  ncclcheck cache export s3://ci-cache/ncclcheck";

#[derive(Debug, Args)]
#[command(
    mut_args = short_help(&["platform", "jobs", "authfile", "cert-dir", "tls-verify"]),
    after_help = EXPORT_EXAMPLES,
    after_long_help = sections(&[&images(), EXPORT_EXAMPLES]),
)]
pub(in crate::cli) struct CacheExportArgs {
    /// Folder or URL, as for --cache
    #[arg(value_name = "PLACE")]
    pub(in crate::cli) place: String,
    /// Images whose scans are copied [default: all cached scans]
    ///
    /// Layers without a cached scan are scanned first.
    #[arg(value_name = "IMAGE", value_parser = super::stdin::image)]
    pub(in crate::cli) images: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) reading: ReadingArgs,
    #[command(flatten)]
    pub(in crate::cli) jobs: JobsArg,
}
