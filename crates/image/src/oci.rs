//! Manifests, indexes and configurations (OCI image-spec; Docker Image Manifest V2, Schema 2): lists the images and
//! selects the requested ones.

mod candidate;
mod media_type;

use oci_spec::image::{Descriptor, ImageIndex, ImageManifest};
use serde::Deserialize;

use crate::source::{Source, SourceError, SourceErrorKind, StoredDocument, read_bounded};
use crate::target::Selector;
use model::{BlobRef, Digest, Limits, Platform, printable};

use super::go_json::{parse_changed, parse_document};
use super::plan::{DescribedLayer, ImagePlan, LayerLocation, check_platform, configure, over};
use super::{ImageError, PlatformChoice};

use candidate::{
    IndexedNames, ManifestCandidate, PlannedCandidate, RatedCandidate, UnreadIndex, ambiguous, not_found, selected,
    without_copies,
};
use media_type::{IndexedKind, is_config, is_layer};

/// `org.opencontainers.image.ref.name` (image-spec, `annotations.md`).
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Annotation with which containerd and Docker name an image in a layout.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Notes about the index that each of several images repeats.
const MOST_SHARED_NOTES: usize = 20;

/// The fields that determine a document's kind: a media type from outside may be wrong (CVE-2021-41190).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Shape {
    schema_version: Option<u64>,
    media_type: Option<String>,
    #[serde(default)]
    config: IsThere,
    #[serde(default)]
    layers: IsThere,
    #[serde(default)]
    manifests: IsThere,
    #[serde(default)]
    fs_layers: IsThere,
}

/// Whether a document has a field. Programs in Go write an empty list as `null`.
#[derive(Default)]
struct IsThere(bool);

impl<'de> Deserialize<'de> for IsThere {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_any| Self(true))
    }
}

/// Finds the images of a source.
pub(super) struct Finder<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    candidates: Vec<ManifestCandidate>,
    unread: Vec<UnreadIndex>,
    /// Bytes of the nested indexes so far, each as often as it is named.
    nested: u64,
    notes: Vec<String>,
    /// How many of the notes are about artifacts.
    artifacts: usize,
}

/// What a manifest describes.
enum Described {
    Image(Box<ImagePlan>),
    /// An artifact of this type.
    Artifact(String),
}

impl<'a> Finder<'a> {
    /// Plans the requested images. The error is [`SourceErrorKind::NotFound`] if the source has none of them.
    pub(super) fn plans(
        source: &'a dyn Source,
        selector: Option<&Selector>,
        choice: &PlatformChoice,
        limits: &'a Limits,
    ) -> Result<Vec<ImagePlan>, ImageError> {
        let mut finder = Self {
            source,
            limits,
            candidates: Vec::new(),
            unread: Vec::new(),
            nested: 0,
            notes: Vec::new(),
            artifacts: 0,
        };
        let StoredDocument { name, digest, media_type, bytes } = source.top()?;
        match DocumentKind::of(&bytes, media_type.as_deref(), &name)? {
            DocumentKind::Manifest => match finder.describe(&bytes, digest.clone())? {
                Described::Image(plan) => {
                    check_platform(&plan, choice)?;
                    Ok(vec![*plan])
                }
                Described::Artifact(kind) => Err(not_an_image(&digest, &kind).into()),
            },
            DocumentKind::Index => {
                let entries = parse_index(&bytes, &name)?;
                finder.gather(&entries, &IndexedNames::default(), 0)?;
                finder.choose(selector, choice)
            }
        }
    }

