//! Images, opened from a reference: their layers are read through [`source`], scanned and folded into one file system.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod archive;
mod artifact;
mod by_digest;
mod choose;
pub mod daemon;
mod directory;
pub mod dockerfile;
mod failure;
mod go_json;
pub mod history;
mod layers;
mod layout;
mod medium;
mod missing;
mod needs;
mod oci;
mod overlay;
mod plan;
pub mod reference;
mod registry;
mod root;
mod scanned;
pub mod source;
mod squash;
mod storage;
pub mod survey;
mod target;
mod texts;
mod transports;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use crate::reference::{Reference, ReferenceError};
use crate::source::{AccessOptions, SourceError};
use layer::cache::ScanCache;
use layer::scan::{ScanError, TreeJobs};
use model::{
    ImageConfig, ImageSummary, LayerSummary, Limits, Meter, Platform, Progress, StartChoice, help_line, printable,
};
use rootfs::RootFs;
use unpack::pipe::Cancel;
use unpack::pool::Pool;

pub use artifact::{fetch_file, fetch_text};
pub use choose::needs;
pub use failure::FailureClass;
use medium::Medium;
pub use needs::ImageNeeds;
use plan::ImagePlan;
pub use registry::{RegistryContacts, StoredLogin, stored_logins};
use scanned::ScannedLayer;

/// Reads the files that configure registries on this machine, to find errors in them.
pub fn registry_configuration(options: &AccessOptions) -> Result<(), SourceError> {
    registry::Registries::read(options).map(drop)
}

/// A request to read one image, or one per platform.
#[derive(Debug)]
pub struct Request {
    /// The image's location.
    pub reference: Reference,
    /// The reference as the user typed it, for reports.
    pub text: String,
    /// Selects among the images of an index.
    pub choice: PlatformChoice,
    /// Number of layers scanned at once, and of threads that decompress ahead for all of them.
    pub jobs: NonZeroUsize,
    /// Resource limits.
    pub limits: Limits,
    /// Options for reaching registries and engines.
    pub options: AccessOptions,
    /// Cache of layer scans; [`ScanCache::default`] keeps nothing.
    pub cache: Arc<ScanCache>,
    /// Variables set at launch, which override the image's.
    pub environment: BTreeMap<String, String>,
    /// What replaces the image's own command, Python and user.
    pub start: StartChoice,
    /// Registries that have answered, for requests with the same options to share.
    pub contacts: RegistryContacts,
}

impl Request {
    /// Parses a reference such as `docker://pytorch/pytorch:latest` or `oci:DIR`. Defaults: this machine's platform,
    /// all processors, the default limits, no cache.
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
            start: StartChoice::default(),
            contacts: RegistryContacts::default(),
        })
    }
}

/// Selection among the platforms of a multi-platform image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformChoice {
    /// This machine's platform; an image for a single platform is accepted whatever its platform.
    Host,
    /// Exactly this platform.
    One(Platform),
    /// Every platform.
    All,
}

impl PlatformChoice {
    /// [`Platform::distance_to`] an offered platform; 0 for each where every platform is requested.
    fn distance_to(&self, offered: &Platform) -> Option<u32> {
        match self {
            Self::One(asked) => asked.distance_to(offered),
            Self::Host => Platform::host().distance_to(offered),
            Self::All => Some(0),
        }
    }

    /// The error when no image is for the requested platform; lists the platforms of those that exist.
    fn not_offered(&self, offered: &[Platform]) -> SourceError {
        let asked = match self {
            Self::One(platform) => platform.clone(),
            Self::Host | Self::All => Platform::host(),
        };
        let mut known = BTreeSet::new();
        let offered = offered.iter().map(ToString::to_string).filter(|platform| known.insert(platform.clone()));
        let offered: Vec<_> = offered.collect();
        SourceError::not_found(format!(
            "no {asked} image; available: {}{}",
            printable(&offered.join(", ")),
            help_line(Some("choose one with --platform, or all with --platform all"))
        ))
    }
}

