//! Manifests, indexes and configurations (OCI image-spec; Docker Image Manifest V2, Schema 2): which images there are, and
//! which is wanted.

use std::collections::BTreeMap;

use oci_spec::image::{Descriptor, ImageConfiguration, ImageIndex, ImageManifest};
use serde::Deserialize;

use crate::image::reference::Selector;
use crate::image::source::{Source, SourceError, read_bounded};
use crate::layer::scan::Annotations;
use crate::model::BlobRef;
use crate::model::{Digest, Hasher, ImageConfig, Limits, OverLimit, Platform, printable};

use super::{Error, Place, Plan, PlannedLayer, PlatformChoice, soci};

/// `org.opencontainers.image.ref.name` (image-spec, `annotations.md`).
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// How containerd and Docker name an image in a layout.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// `attestation-manifest` on what `BuildKit` attaches to an image.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// What a document is, told by its own fields: a media type from outside may lie (CVE-2021-41190).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    schema_version: Option<u64>,
    media_type: Option<String>,
    config: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    manifests: Option<serde::de::IgnoredAny>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// A manifest that may be the wanted one.
struct Candidate {
    blob: BlobRef,
    platform: Option<Platform>,
    names: Vec<String>,
}

/// Finds the images of a source.
pub(super) struct Finder<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    candidates: Vec<Candidate>,
    notes: Vec<String>,
}

impl<'a> Finder<'a> {
    /// The images that are wanted, ready to be scanned.
    pub(super) fn plans(
        source: &'a dyn Source,
        selector: Option<&Selector>,
        choice: &PlatformChoice,
        limits: &'a Limits,
    ) -> Result<Vec<Plan>, Error> {
        let mut finder = Self { source, limits, candidates: Vec::new(), notes: Vec::new() };
        let top = source.top()?;
        match Self::shape(&top.bytes, top.media_type.as_deref())? {
            Kind::Manifest => {
                let plan = finder.plan(&top.bytes, top.digest)?;
                check_platform(&plan, choice)?;
                Ok(vec![plan])
            }
            Kind::Index => {
                finder.index(&top.bytes, &[], 0)?;
                finder.choose(selector, choice)
            }
        }
    }

    fn shape(bytes: &[u8], media_type: Option<&str>) -> Result<Kind, Error> {
        let shape: Shape = serde_json::from_slice(bytes)
            .map_err(|error| Error::invalid(format!("the manifest is no JSON of the expected form: {error}")))?;
        if shape.schema_version == Some(1) || shape.fs_layers.is_some() {
            return Err(Error::invalid(
                "the manifest is of Docker's schema 1, which has been obsolete since 2015: push the image again with a current Docker",
            ));
        }
        let declared = shape.media_type.as_deref().or(media_type).unwrap_or_default();
        match (shape.manifests.is_some(), shape.config.is_some() && shape.layers.is_some()) {
            (true, true) => {
                Err(Error::invalid("the document has both manifests and layers: it is ambiguous, and refused"))
            }
            (true, false) => Ok(Kind::Index),
            (false, true) => Ok(Kind::Manifest),
            (false, false) => Err(Error::invalid(format!(
                "the document is neither an image manifest nor an index ('{}')",
                printable(declared)
            ))),
        }
    }

