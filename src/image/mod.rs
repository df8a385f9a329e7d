//! From a reference to images whose layers are scanned and folded: source, scan and rootfs put together.

mod archive;
mod by_digest;
mod choose;
pub(crate) mod daemon;
mod directory;
pub mod dockerfile;
pub(crate) mod history;
mod layers;
mod layout;
mod medium;
mod oci;
mod partial;
mod plan;
pub mod reference;
mod registry;
mod root;
mod scanned;
mod soci;
pub mod source;
mod target;
mod transports;
mod verify;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use crate::image::reference::{Reference, ReferenceError};
use crate::image::source::{AccessOptions, SourceError};
use crate::layer::cache::ScanCache;
use crate::layer::scan::ScanError;
use crate::model::{ImageConfig, ImageSummary, LayerSummary, Limits, Platform, Progress};
use crate::rootfs::RootFs;
use unpack::pipe::Cancel;
use unpack::pool::Pool;

use plan::ImagePlan;
use scanned::{ScannedLayer, TableOfContents};

/// What is asked for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    /// Where the image is.
    pub reference: Reference,
    /// What the user typed, for reports.
    pub text: String,
    /// Which of an index's images.
    pub choice: PlatformChoice,
    /// Layers that are scanned at once, and threads that decompress ahead for all of them.
    pub jobs: NonZeroUsize,
    /// Bounds.
    pub limits: Limits,
    /// How media are reached.
    pub options: AccessOptions,
    /// Where scans of layers are looked for and kept; [`Cache::default`] is nowhere.
    pub cache: Arc<ScanCache>,
    /// Variables that the container is started with, over those of its image.
    pub environment: BTreeMap<String, String>,
    /// Whether layers are read whole that could be read in part.
    pub whole: bool,
    /// Whether layers may be read where nothing of them can be verified: those of an engine's image from its folders, and others
    /// in part by a table that nothing of the image names.
    pub unverified: bool,
}

impl Request {
    /// Reads this machine's image behind a reference, such as `docker://pytorch/pytorch:latest` or `oci:DIR`: on all
    /// processors, with the default bounds, without a cache.
    pub fn new(text: &str) -> Result<Self, ReferenceError> {
        Ok(Self {
            reference: text.parse()?,
            text: text.to_owned(),
            choice: PlatformChoice::Host,
            jobs: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            limits: Limits::default(),
            options: AccessOptions::default(),
            cache: Arc::default(),
            environment: BTreeMap::new(),
            whole: false,
            unverified: false,
        })
    }
}

/// Which platforms of an image with several are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformChoice {
    /// This machine's, and whatever an image of one platform is for.
    Host,
    /// This one and no other.
    One(Platform),
    /// Each that is there.
    All,
}

/// An image, read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Image {
    /// What was looked at.
    pub summary: ImageSummary,
    /// Its configuration, with the variables that the user adds; `None` for an unpacked root file system without any.
    pub config: Option<ImageConfig>,
    /// Its merged file system.
    pub rootfs: RootFs,
}

/// Why there is no image to judge. Never a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The medium.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Several media were asked, and none has it.
    #[error("no image '{name}' was found{}", list(places))]
    Nowhere {
        /// What was asked for.
        name: String,
        /// Every place that was tried, and what it said.
        places: Vec<(String, SourceError)>,
    },
    /// One layer.
    #[error("{layer}: {error}")]
    Layer {
        /// Which: its place among the image's layers, and its digest.
        layer: String,
        /// What is wrong with it.
        #[source]
        error: ScanError,
    },
    /// The run was stopped.
    #[error("stopped")]
    Cancelled,
}

/// One line for each place, those that follow indented under it.
fn list(places: &[(String, SourceError)]) -> String {
    places.iter().fold(String::new(), |text, (place, said)| {
        text + &format!("\n  {place}: {said}").replace("\n  help", "\n    help")
    })
}

impl ImageError {
    fn invalid(what: impl Into<String>) -> Self {
        Self::Source(SourceError::invalid(what))
    }
}

/// What layers are scanned with.
#[derive(Clone, Copy)]
struct ScanContext<'a> {
    jobs: NonZeroUsize,
    limits: &'a Limits,
    cache: &'a ScanCache,
    pool: Option<&'a Pool>,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
}