/// An image that has been read.
#[derive(Debug)]
pub struct Image {
    /// Description of the image, its layers and how they were read.
    pub summary: ImageSummary,
    /// The configuration, with the launch variables; `None` for an unpacked root file system of which nothing is given.
    pub config: Option<ImageConfig>,
    /// The same without the launch variables and the command of a launch file.
    pub own_config: Option<ImageConfig>,
    /// The merged file system.
    pub rootfs: RootFs,
}

/// A failure to obtain an image to judge. Never a verdict.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// None of the places tried has the image.
    #[error("no image '{name}' was found{}", list(places))]
    Nowhere {
        /// The name requested.
        name: String,
        /// Every place tried, with its error.
        places: Vec<(String, SourceError)>,
    },
    /// A layer could not be read.
    #[error("{layer}: {error}")]
    Layer {
        /// The layer's position and digest.
        layer: String,
        /// The cause.
        #[source]
        error: ScanError,
    },
    /// One of the other errors, with the image that it is about.
    #[error("{}: {error}", printable(image))]
    Of {
        /// The reference as the user typed it.
        image: String,
        /// The error.
        error: Box<Self>,
    },
    /// The run was cancelled.
    #[error("stopped")]
    Cancelled,
}

/// One line per place; the lines that follow it are indented.
fn list(places: &[(String, SourceError)]) -> String {
    places.iter().fold(String::new(), |text, (place, said)| {
        text + "\n  " + &format!("{place}: {said}").replace("\n  ", "\n    ")
    })
}

impl ImageError {
    fn invalid(what: impl Into<String>) -> Self {
        Self::Source(SourceError::invalid(what))
    }

    /// Names the image in an error that does not name it itself.
    fn of(self, image: &str) -> Self {
        let name = if image.starts_with('-') { "standard input" } else { image };
        match self {
            Self::Cancelled | Self::Nowhere { .. } => self,
            error if error.to_string().lines().next().is_some_and(|line| mentions(line, name)) => error,
            error => Self::Of { image: name.to_owned(), error: Box::new(error) },
        }
    }
}

/// Shared context of all layer scans.
#[derive(Clone, Copy)]
struct ScanContext<'a> {
    jobs: NonZeroUsize,
    limits: &'a Limits,
    cache: &'a ScanCache,
    pool: Option<&'a Pool>,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
}

impl<'a> ScanContext<'a> {
    /// The means to scan a tree of files.
    const fn tree<'s>(self, meter: &'s dyn Meter) -> TreeJobs<'s>
    where
        'a: 's,
    {
        TreeJobs { threads: self.jobs, limits: self.limits, meter, cancel: self.cancel }
    }
}

/// Returns true if a name is a word of a line, or a path at the beginning of one.
fn mentions(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    line.match_indices(name).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(name).and_then(|rest| rest.chars().next());
        !before.ends_with(is_part) && after.is_none_or(|c| !is_part(c) || c == '/')
    })
}

/// Opens the image and reads it, or one image per platform. An error names the image.
pub fn load(request: &Request, progress: &dyn Progress, cancel: &Cancel) -> Result<Vec<Image>, ImageError> {
    read(request, progress, cancel).map_err(|error| error.of(&request.text))
}

fn read(request: &Request, progress: &dyn Progress, cancel: &Cancel) -> Result<Vec<Image>, ImageError> {
    // A single job needs no pool: the reader decompresses in order.
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
    // File trees may be large: free the decompression memory first.
    drop(pool);
    images.into_iter().map(|(plan, scanned)| assemble(plan, scanned, &*medium, request)).collect()
}