    /// Gathers the manifests of an index. `names` are those that an index around it has.
    fn index(&mut self, bytes: &[u8], names: &[String], depth: usize) -> Result<(), Error> {
        let index: ImageIndex = serde_json::from_slice(bytes)
            .map_err(|error| Error::invalid(format!("the image index is malformed: {error}")))?;
        for descriptor in index.manifests() {
            let blob = blob_ref(descriptor)?;
            let annotations = descriptor.annotations().clone().unwrap_or_default();
            if annotations.get(REFERENCE_TYPE).is_some_and(|kind| kind == "attestation-manifest") {
                self.notes.push(format!("attestation manifest {} was passed over", blob.digest));
                continue;
            }
            if let Some(kind) = descriptor.artifact_type() {
                let kind = kind.to_string();
                // It is no image, and whether it was used to read one is told with that.
                if soci::is_index(&kind) {
                    continue;
                }
                self.notes.push(format!("artifact {} ({}) was passed over", blob.digest, printable(&kind)));
                continue;
            }
            let mut names = names.to_vec();
            names.extend([REF_NAME, CONTAINERD_NAME].iter().filter_map(|key| annotations.get(*key).cloned()));
            let media_type = descriptor.media_type().to_string();
            if media_type.ends_with("index.v1+json") || media_type.ends_with("manifest.list.v2+json") {
                if depth >= self.limits.nesting {
                    let what = format!("image indexes are nested {} deep", depth + 2);
                    return Err(over(what, "nesting", self.limits.nesting as u64));
                }
                let bytes = self.document(&blob)?;
                self.index(&bytes, &names, depth + 1)?;
                continue;
            }
            let platform = descriptor.platform().as_ref().map(|platform| Platform {
                os: platform.os().to_string(),
                architecture: platform.architecture().to_string(),
                variant: platform.variant().clone(),
            });
            self.candidates.push(Candidate { blob, platform, names });
            if self.candidates.len() > self.limits.layers {
                let what = format!("the image index names {} images", self.candidates.len());
                return Err(over(what, "layers", self.limits.layers as u64));
            }
        }
        Ok(())
    }

    /// By name or digest first, then by platform.
    fn choose(mut self, selector: Option<&Selector>, choice: &PlatformChoice) -> Result<Vec<Plan>, Error> {
        let all = std::mem::take(&mut self.candidates);
        let wanted = named(&all, selector)?;
        let mut plans = Vec::new();
        for candidate in wanted.iter().filter(|candidate| candidate.serves(choice, wanted.len() == 1)) {
            let bytes = self.document(&candidate.blob)?;
            let plan = self.plan(&bytes, candidate.blob.digest.clone())?;
            if check_platform(&plan, choice).is_ok() {
                plans.push(plan);
            }
        }
        let Some(first) = plans.first() else { return Err(not_offered(&wanted, choice)) };
        if *choice == PlatformChoice::All {
            return Ok(plans);
        }
        // Variants of an architecture are in the index's order of preference; but two images for one platform are two
        // different images.
        let is_rival = |plan: &&Plan| plan.manifest != first.manifest && plan.config.platform == first.config.platform;
        if plans.iter().any(|plan| is_rival(&plan)) {
            let lines =
                wanted.iter().map(|candidate| format!("{} {}", candidate.blob.digest, candidate.names.join(" ")));
            let list: Vec<_> = lines.map(|line| printable(line.trim_end()).into_owned()).collect();
            let what = "several images here are meant; say which, by name or by @DIGEST";
            return Err(Error::invalid(format!("{what}:\n  {}", list.join("\n  "))));
        }
        plans.truncate(1);
        Ok(plans)
    }