/// Opens what was asked for and reads it: one image, or one for each platform.
pub fn load(request: &Request, progress: &dyn Progress, cancel: &Cancel) -> Result<Vec<Image>, ImageError> {
    // With one job, who reads does all of it, in order.
    let pool = (request.jobs.get() > 1).then(|| Pool::new(request.jobs));
    let context = ScanContext {
        jobs: request.jobs,
        limits: &request.limits,
        cache: &request.cache,
        pool: pool.as_ref(),
        progress,
        cancel,
    };
    let mut medium = choose::choose(request)?;
    let mut images = Vec::new();
    for mut plan in medium.plans(request, context)? {
        let scanned = medium.scan(&mut plan, request, context)?;
        images.push((plan, scanned));
    }
    // Trees of files may be large: what layers were unpacked with gives way to them.
    drop(pool);
    Ok(images.into_iter().map(|(plan, scanned)| assemble(plan, scanned, medium.name(), request)).collect())
}

fn assemble(plan: ImagePlan, scanned: Vec<ScannedLayer>, source: &str, request: &Request) -> Image {
    let mut notes = plan.notes;
    let mut layers = Vec::new();
    for (index, (planned, scanned)) in plan.layers.iter().zip(&scanned).enumerate() {
        let scan = &scanned.scan;
        let declared = planned.media_type.as_deref().and_then(crate::layer::scan::Compression::declared);
        if let Some(declared) = declared.filter(|declared| *declared != scan.compression) {
            let (is, says) = (scan.compression.name(), declared.name());
            notes.push(format!("layer {}: its compression is {is}, its media type says {says}", index + 1));
        }
        let part = scanned.part.map(|table| part_read(scanned.read, scanned.size, table));
        notes.extend(part.iter().chain(&scanned.note).map(|note| format!("layer {}: {note}", index + 1)));
        layers.push(LayerSummary {
            digest: scanned.stored.clone(),
            diff_id: planned.diff_id.clone(),
            compression: scan.compression.name(),
            size: scanned.size,
            read: scanned.read,
            unpacked: scan.unpacked,
            entries: scan.entries.len(),
            cached: scanned.cached,
            history: planned.history.clone(),
        });
    }
    let rootfs = RootFs::fold(scanned.into_iter().map(|scanned| scanned.scan).collect(), &request.limits);
    notes.extend(rootfs.notes.iter().cloned());
    notes.extend(unread(&rootfs));
    let mut config = plan.config;
    let has_config = plan.config_digest.is_some();
    if has_config && !request.environment.is_empty() {
        notes.push(format!("variables of the launch, over the image's own: {}", names(&request.environment)));
    }
    config.environment.extend(request.environment.clone());
    let summary = ImageSummary {
        reference: request.text.clone(),
        source: source.to_owned(),
        manifest: plan.manifest,
        config: plan.config_digest,
        platform: config.platform.clone(),
        layers,
        empty_steps: plan.empty_steps,
        notes,
    };
    let config = (has_config || !request.environment.is_empty()).then_some(config);
    Image { summary, config, rootfs }
}

/// For the report: how much of a layer was read.
fn part_read(read: u64, size: u64, table: TableOfContents) -> String {
    const MB: u64 = 1_000_000;
    let (unit, name) = if size < 10 * MB { (1000, "kB") } else { (MB, "MB") };
    let unverified = if table.is_verified { "" } else { ", unverified" };
    format!("{} of {} {name} read ({}{unverified})", read.div_ceil(unit), size.div_ceil(unit), table.form)
}

/// Files that somebody wanted to look into and could not. A fact that needs one says so itself; the others are told here.
fn unread(rootfs: &RootFs) -> Vec<String> {
    const SHOWN: usize = 5;
    let gaps: Vec<_> =
        rootfs.read_files().flat_map(|(_, file)| file.found.iter().filter_map(|found| found.as_ref().err())).collect();
    let mut notes: Vec<_> = gaps.iter().take(SHOWN).map(ToString::to_string).collect();
    if gaps.len() > SHOWN {
        notes.push(format!("{} more files could not be read", gaps.len() - SHOWN));
    }
    notes
}

/// Names of variables, for notes.
fn names(environment: &BTreeMap<String, String>) -> String {
    environment.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
