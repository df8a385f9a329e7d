//! The content of an image's documents: its configuration, and the locations of its layers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oci_spec::image::ImageConfiguration;

use crate::source::SourceError;
use model::{BlobRef, Digest, Hasher, ImageConfig, ImagePath, Limits, OverLimit, Platform, conceal, printable};

use super::go_json::parse_document;
use super::{ImageError, PlatformChoice};

/// An image as its documents describe it, before its layers are read.
#[derive(Clone, Debug, Default)]
pub(super) struct ImagePlan {
    /// Names of the image in an index, with those of the indexes around it.
    pub(super) names: Vec<String>,
    /// Time of the build, as the configuration says (RFC 3339).
    pub(super) created: Option<String>,
    pub(super) manifest: Option<Digest>,
    /// `None` for an unpacked root file system, which has no configuration.
    pub(super) config_digest: Option<Digest>,
    /// `None` if the image declares nothing, as an unpacked root file system.
    pub(super) config: Option<ImageConfig>,
    pub(super) layers: Vec<PlannedLayer>,
    /// Build steps that created no layer, such as `ENV`.
    pub(super) empty_steps: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// A layer as the documents describe it.
#[derive(Clone, Debug)]
pub(super) struct PlannedLayer {
    pub(super) location: LayerLocation,
    pub(super) media_type: Option<String>,
    /// The digest of the uncompressed tar. `None` for a folder that was never packed.
    pub(super) diff_id: Option<Digest>,
    pub(super) history: Option<String>,
}

impl PlannedLayer {
    /// Returns true if the layer need not be where the image is: a foreign (nondistributable) layer, which engines fetch
    /// from the URLs in its descriptor if its blob is missing (image-spec, `layer.md`).
    pub(super) fn is_foreign(&self) -> bool {
        self.media_type.as_ref().is_some_and(|kind| kind.contains("nondistributable") || kind.contains("foreign"))
    }
}

/// The location of a layer's bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LayerLocation {
    /// A blob in a medium that is addressed by digest.
    Blob { digest: Digest, size: u64 },
    /// A member of a docker archive.
    Member(ImagePath),
    /// An unpacked folder on this machine.
    Folder(PathBuf),
    /// The whole of a squashfs file system.
    Squashfs,
}

impl LayerLocation {
    pub(super) fn blob(&self) -> Option<BlobRef> {
        match self {
            Self::Blob { digest, size } => Some(BlobRef { digest: digest.clone(), size: *size }),
            Self::Member(_) | Self::Folder(_) | Self::Squashfs => None,
        }
    }
}

impl ImagePlan {
    /// Digests of the image's documents, as far as it has them.
    pub(super) fn documents(&self) -> impl Iterator<Item = &Digest> {
        self.manifest.iter().chain(&self.config_digest)
    }

    /// The platform that the image declares.
    pub(super) fn platform(&self) -> Option<&Platform> {
        self.config.as_ref()?.platform.as_ref()
    }
}

pub(super) fn check_platform(plan: &ImagePlan, choice: &PlatformChoice) -> Result<(), ImageError> {
    match (choice, plan.platform()) {
        (PlatformChoice::One(asked), Some(offered)) if !asked.is_served_by(offered) => Err(ImageError::invalid(
            format!("the image is for {}, but {asked} was requested", printable(&offered.to_string())),
        )),
        _ => Ok(()),
    }
}

/// A layer as the manifest describes it.
pub(super) struct DescribedLayer {
    pub(super) location: LayerLocation,
    pub(super) media_type: Option<String>,
}

/// Plans an image from its configuration and the layers of its manifest.
pub(super) fn configure(
    bytes: &[u8],
    config_digest: Digest,
    manifest: Option<Digest>,
    described: Vec<DescribedLayer>,
    limits: &Limits,
) -> Result<ImagePlan, ImageError> {
    let parsed: ImageConfiguration = parse_document(bytes)
        .map_err(|error| ImageError::invalid(format!("image configuration {config_digest} is malformed: {error}")))?;
    let diff_ids = parsed.rootfs().diff_ids();
    if diff_ids.len() != described.len() {
        let what = format!(
            "image configuration {config_digest} has {} diff IDs for {} layers",
            diff_ids.len(),
            described.len()
        );
        return Err(ImageError::invalid(what));
    }
    if described.len() > limits.layers {
        return Err(over(format!("the image has {} layers", described.len()), "layers", limits.layers as u64));
    }
    let mut notes = Vec::new();
    let history = parsed.history().clone().unwrap_or_default();
    let step =
        |entry: &oci_spec::image::History| entry.created_by().as_deref().map(conceal).unwrap_or_default().into_owned();
    let (empty, full): (Vec<_>, Vec<_>) = history.iter().partition(|entry| entry.empty_layer() == Some(true));
    // Some builders (kaniko, squashing ones) do not keep the history consistent with the layers.
    let steps: Vec<Option<String>> = if full.len() == described.len() {
        full.iter().map(|entry| Some(step(entry)).filter(|text| !text.is_empty())).collect()
    } else {
        if !full.is_empty() {
            notes.push(format!(
                "the history lists {} layers, but the image has {}: build steps are not shown",
                full.len(),
                described.len()
            ));
        }
        vec![None; described.len()]
    };
    let mut layers = Vec::new();
    for ((described, diff_id), history) in described.into_iter().zip(diff_ids).zip(steps) {
        let DescribedLayer { location, media_type } = described;
        let diff_id = Some(diff_id.parse().map_err(SourceError::from)?);
        layers.push(PlannedLayer { location, media_type, diff_id, history });
    }
    let config = Some(image_config(&parsed));
    Ok(ImagePlan {
        names: Vec::new(),
        created: parsed.created().clone(),
        manifest,
        config_digest: Some(config_digest),
        config,
        layers,
        empty_steps: empty.into_iter().map(step).collect(),
        notes,
    })
}

fn image_config(parsed: &ImageConfiguration) -> ImageConfig {
    let platform = Platform {
        os: parsed.os().to_string(),
        architecture: parsed.architecture().to_string(),
        variant: parsed.variant().clone(),
    };
    let mut image = ImageConfig { platform: Some(platform), ..ImageConfig::default() };
    if let Some(config) = parsed.config() {
        let pair = |text: &String| {
            text.split_once('=').map_or((text.clone(), String::new()), |(k, v)| (k.to_owned(), v.to_owned()))
        };
        image.environment = config.env().iter().flatten().map(pair).collect();
        image.entrypoint = config.entrypoint().clone().unwrap_or_default();
        image.command = config.cmd().clone().unwrap_or_default();
        image.user = config.user().clone().unwrap_or_default();
        image.working_directory = config.working_dir().clone().unwrap_or_default();
        image.labels =
            config.labels().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect::<BTreeMap<_, _>>();
    }
    image
}

pub(super) fn over(what: String, limit: &'static str, value: u64) -> ImageError {
    ImageError::invalid(OverLimit::new(what, limit, value).advice())
}

/// The SHA-256 digest of a small document.
pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    hasher.finish()
}