    /// A document by digest, verified.
    fn document(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        if blob.size > self.limits.document {
            let what = format!("document {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let bytes = self.source.manifest(&blob.digest)?;
        verify(&bytes, blob)?;
        Ok(bytes)
    }

    /// What one manifest describes.
    fn plan(&mut self, bytes: &[u8], digest: Digest) -> Result<Plan, Error> {
        Self::shape(bytes, None)?;
        let manifest: ImageManifest = serde_json::from_slice(bytes)
            .map_err(|error| Error::invalid(format!("manifest {digest} is malformed: {error}")))?;
        let config_type = manifest.config().media_type().to_string();
        if !matches!(
            config_type.as_str(),
            "application/vnd.oci.image.config.v1+json" | "application/vnd.docker.container.image.v1+json"
        ) {
            let what =
                format!("manifest {digest} is of no container image, but of an artifact ({})", printable(&config_type));
            return Err(Error::invalid(what));
        }
        let blob = blob_ref(manifest.config())?;
        if blob.size > self.limits.document {
            let what = format!("configuration {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let reader = self.source.open(&blob)?;
        let bytes = read_bounded(reader, self.limits.document, &format!("reading configuration {}", blob.digest))?;
        verify(&bytes, &blob)?;
        let mut notes = self.notes.clone();
        let mut places = Vec::new();
        for descriptor in manifest.layers() {
            let media_type = descriptor.media_type().to_string();
            let is_foreign = media_type.contains("nondistributable") || media_type.contains("foreign");
            if is_foreign {
                notes.push(format!(
                    "foreign layer {} was passed over: it is not distributed with the image",
                    descriptor.digest()
                ));
            }
            if media_type.ends_with("+encrypted") {
                return Err(Error::invalid(format!("layer {} is encrypted", descriptor.digest())));
            }
            let blob = blob_ref(descriptor)?;
            let place = Place::Blob { digest: blob.digest, size: blob.size };
            let annotations = descriptor.annotations().clone().unwrap_or_default().into_iter().collect();
            places.push((!is_foreign).then_some(Described { place, media_type: Some(media_type), annotations }));
        }
        let annotations = manifest.annotations().clone().unwrap_or_default().into_iter().collect();
        let plan = configure(&bytes, blob.digest, Some(digest), places, notes, self.limits)?;
        Ok(Plan { annotations, ..plan })
    }
}

enum Kind {
    Manifest,
    Index,
}

impl Candidate {
    /// Whether to look at it at all. What an index does not say, the configuration does.
    fn serves(&self, choice: &PlatformChoice, is_only_one: bool) -> bool {
        match (choice, &self.platform) {
            (PlatformChoice::One(asked), Some(offered)) => asked.is_served_by(offered),
            (PlatformChoice::Host, Some(offered)) => is_only_one || Platform::host().is_served_by(offered),
            (_, None) | (PlatformChoice::All, _) => true,
        }
    }

    /// Podman writes whole names, and Docker tags alone: either is accepted.
    fn is_named(&self, asked: &str) -> bool {
        self.names.iter().any(|name| name == asked || name.rsplit_once(':').is_some_and(|(_, tag)| tag == asked))
    }
}

/// The candidates that a selector means.
fn named<'c>(all: &'c [Candidate], selector: Option<&Selector>) -> Result<Vec<&'c Candidate>, Error> {
    let wanted: Vec<_> = match selector {
        Some(Selector::Name(name)) => all.iter().filter(|candidate| candidate.is_named(name)).collect(),
        Some(Selector::Digest(digest)) => all.iter().filter(|candidate| candidate.blob.digest == *digest).collect(),
        Some(Selector::Index(index)) => all.get(*index).into_iter().collect(),
        None => all.iter().collect(),
    };
    if wanted.is_empty() {
        let names: Vec<_> = all.iter().flat_map(|candidate| &candidate.names).map(|name| printable(name)).collect();
        let asked = selector.map(ToString::to_string).unwrap_or_default();
        let what = format!("there is no image '{asked}' here; there are {}: {}", all.len(), names.join(", "));
        return Err(Error::invalid(what));
    }
    Ok(wanted)
}

/// None of the candidates is for the platform: which are there.
fn not_offered(wanted: &[&Candidate], choice: &PlatformChoice) -> Error {
    let asked = match choice {
        PlatformChoice::One(platform) => platform.clone(),
        PlatformChoice::Host | PlatformChoice::All => Platform::host(),
    };
    let offered: Vec<_> =
        wanted.iter().filter_map(|candidate| candidate.platform.as_ref()).map(ToString::to_string).collect();
    Error::Source(SourceError::Invalid {
        what: format!("there is no image for {asked} here, but for {}", printable(&offered.join(", "))),
        hint: Some("choose one with --platform, or take each with --all-platforms".to_owned()),
    })
}

/// The digest and the size of bytes against their descriptor.
fn verify(bytes: &[u8], blob: &BlobRef) -> Result<(), Error> {
    let mut hasher = blob.digest.hasher();
    hasher.update(bytes);
    let found = hasher.finish();
    if bytes.len() as u64 != blob.size {
        let what = format!("document {} has {} bytes, its descriptor says {}", blob.digest, bytes.len(), blob.size);
        return Err(Error::invalid(what));
    }
    if found != blob.digest {
        return Err(Error::invalid(format!("document {} is corrupt: its bytes have the digest {found}", blob.digest)));
    }
    Ok(())
}

fn blob_ref(descriptor: &Descriptor) -> Result<BlobRef, Error> {
    let digest = descriptor.digest().to_string().parse().map_err(SourceError::from)?;
    Ok(BlobRef { digest, size: descriptor.size() })
}

pub(super) fn check_platform(plan: &Plan, choice: &PlatformChoice) -> Result<(), Error> {
    match (choice, &plan.config.platform) {
        (PlatformChoice::One(asked), Some(offered)) if !asked.is_served_by(offered) => Err(Error::invalid(format!(
            "the image is for {}, and {asked} was asked for",
            printable(&offered.to_string())
        ))),
        _ => Ok(()),
    }
}

/// What a manifest says of a layer.
pub(super) struct Described {
    pub(super) place: Place,
    pub(super) media_type: Option<String>,
    pub(super) annotations: Annotations,
}

/// A plan from an image configuration and the places of its layers (`None` for one that is passed over).
pub(super) fn configure(
    bytes: &[u8],
    config_digest: Digest,
    manifest: Option<Digest>,
    places: Vec<Option<Described>>,
    mut notes: Vec<String>,
    limits: &Limits,
) -> Result<Plan, Error> {
    let parsed: ImageConfiguration = serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("image configuration {config_digest} is malformed: {error}")))?;
    let diff_ids = parsed.rootfs().diff_ids();
    if diff_ids.len() != places.len() {
        let what = format!(
            "image configuration {config_digest} has {} diff IDs, and there are {} layers",
            diff_ids.len(),
            places.len()
        );
        return Err(Error::invalid(what));
    }
    if places.len() > limits.layers {
        return Err(over(format!("the image has {} layers", places.len()), "layers", limits.layers as u64));
    }
    let history = parsed.history().clone().unwrap_or_default();
    let step = |entry: &oci_spec::image::History| entry.created_by().clone().unwrap_or_default();
    let (empty, full): (Vec<_>, Vec<_>) = history.iter().partition(|entry| entry.empty_layer() == Some(true));
    // Some builders (kaniko, squashing ones) do not keep the history in step with the layers.
    let steps: Vec<Option<String>> = if full.len() == places.len() {
        full.iter().map(|entry| Some(step(entry)).filter(|text| !text.is_empty())).collect()
    } else {
        if !full.is_empty() {
            notes.push(format!(
                "the history tells of {} layers, and there are {}: build steps are not shown",
                full.len(),
                places.len()
            ));
        }
        vec![None; places.len()]
    };
    let mut layers = Vec::new();
    for ((place, diff_id), history) in places.into_iter().zip(diff_ids).zip(steps) {
        if let Some(Described { place, media_type, annotations }) = place {
            let diff_id = diff_id.parse().map_err(SourceError::from)?;
            layers.push(PlannedLayer { place, media_type, annotations, diff_id, history });
        }
    }
    let config = config(&parsed);
    Ok(Plan {
        manifest,
        annotations: Annotations::new(),
        config_digest,
        config,
        layers,
        empty_steps: empty.into_iter().map(step).collect(),
        notes,
        is_verified: true,
    })
}

fn config(parsed: &ImageConfiguration) -> ImageConfig {
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

fn over(what: String, limit: &'static str, value: u64) -> Error {
    Error::invalid(OverLimit::new(what, limit, value).to_string())
}

/// The digest of small bytes.
pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests;