fn assemble(
    plan: ImagePlan,
    scanned: Vec<ScannedLayer>,
    medium: &dyn Medium,
    request: &Request,
) -> Result<Image, ImageError> {
    let mut notes = plan.notes;
    let mut layers = Vec::new();
    for (index, (planned, scanned)) in plan.layers.iter().zip(&scanned).enumerate() {
        let scan = &scanned.scan;
        let media_type = planned.media_type.as_deref().filter(|_| planned.location.blob().is_some());
        let declared = media_type.and_then(layer::scan::Compression::declared);
        let is_read = scanned.unknown.is_none();
        if let Some(declared) = declared.filter(|declared| is_read && *declared != scan.compression) {
            let is = scan.compression.name();
            let says = declared.name();
            notes.push(format!("layer {}: compression is {is}, but its media type says {says}", index + 1));
        }
        layers.push(LayerSummary {
            digest: scanned.stored.clone(),
            diff_id: planned.diff_id.clone(),
            diff_id_verified: planned.diff_id.is_some() && scanned.tar_digest().is_some(),
            compression: scan.compression.name().to_owned(),
            size: scanned.size,
            read: scanned.read,
            unpacked: scan.unpacked,
            entries: scan.entries.len(),
            cached: scanned.cached,
            shared: scanned.is_shared,
            history: planned.history.clone(),
        });
    }
    let shared = scanned.iter().filter(|scanned| scanned.is_shared).count();
    if shared > 0 {
        let all = scanned.len();
        notes.push(format!("{shared} of {all} layers were not read: their scans come from a shared cache"));
    }
    let unknown: Vec<_> = scanned.iter().filter_map(|scanned| scanned.unknown.clone()).collect();
    notes.extend(unknown.iter().map(|gap| gap.why.clone()));
    let mut rootfs = RootFs::fold(scanned.into_iter().map(|scanned| scanned.scan).collect(), &request.limits);
    if let Some(refused) = &rootfs.refused {
        let help = help_line(Some("build the image again: no builder writes such a layer"));
        return Err(ImageError::invalid(format!("{refused}: Docker and containerd refuse the layer{help}")));
    }
    rootfs.unknown = unknown.into_iter().next();
    notes.extend(unread(&rootfs));
    let has_config = plan.config.is_some();
    let mut config = plan.config.unwrap_or_default();
    if has_config && !request.environment.is_empty() {
        notes.push(format!("variables set by the launch, overriding the image's: {}", names(&request.environment)));
    }
    config.build_arguments =
        layers.iter().map(|layer| layer.history.as_deref().map(history::arguments).unwrap_or_default()).collect();
    config.start = request.start.clone();
    let own_start = request.start.without_job();
    let own_config = (has_config || !own_start.is_empty()).then(|| ImageConfig { start: own_start, ..config.clone() });
    config.environment.extend(request.environment.clone());
    config.unknown.variables.retain(|name, _| !request.environment.contains_key(name));
    let summary = ImageSummary {
        reference: request.text.clone(),
        source: medium.name().to_owned(),
        served_by: medium.served_by().map(ToOwned::to_owned),
        manifest: plan.manifest,
        config: plan.config_digest,
        platform: config.platform.clone(),
        layers,
        empty_steps: plan.empty_steps,
        notes,
    };
    let is_changed = !request.start.is_empty() || !request.environment.is_empty();
    let config = (own_config.is_some() || is_changed).then_some(config);
    Ok(Image { summary, config, own_config, rootfs })
}

/// Errors of files that a collector needed and could not read. Facts that need such a file report it; these notes cover
/// the rest.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_image() {
        for (image, what, text) in [
            ("oci:a", "a has no blob b", "oci:a: a has no blob b"),
            ("a", "a/index.json is missing", "a/index.json is missing"),
            ("a", "no image 'a' was found", "no image 'a' was found"),
            ("a", "no manifest\nin a", "a: no manifest\nin a"),
            ("a.b", "na.b.c is damaged", "a.b: na.b.c is damaged"),
            ("-:@1", "standard input is empty", "standard input is empty"),
            ("-", "two images", "standard input: two images"),
        ] {
            assert_eq!(ImageError::invalid(what).of(image).to_string(), text);
        }
        assert_eq!(ImageError::Cancelled.of("a").to_string(), "stopped");
    }
}