    /// Collects the manifests of an index. `outer` are the names of the enclosing index.
    fn gather(&mut self, index: &ImageIndex, outer: &IndexedNames, depth: usize) -> Result<(), ImageError> {
        for descriptor in index.manifests() {
            let blob = match blob_ref(descriptor) {
                Ok(blob) => blob,
                Err(error) => {
                    self.notes.push(format!("passed over an entry of the index: {error}"));
                    continue;
                }
            };
            let annotation = |key: &&str| descriptor.annotations().as_ref()?.get(*key).cloned();
            let mut named = outer.clone();
            named.names.extend([REF_NAME, CONTAINERD_NAME].iter().filter_map(annotation));
            match IndexedKind::of(descriptor) {
                IndexedKind::Manifest => self.candidate(descriptor, blob, named)?,
                IndexedKind::Index => self.nested(blob, named, depth)?,
                IndexedKind::Attestation => self.skip(&format!("attestation manifest {}", blob.digest)),
                IndexedKind::Artifact(kind) => self.skip(&format!("artifact {} ({})", blob.digest, printable(&kind))),
                IndexedKind::Unknown(kind) => {
                    let kind = printable(&kind);
                    self.notes.push(format!("skipped {}: its media type '{kind}' is unknown", blob.digest));
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, artifact: &str) {
        self.notes.push(format!("skipped {artifact}"));
        self.artifacts += 1;
    }

    /// The error of an index without images.
    fn no_images(&self) -> SourceError {
        let is_of_artifacts = self.artifacts > 0 && self.artifacts == self.notes.len();
        let kind = if is_of_artifacts { SourceErrorKind::Artifact } else { SourceErrorKind::NotFound };
        let lines: Vec<_> =
            std::iter::once("the index lists no images").chain(self.notes.iter().map(|note| &**note)).collect();
        SourceError::new(kind, lines.join("\n  "))
    }

    fn candidate(&mut self, descriptor: &Descriptor, blob: BlobRef, named: IndexedNames) -> Result<(), ImageError> {
        let platform = descriptor.platform().as_ref().map(|platform| Platform {
            os: platform.os().to_string(),
            architecture: platform.architecture().to_string(),
            variant: platform.variant().clone(),
        });
        self.candidates.push(ManifestCandidate { blob, platform, named });
        if self.candidates.len() > self.limits.images {
            let what = format!("the image index names more than {} images", self.limits.images);
            return Err(over(what, "images", self.limits.images as u64));
        }
        Ok(())
    }

    /// Collects the manifests of an index that another one names.
    fn nested(&mut self, blob: BlobRef, mut named: IndexedNames, depth: usize) -> Result<(), ImageError> {
        if depth >= self.limits.nesting {
            let what = format!("image indexes are nested {} deep", depth + 2);
            return Err(over(what, "nesting", self.limits.nesting as u64));
        }
        let read = self.document(&blob).and_then(|bytes| parse_index(&bytes, &format!("image index {}", blob.digest)));
        self.nested = self.nested.saturating_add(blob.size);
        if self.nested > self.limits.indexes {
            let what = format!("image index {}: nested image indexes have {} bytes", blob.digest, self.nested);
            return Err(over(what, "indexes", self.limits.indexes));
        }
        match read {
            Ok(index) => {
                named.within.push(blob.digest);
                self.gather(&index, &named, depth + 1)
            }
            Err(ImageError::Source(error)) => {
                self.unread.push(UnreadIndex { digest: blob.digest, named, error });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Selects by name, digest or position first, then by platform.
    fn choose(mut self, selector: Option<&Selector>, choice: &PlatformChoice) -> Result<Vec<ImagePlan>, ImageError> {
        let all = std::mem::take(&mut self.candidates);
        let wanted = selected(&all, selector);
        self.pass_over_unread(selector, wanted.is_empty())?;
        if wanted.is_empty() {
            return Err(if all.is_empty() { self.no_images() } else { not_found(&all, selector) }.into());
        }
        let found = without_copies(self.matching(&wanted, choice)?);
        if *choice != PlatformChoice::All && found.len() > 1 {
            return Err(ambiguous(&found, self.source.reference().as_deref()).into());
        }
        // Each image repeats the notes about the index: thousands of images with thousands of notes would take gigabytes.
        let most = if found.len() > 1 { MOST_SHARED_NOTES } else { usize::MAX };
        let rest = self.notes.len().saturating_sub(most);
        let rest = (rest > 0).then(|| format!("{rest} more notes about entries of the index are not shown"));
        let with_notes = |found: PlannedCandidate<'_>| {
            let notes = self.notes.iter().take(most).chain(&rest).cloned().chain(found.plan.notes).collect();
            ImagePlan { notes, ..found.plan }
        };
        Ok(found.into_iter().map(with_notes).collect())
    }

    /// An unreadable index is an error if it may hold the requested image, and a note otherwise.
    fn pass_over_unread(&mut self, selector: Option<&Selector>, is_nothing_else: bool) -> Result<(), ImageError> {
        for unread in std::mem::take(&mut self.unread) {
            let is_related = match selector {
                None | Some(Selector::Index(_)) => true,
                Some(selector) => is_nothing_else || unread.is_selected(selector),
            };
            if is_related {
                return Err(unread.error.into());
            }
            let why = unread.error.description();
            self.notes.push(format!("passed over image index {}, which was not asked for: {why}", unread.digest));
        }
        Ok(())
    }

    /// The images for the requested platform: those closest to it, in the order of the index.
    fn matching<'c>(
        &mut self,
        wanted: &[&'c ManifestCandidate],
        choice: &PlatformChoice,
    ) -> Result<Vec<PlannedCandidate<'c>>, ImageError> {
        let mut rated: Vec<RatedCandidate<'c>> = Vec::new();
        let mut offered = Vec::new();
        for (position, candidate) in wanted.iter().copied().enumerate() {
            let read = if candidate.platform.is_none() { self.describe_or_note(candidate)? } else { None };
            let said = candidate.platform.as_ref().or(read.as_ref().and_then(|plan| plan.platform()));
            let Some(platform) = said else { continue };
            offered.push(platform.clone());
            rated.push(RatedCandidate { distance: choice.distance_to(platform), position, candidate, read });
        }
        // The only image is judged whatever this machine's platform is.
        let is_alone = rated.len() == 1 && *choice == PlatformChoice::Host;
        rated.iter_mut().filter(|_| is_alone).for_each(|only| only.distance = Some(0));
        rated.sort_by_key(|rated| rated.distance);
        let mut found: Vec<PlannedCandidate<'c>> = Vec::new();
        let mut missing = None;
        for RatedCandidate { distance, position, candidate, read } in rated {
            let Some(distance) = distance else { continue };
            // A platform further away is not needed once an image is found.
            if found.first().is_some_and(|found| found.distance < distance) {
                break;
            }
            let plan = match read.map_or_else(|| self.describe_or_note(candidate), |read| Ok(Some(read))) {
                // Exports of one platform keep the index of all.
                Err(ImageError::Source(error))
                    if error.kind() == SourceErrorKind::Missing && *choice == PlatformChoice::All =>
                {
                    let why = error.description();
                    self.notes.push(format!("{} is listed, but not here: {why}", candidate.describe()));
                    missing = Some(error);
                    continue;
                }
                plan => plan?,
            };
            let is_any = is_alone || *choice == PlatformChoice::All;
            let plan = plan.filter(|plan| is_any || candidate.is_for(plan));
            found.extend(plan.map(|mut plan| {
                plan.names.clone_from(&candidate.named.names);
                PlannedCandidate { candidate, position, plan: *plan, distance }
            }));
        }
        if let (true, Some(missing)) = (found.is_empty(), missing) {
            return Err(missing.into());
        }
        if found.is_empty() && offered.is_empty() {
            return Err(self.no_images().into());
        }
        if found.is_empty() {
            return Err(choice.not_offered(&offered).into());
        }
        found.sort_by_key(|found| found.position);
        Ok(found)
    }

    /// Fetches and plans a candidate; `None`, with a note, for an artifact.
    fn describe_or_note(&mut self, candidate: &ManifestCandidate) -> Result<Option<Box<ImagePlan>>, ImageError> {
        match self.fetch(candidate)? {
            Described::Image(plan) => Ok(Some(plan)),
            Described::Artifact(kind) => {
                self.skip(&format!("artifact {} ({})", candidate.blob.digest, printable(&kind)));
                Ok(None)
            }
        }
    }

    fn fetch(&self, candidate: &ManifestCandidate) -> Result<Described, ImageError> {
        let bytes = self.document(&candidate.blob)?;
        self.describe(&bytes, candidate.blob.digest.clone())
    }

    /// Fetches a document by digest and verifies it.
    fn document(&self, blob: &BlobRef) -> Result<Vec<u8>, ImageError> {
        if blob.size > self.limits.document {
            let what = format!("document {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let bytes = self.source.manifest(&blob.digest)?;
        verify(&bytes, blob)?;
        Ok(bytes)
    }

    /// Plans the image of one manifest.
    fn describe(&self, bytes: &[u8], digest: Digest) -> Result<Described, ImageError> {
        let name = format!("manifest {digest}");
        DocumentKind::of(bytes, None, &name)?;
        let manifest = parse_manifest(bytes, &name)?;
        let config_type = manifest.config().media_type().to_string();
        if !is_config(&config_type) {
            return Ok(Described::Artifact(config_type));
        }
        let mut types = manifest.layers().iter().map(|layer| layer.media_type().to_string());
        if let Some(first) = types.clone().next().filter(|_| !types.any(|media_type| is_layer(&media_type))) {
            return Ok(Described::Artifact(first));
        }
        let blob = blob_ref(manifest.config())?;
        if blob.size > self.limits.document {
            let what = format!("configuration {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let reader = self.source.open(&blob)?;
        let bytes = read_bounded(reader, self.limits.document, &format!("reading configuration {}", blob.digest))?;
        verify(&bytes, &blob)?;
        let layers = manifest.layers().iter().map(described_layer).collect::<Result<_, _>>()?;
        let plan = configure(&bytes, blob.digest, Some(digest), layers, self.limits)?;
        Ok(Described::Image(Box::new(plan)))
    }
}

#[derive(Debug)]
enum DocumentKind {
    Manifest,
    Index,
}

impl DocumentKind {
    /// The kind of a document, by its fields. `name` is for messages.
    fn of(bytes: &[u8], media_type: Option<&str>, name: &str) -> Result<Self, ImageError> {
        let shape: Shape = parse_document(bytes)
            .map_err(|error| ImageError::invalid(format!("{name} is not JSON of the expected form: {error}")))?;
        if shape.schema_version == Some(1) || shape.fs_layers.0 {
            return Err(ImageError::invalid(format!(
                "{name} uses Docker's schema 1, which has been obsolete since 2015: push the image again with a \
                 current Docker"
            )));
        }
        let declared = shape.media_type.as_deref().or(media_type);
        match (shape.manifests.0, shape.config.0 && shape.layers.0) {
            (true, true) => Err(ImageError::invalid(format!("{name} is ambiguous: it has both manifests and layers"))),
            (true, false) => Ok(Self::Index),
            (false, true) => Ok(Self::Manifest),
            (false, false) => Err(ImageError::invalid(format!(
                "{name} is neither an image manifest nor an index{}",
                declared.map(|kind| format!(" (its media type is '{}')", printable(kind))).unwrap_or_default()
            ))),
        }
    }
}

fn parse_index(bytes: &[u8], name: &str) -> Result<ImageIndex, ImageError> {
    parse_document(bytes).map_err(|error| ImageError::invalid(format!("{name} is malformed: {error}")))
}

/// Parses a manifest. Old registries leave out the media type of the configuration.
fn parse_manifest(bytes: &[u8], name: &str) -> Result<ImageManifest, ImageError> {
    parse_changed(bytes, |document| document.add_missing("config", "mediaType", ""))
        .map_err(|error| ImageError::invalid(format!("{name} is malformed: {error}")))
}

fn described_layer(descriptor: &Descriptor) -> Result<DescribedLayer, ImageError> {
    let media_type = descriptor.media_type().to_string();
    if media_type.ends_with("+encrypted") {
        return Err(ImageError::invalid(format!("layer {} is encrypted", descriptor.digest())));
    }
    let blob = blob_ref(descriptor)?;
    Ok(DescribedLayer {
        location: LayerLocation::Blob { digest: blob.digest, size: blob.size },
        media_type: Some(media_type),
    })
}

fn not_an_image(digest: &Digest, kind: &str) -> SourceError {
    let what = format!("manifest {digest} describes an artifact ({}), not a container image", printable(kind));
    SourceError::new(SourceErrorKind::Artifact, what)
}

/// Verifies the size and the digest of bytes against their descriptor.
fn verify(bytes: &[u8], blob: &BlobRef) -> Result<(), ImageError> {
    let mut hasher = blob.digest.hasher();
    hasher.update(bytes);
    let found = hasher.finish();
    if bytes.len() as u64 != blob.size {
        let what = format!("document {} has {} bytes, its descriptor says {}", blob.digest, bytes.len(), blob.size);
        return Err(ImageError::invalid(what));
    }
    if found != blob.digest {
        return Err(ImageError::invalid(format!(
            "document {} is corrupt: its bytes have the digest {found}",
            blob.digest
        )));
    }
    Ok(())
}

fn blob_ref(descriptor: &Descriptor) -> Result<BlobRef, ImageError> {
    let digest = descriptor.digest().to_string().parse().map_err(SourceError::from)?;
    Ok(BlobRef { digest, size: descriptor.size() })
}

#[cfg(test)]
mod tests;
